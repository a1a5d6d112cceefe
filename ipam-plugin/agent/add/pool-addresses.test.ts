// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { parsePool } from "../../../allocator/pool/pool.ts";
import { errorOf, NodeBench } from "../testing/node-bench.ts";

function poolOf(networks?: readonly string[]) {
  const range = { cidr: "10.20.0.0/24", from: "10.20.0.2", to: "10.20.0.9", exclude: ["10.20.0.5"] };
  const pool = parsePool({ name: "db", spec: { ranges: [range], ...(networks && { networks }) } });
  return isRefusal(pool) ? assert.fail(pool.message) : pool;
}

describe("a network's own addresses that are a pool's", () => {
  let node: NodeBench;
  const ranges = (rangeStart: string, rangeEnd: string) => ({
    ranges: [[{ subnet: "10.20.0.0/24", rangeStart, rangeEnd }]],
  });
  const refusal = async (ipam: object, verb = "ADD") =>
    errorOf(await node.call(verb, { cid: "z", ipam })).msg;
  const have = (...networks: readonly string[]) =>
    node.blockSource.stored.set("db", poolOf(networks.length === 0 ? undefined : networks));

  beforeEach(async () => {
    node = await NodeBench.open();
    have();
  });
  afterEach(() => node.close());

  it("are passed over in its ranges, but for what the pool excludes", async () => {
    const ipam = ranges("10.20.0.2", "10.20.0.11");
    const got: unknown[] = [];
    for (const cid of ["a", "b", "c"]) got.push(...(await node.add({ cid, ipam })));
    assert.deepEqual(got, ["10.20.0.5", "10.20.0.10", "10.20.0.11"]);
    assert.equal(
      await refusal(ipam),
      'failed to allocate for range 0: no IP addresses available in range set: 10.20.0.2-10.20.0.11; addresses of pool "db" among them are the pool\'s, which may serve network net: change the ranges, or, if they are two layer 2 networks, name those of the pool in its spec.networks',
    );
  });

  it("are refused by name, in ranges and among static addresses", async () => {
    const words = /^address 10\.20\.0\.3 is of pool "db", which may serve network net, so that/;
    const asked = { ...ranges("10.20.0.2", "10.20.0.11") };
    assert.match(errorOf(await node.call("ADD", { ipam: asked, args: "IP=10.20.0.3" })).msg, words);
    const addresses = [{ address: "10.20.0.3/24" }];
    assert.match(await refusal({ addresses }), words);
    assert.deepEqual(await node.add({ ipam: { addresses: [{ address: "10.20.0.5/24" }] } }), ["10.20.0.5"]);
    assert.deepEqual(node.held, []); // a static address is nobody's
  });

  for (const [networks, isOwn] of [
    [["net"], true],
    [["shop/net"], true],
    [["lan"], false],
    [["shop/lan"], false],
  ] as const) {
    it(`are ${isOwn ? "not given" : "given"} if the pool is for ${networks.join()}`, async () => {
      have(...networks);
      const addresses = [{ address: "10.20.0.3/24" }];
      const { exitStatus } = await node.call("ADD", { ipam: { addresses } });
      assert.equal(exitStatus, isOwn ? 1 : 0);
      const [first] = await node.add({ cid: "b", ipam: ranges("10.20.0.4", "10.20.0.20") });
      assert.equal(first, isOwn ? "10.20.0.5" : "10.20.0.4");
    });
  }

  it("stay those of a sandbox that had them before the pool", async () => {
    node.blockSource.stored.clear();
    const ipam = ranges("10.20.0.2", "10.20.0.4");
    assert.deepEqual(await node.add({ ipam }), ["10.20.0.2"]);
    have();
    assert.deepEqual(await node.add({ ipam }), ["10.20.0.2"]);
    await node.del({ ipam });
    assert.match(await refusal(ipam), /addresses of pool "db" among them/);
  });

  it("make STATUS fail on one host, where every ADD would, and not in a cluster", async () => {
    const full = ranges("10.20.0.2", "10.20.0.4");
    const named = { addresses: [{ address: "10.20.0.3/24" }] };
    for (const ipam of [full, named]) assert.equal((await node.call("STATUS", { ipam })).exitStatus, 0);
    Object.assign(node.blockSource, { more: () => Promise.resolve(false) });
    for (const ipam of [full, named]) assert.equal(await refusal(ipam, "STATUS"), await refusal(ipam));
    const part = ranges("10.20.0.2", "10.20.0.11");
    assert.equal((await node.call("STATUS", { ipam: part })).exitStatus, 0);
  });
});
