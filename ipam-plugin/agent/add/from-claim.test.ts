// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError, refuse } from "../../../allocator/base/errors.ts";
import { CLAIM, node, sandbox, setUp, until } from "../testing/claim-sandboxes.ts";
import { address, claimResult, errorOf, podArgs } from "../testing/node-bench.ts";

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
