// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError, refuse } from "../../../allocator/base/errors.ts";
import { address, addressesOf, claimResult, errorOf, NodeBench, podArgs } from "../testing/node-bench.ts";

const CLAIM = "shop/db-0";

let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    node.claimSource.answers.set("shop/db-0", claimResult(CLAIM, "10.20.0.51/24", "fd00:20::51/64"));
  });
  afterEach(() => node.close());
}

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !holds(); i++) await new Promise(setImmediate);
  assert.ok(holds(), `${holds}`);
}

/** Sandbox `cid` of the pod db-0 with this UID. */
function sandbox(cid: string, uid: string, ifname = "eth0") {
  return { cid, ifname, args: podArgs("db-0", uid) };
}

describe("a pod with a claim", () => {
  setUp();

  it("gets the claim's addresses, whatever ranges the configuration has", async () => {
    assert.deepEqual(await node.add(sandbox("a", "u1")), ["10.20.0.51", "fd00:20::51"]);
    assert.deepEqual(await node.add({ cid: "b", args: podArgs("web-0", "u2") }), ["10.1.2.2"]);
    assert.deepEqual(await node.add({ cid: "c" }), ["10.1.2.3"]);
    assert.equal(node.claimSource.asked.length, 2, "nobody is asked about a sandbox without a pod");
  });

  it("of its name that came after its address goes to the next pod, whatever sandboxes this one has", async () => {
    const { claimSource } = node;
    const claim = claimSource.answers.get("shop/db-0") ?? assert.fail();
    claimSource.answers.delete("shop/db-0");
    assert.deepEqual(await node.add(sandbox("a", "u1")), ["10.1.2.2"]);
    claimSource.answers.set("shop/db-0", claim);
    await node.del(sandbox("a", "u1"));
    assert.deepEqual(await node.add(sandbox("b", "u1")), ["10.1.2.3"]);
    await node.restart();
    assert.deepEqual(await node.add(sandbox("c", "u1")), ["10.1.2.4"], "without a DEL, by the next agent");
    const other = { ...sandbox("c", "u1", "net1"), conf: { name: "other" } };
    assert.deepEqual(await node.add(other), ["10.20.0.51", "fd00:20::51"], "in a network it was not in");
    await node.del(other);
    for (const cid of ["b", "c"]) await node.del(sandbox(cid, "u1"));
    assert.deepEqual(await node.add(sandbox("d", "u2")), ["10.20.0.51", "fd00:20::51"]);
  });

  it("goes to a pod that had the configuration's own address, where the runtime does not say who it is", async () => {
    const { claimSource } = node;
    const claim = claimSource.answers.get("shop/db-0") ?? assert.fail();
    claimSource.answers.delete("shop/db-0");
    await node.add(sandbox("a", ""));
    claimSource.answers.set("shop/db-0", claim);
    await node.del(sandbox("a", ""));
    assert.deepEqual(await node.add(sandbox("b", "")), ["10.20.0.51", "fd00:20::51"]);
  });

  it("is asked for with all that the runtime says", async () => {
    const key = "io.kubernetes.cri.pod-annotations";
    await node.add({
      ...sandbox("a", "u1"),
      ipam: { pools: ["db"] },
      conf: { runtimeConfig: { ips: ["10.20.0.51/24"], [key]: { "berth.dev/ips": "10.20.0.51" } } },
    });
    assert.deepEqual(node.claimSource.asked, [
      {
        pod: { namespace: "shop", name: "db-0", uid: "u1" },
        attachment: { network: "net", containerID: "a", interface: "eth0" },
        pools: ["db"],
        addresses: [address("10.20.0.51")],
        annotations: { "berth.dev/ips": "10.20.0.51" },
      },
    ]);
  });

  it("is found and attached with the very same request", async () => {
    await node.add(sandbox("a", "u1"));
    const { asked, assigned } = node.claimSource;
    assert.equal(asked.length, 1);
    assert.ok(asked[0] !== undefined && assigned[0] === asked[0]);
  });

  it("has routes and name servers of its pool, or else those of the configuration", async () => {
    const ipam = { routes: [{ dst: "10.0.0.0/8" }], dns: { nameservers: ["10.0.0.2"] } };
    const own = {
      ...claimResult("shop/web-0", "10.20.0.52/24"),
      routes: [{ dst: "0.0.0.0/0" }],
      dns: { domain: "x.test" },
    };
    node.claimSource.answers.set("shop/web-0", own);
    const [plain, rich] = [
      await node.call("ADD", { ...sandbox("a", "u1"), ipam }),
      await node.call("ADD", { cid: "b", args: podArgs("web-0", "u2"), ipam }),
    ].map(({ stdout }) => JSON.parse(stdout));
    assert.deepEqual([plain.routes, plain.dns], [[{ dst: "10.0.0.0/8" }], { nameservers: ["10.0.0.2"] }]);
    assert.deepEqual([rich.routes, rich.dns], [[{ dst: "0.0.0.0/0" }], { domain: "x.test" }]);
  });

  it("that is refused does not get another address", async () => {
    node.claimSource.answers.set(
      "shop/db-0",
      refuse("CLAIM_MISSING", "the pod asked for 10.20.0.51 and has no claim"),
    );
    assert.deepEqual(errorOf(await node.call("ADD", sandbox("a", "u1"))), {
      cniVersion: "1.1.0",
      code: 116,
      msg: "the pod asked for 10.20.0.51 and has no claim",
      details: "CLAIM_MISSING",
    });
    node.claimSource.answers.set("shop/db-0", refuse("CLAIM_RELEASING", "wait"));
    assert.equal(errorOf(await node.call("ADD", sandbox("b", "u1"))).code, 11);
    node.claimSource.answers.set("shop/db-0", new BerthError("NOT_READY", "claims are being listed"));
    const unready = errorOf(await node.call("ADD", sandbox("c", "u1")));
    assert.deepEqual(
      [unready.code, unready.msg, unready.details],
      [11, "claims are being listed", "NOT_READY"],
    );
    assert.deepEqual(node.held, []);
  });

  it("is answered again from the journal, without asking", async () => {
    const first = await node.add(sandbox("a", "u1"));
    await node.restart();
    assert.deepEqual(await node.add(sandbox("a", "u1")), first);
    assert.equal(node.claimSource.asked.length, 1);
  });

  it("is refused when something else on the node has the address", async () => {
    const ipam = { subnet: "10.20.0.0/24", rangeStart: "10.20.0.51" };
    assert.deepEqual(await node.add({ cid: "range", ipam }), ["10.20.0.51"]);
    const error = errorOf(await node.call("ADD", { ...sandbox("a", "u1"), ipam }));
    assert.equal(error.code, 103);
    assert.ok(
      error.msg.startsWith("10.20.0.51 is in use on this node: container range (eth0) has it"),
      error.msg,
    );
    assert.deepEqual(node.held, ["10.20.0.51"]);
    assert.deepEqual(await node.add({ cid: "next", ipam }), ["10.20.0.52"], "and ranges keep off claims");
  });

  it("is refused when a sandbox in another network has the address from a claim", async () => {
    const given = await node.add(sandbox("a", "u1"));
    node.claimSource.answers.set("shop/db-1", claimResult("shop/db-1", "10.20.0.51/24"));
    const conf = { name: "other" };
    const other = { cid: "b", args: podArgs("db-1", "u9"), conf };
    const error = errorOf(await node.call("ADD", other));
    assert.equal(error.code, 103);
    assert.ok(
      error.msg.startsWith("10.20.0.51 is in use on this node: container a (eth0) has it in network net;"),
      error.msg,
    );
    assert.deepEqual(node.held, [...given].sort());
    await node.del(sandbox("a", "u1"));
    assert.deepEqual(await node.add(other), ["10.20.0.51"]);
  });

  it("is told about after DEL, once, and not about one that was never attached", async () => {
    node.parts.detachReporter.start();
    await node.add(sandbox("a", "u1"));
    await node.del(sandbox("a", "u1"));
    await until(() => node.parts.attachments.unreported().length === 0);
    await node.del(sandbox("a", "u1"));
    await node.del(sandbox("unknown", "u1"));
    const attachment = { network: "net", containerID: "a", interface: "eth0" };
    const pod = { namespace: "shop", name: "db-0", uid: "u1" };
    await until(() => node.parts.attachments.unreported().length === 0);
    assert.deepEqual(node.claimSource.reported, [{ claim: CLAIM, pod, attachment }]);
  });

  it("is told about when the answer was lost", async () => {
    node.parts.detachReporter.start();
    await node.add(sandbox("a", "u1"), "lost");
    await until(() => node.claimSource.reported.length === 1);
    assert.deepEqual(node.held, []);
  });
});

