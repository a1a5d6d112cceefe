// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { CLAIM, node, sandbox, setUp, until } from "../testing/claim-sandboxes.ts";
import { addressesOf, errorOf } from "../testing/node-bench.ts";

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