describe("a claim that another sandbox has", () => {
  setUp();

  it("goes to a new sandbox of the same pod at once; the old one's DEL changes nothing", async () => {
    node.host.present.add("/run/netns/old");
    await node.add(sandbox("old", "u1"));
    const given = await node.add(sandbox("new", "u1"));
    assert.deepEqual(given, ["10.20.0.51", "fd00:20::51"]);
    node.parts.detachReporter.start();
    await node.del(sandbox("old", "u1"));
    await until(() => node.parts.attachments.unreported().length === 0);
    assert.deepEqual(node.held, [...given].sort());
    assert.deepEqual(node.claimSource.reported, []);
    await node.restart();
    assert.deepEqual(node.held, [...given].sort());
  });

  it("does not go back to the older sandbox by an ADD that arrives late", async () => {
    await node.add(sandbox("old", "u1"));
    const early = node.nextNs();
    const given = await node.add(sandbox("new", "u1"));
    const late = await node.call("ADD", { ...sandbox("old", "u1"), startNs: early });
    assert.equal(errorOf(late).code, 150);
    assert.deepEqual(node.held, [...given].sort());
    assert.equal(node.parts.attachments.ofClaim(CLAIM)[0]?.containerID, "new");
  });

  it("goes to another pod when the old sandbox is gone", async () => {
    node.host.present.add("/run/netns/seen");
    await node.add(sandbox("seen", "u3"));
    node.host.present.delete("/run/netns/seen");
    assert.equal((await node.add(sandbox("last", "u4"))).length, 2);
    assert.deepEqual(node.held, ["10.20.0.51", "fd00:20::51"]);
  });

  it("stays with a sandbox that the agent cannot see, until its DEL", async () => {
    node.host.unknown.add("/run/netns/old");
    const given = await node.add(sandbox("old", "u1"));
    const adding = node.call("ADD", sandbox("new", "u2"));
    await until(() => node.clock.sleeping === 2);
    node.clock.advance(5_000);
    assert.match(errorOf(await adding).msg, /container old of another pod still uses it/);
    assert.deepEqual(node.held, [...given].sort());
    await node.del(sandbox("old", "u1"));
    assert.equal((await node.add(sandbox("new", "u2"))).length, 2);
  });

  it("stays with a sandbox of another journal, until its network namespace is gone", async () => {
    const attachment = { node: "n", containerID: "old", interface: "eth0", podUID: "u1", since: 0 };
    const reported = { ...attachment, detached: false, netns: "/run/netns/old", bootID: "boot-1" };
    node.claimSource.sandboxes.set(CLAIM, reported);
    node.host.present.add("/run/netns/old");
    const error = errorOf(await node.call("ADD", sandbox("new", "u2")));
    assert.deepEqual([error.code, error.details], [11, "CLAIM_BUSY"]);
    assert.match(error.msg, /container old of another pod still uses it/);
    node.claimSource.sandboxes.set(CLAIM, { ...reported, bootID: "boot-0" });
    assert.equal((await node.add(sandbox("later", "u2"))).length, 2, "of a boot that is over");
    await node.del(sandbox("later", "u2"));
    node.claimSource.sandboxes.set(CLAIM, reported);
    node.host.present.delete("/run/netns/old");
    assert.equal((await node.add(sandbox("new", "u2"))).length, 2);
  });

  it("waits for the DEL of another pod's sandbox and no longer", async () => {
    node.host.present.add("/run/netns/old");
    await node.add(sandbox("old", "u1"));
    const adding = node.call("ADD", sandbox("new", "u2"));
    await until(() => node.clock.sleeping === 2); // the limits of the ADD and of the wait
    await node.del(sandbox("old", "u1"));
    const answer = await adding;
    assert.deepEqual(addressesOf(answer), ["10.20.0.51", "fd00:20::51"]);
    assert.equal(node.clock.sleeping, 0);
  });

  it("is refused for now when that DEL does not come, and is not bound before", async () => {
    node.host.present.add("/run/netns/old");
    const given = await node.add(sandbox("old", "u1"));
    const adding = node.call("ADD", sandbox("new", "u2"));
    await until(() => node.clock.sleeping === 2);
    node.clock.advance(5_000);
    const error = errorOf(await adding);
    assert.deepEqual(
      [error.code, error.msg, error.details],
      [
        11,
        "claim shop/db-0: container old of another pod still uses it; it is free after that one's DEL",
        "CLAIM_BUSY",
      ],
    );
    assert.deepEqual(node.held, [...given].sort());
    assert.deepEqual(
      node.claimSource.assigned.map(({ attachment }) => attachment.containerID),
      ["old"],
    );
    assert.equal(errorOf(await node.call("CHECK", sandbox("new", "u2"))).code, 151);
  });

  it("is not given to a second interface of the container", async () => {
    const given = await node.add(sandbox("a", "u1"));
    const error = errorOf(await node.call("ADD", sandbox("a", "u1", "eth1")));
    assert.equal(
      error.msg,
      "claim shop/db-0: it serves eth0 of this container, and names no address for another interface of it",
    );
    assert.deepEqual(node.held, [...given].sort());
  });

  it("goes to one of many sandboxes that ask at once", async () => {
    node.host.present.add("/run/netns/a").add("/run/netns/b").add("/run/netns/c");
    let answered = 0;
    const all = ["a", "b", "c"].map(async (cid) => {
      const answer = await node.call("ADD", sandbox(cid, `u-${cid}`));
      answered++;
      return answer;
    });
    for (const done of [1, 2]) {
      // One has it or was refused; each of the others has its time limit, and the next one its wait.
      await until(() => answered === done && node.clock.sleeping === 4 - done);
      node.clock.advance(5_000);
    }
    const statuses = (await Promise.all(all)).map(({ exitStatus }) => exitStatus);
    assert.deepEqual(statuses, [0, 1, 1]);
    assert.equal(node.parts.attachments.ofClaim(CLAIM).length, 1);
  });

  it("stays with the old sandbox when the new one cannot be journalled", async () => {
    const given = await node.add(sandbox("old", "u1"));
    node.diskFault = new BerthError("STORE_FULL", "the disk is full");
    assert.equal(errorOf(await node.call("ADD", sandbox("new", "u1"))).code, 5);
    node.diskFault = undefined;
    assert.deepEqual(node.held, [...given].sort());
    await node.del(sandbox("new", "u1"));
    assert.deepEqual(node.held, [...given].sort());
    await node.del(sandbox("old", "u1"));
    assert.deepEqual(node.held, []);
  });
});

describe("a claim source that answers late", () => {
  setUp();

  it("is told that the sandbox is not attached, when nobody waits any more", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.claimSource.gate = promise;
    const adding = node.call("ADD", sandbox("a", "u1"));
    await until(() => node.claimSource.asked.length === 1);
    node.clock.advance(25_000);
    assert.equal(errorOf(await adding).code, 11);
    node.parts.detachReporter.start();
    resolve();
    await until(() => node.claimSource.reported.length === 1);
    assert.deepEqual(node.held, []);
  });

  it("is told the same of a claim that the look for it has made", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.claimSource.finding = promise;
    node.claimSource.made = "1";
    const adding = node.call("ADD", sandbox("a", "u1"));
    await until(() => node.claimSource.asked.length === 1);
    await node.del(sandbox("a", "u1"));
    assert.equal(errorOf(await adding).code, 11);
    node.parts.detachReporter.start();
    resolve();
    await until(() => node.claimSource.reported.length === 1);
    assert.deepEqual(node.held, []);
  });

  it("does not take from a sandbox that was attached meanwhile", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.claimSource.gate = promise;
    const adding = node.call("ADD", sandbox("a", "u1"));
    await until(() => node.claimSource.asked.length === 1);
    node.clock.advance(25_000);
    await adding;
    node.claimSource.gate = Promise.resolve();
    const given = await node.add(sandbox("a", "u1"));
    resolve();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    assert.deepEqual(node.held, [...given].sort());
    assert.deepEqual(node.parts.attachments.unreported(), []);
  });
});
