// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Block } from "../../allocator/model/block.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { type Json, poolObject } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { NodeUse } from "./admission-context.ts";
import { newWarnings } from "./pool-warnings.ts";

const RANGES = [{ cidr: "10.20.0.0/24" }];
const BOTH = [...RANGES, { cidr: "fd00:20::/64" }];
const SIZE = { ipv4: 28 };

async function reported(world: World, spec: Json, over = {}): Promise<readonly string[]> {
  const response = await send(world, "/validate/pools", poolObject("lan", spec), over);
  assert.ok(response.allowed);
  const warnings = response.warnings ?? [];
  assert.ok(
    warnings.every((one) => !one.endsWith("...")),
    "the API server cuts longer ones",
  );
  return warnings;
}

describe("what a pool does not do", () => {
  for (const { what, spec, is } of [
    {
      what: "for networks has no size, since each namespace has so many: in a cluster it is for pods that ask",
      spec: { ranges: BOTH, networks: ["lan"], limits: { perNamespace: 5 } },
      is: /^pool lan has no spec\.blockSize, so in a cluster it serves only pods that ask .*make it with blockSize: \{ipv4: 32, ipv6: 128\}/,
    },
    {
      what: "is for service accounts, and nodes get blocks of it",
      spec: { ranges: RANGES, blockSize: SIZE, authorization: "ServiceAccount", default: true },
      is: /^pool lan serves no pod that asks for nothing, for its authorization is ServiceAccount, and nodes get blocks/,
    },
    {
      what: "says how many blocks are ahead, and of what size it does not say",
      spec: { ranges: RANGES, blockSize: { ahead: 1 } },
      is: /^pool lan does nothing with spec\.blockSize\.ahead alone/,
    },
    {
      what: "has two families, and a size of one",
      spec: { ranges: BOTH, blockSize: SIZE },
      is: /^pool lan has IPv6 ranges, and spec\.blockSize no ipv6: pods that ask for nothing get no IPv6 address/,
    },
    {
      what: "selects whatever there is, and so comes before the default",
      spec: { ranges: RANGES, blockSize: SIZE, nodeSelector: {}, podSelector: {} },
      is: /^pool lan selects every pod by spec\.podSelector, nodeSelector: \{\}, so it comes before the default/,
    },
    {
      what: "excludes all of its addresses",
      spec: { ranges: [{ cidr: "10.20.0.0/24", gateway: "10.20.0.1", exclude: ["10.20.0.2-10.20.0.255"] }] },
      is: /^pool lan has no IPv4 address to give: every one of its IPv4 ranges is excluded or a gateway; .*disabled: true/,
    },
    {
      what: "excludes all of one family",
      spec: { ranges: [...RANGES, { cidr: "fd00:20::/120", exclude: ["fd00:20::/120"] }] },
      is: /^pool lan has no IPv6 address to give: [^;]+; change spec\.ranges; its other addresses it gives$/,
    },
  ])
    it(`is said, where it ${what}, and not again with each change`, async () => {
      await using world = await openWorld({});
      const [first = "", ...others] = await reported(world, spec);
      assert.match(first, is);
      assert.deepEqual(others, []);
      assert.deepEqual(await reported(world, { ...spec, cooldown: "1m" }), []);
    });

  it("is said of a cooldown that is longer than a day, and not again with another one", async () => {
    await using world = await openWorld({});
    const spec = { ranges: RANGES, cooldown: "24h" };
    assert.deepEqual(await reported(world, spec), []);
    assert.deepEqual(await reported(world, { ...spec, cooldown: "30h" }), [
      "pool lan keeps each address from everybody for 30h after it was given back (spec.cooldown): pods that come and go may leave none free; 30s is the default",
    ]);
    assert.deepEqual(await reported(world, { ...spec, cooldown: "30h", priority: 1 }), []);
    assert.deepEqual(await reported(world, { ...spec, cooldown: "30s" }), []);
  });

  it("is not said of pools that say what they are for", async () => {
    await using world = await openWorld({});
    const selector = { matchLabels: { team: "bank" } };
    for (const spec of [
      { ranges: RANGES },
      { ranges: [{ cidr: "10.20.0.0/24", exclude: ["10.20.0.0/24"] }], disabled: true },
      { ranges: [{ cidr: "10.20.0.0/24", exclude: ["10.20.0.0-10.20.0.9"] }], reserved: ["10.20.0.0/24"] },
      { ranges: RANGES, networks: ["lan"], blockSize: {} },
      { ranges: RANGES, networks: ["lan"], authorization: "ServiceAccount" },
      { ranges: RANGES, networks: ["lan"], blockSize: SIZE },
      { ranges: RANGES, networks: ["lan"], blockSize: SIZE, nodeSelector: {} },
      { ranges: BOTH, blockSize: { ipv4: 32, ipv6: 128 }, namespaceSelector: selector, nodeSelector: {} },
    ])
      assert.deepEqual(await reported(world, spec, { dryRun: true }), [], JSON.stringify(spec));
  });
});

describe("reserved addresses", () => {
  it("that a node may give are told of, until it has given them back", async () => {
    await using world = await openWorld({});
    const spec = { ranges: RANGES, blockSize: SIZE };
    await reported(world, spec);
    const block: Block = {
      ...{ cidr: "10.20.0.16/28", pool: "lan", node: "node-a", nodeUID: "u", holes: ["10.20.0.30/32"] },
      granted: true,
    };
    await world.realStore.create("block", block);
    await world.settle();
    assert.deepEqual(await reported(world, { ...spec, reserved: ["10.20.0.3", "10.20.0.30"] }), []);
    assert.deepEqual(await reported(world, { ...spec, reserved: ["10.20.0.20-10.20.0.21", "10.20.0.40"] }), [
      "spec.reserved of pool lan has addresses that nodes give to pods until they give the block back: 10.20.0.20-10.20.0.21 (block 10.20.0.16/28 of node node-a); see kubectl get ipblocks",
    ]);
  });
});

describe("a pool for CIDRs of nodes", () => {
  const record = (use: "PodCIDR" | "Cilium", ipv4: number): PoolRecord => ({
    name: "nodes",
    spec: { ranges: [{ cidr: "10.20.0.0/16" }], nodeCIDRs: { use, blockSize: { ipv4 } } },
  });
  const of = (now: PoolRecord, given: Partial<NodeUse>) =>
    newWarnings(
      {},
      { pools: [], now, before: undefined, namesOthers: true },
      {
        podCIDRs: [],
        cilium: undefined,
        ...given,
      },
    );

  it("is told where the installation gives nodes nothing of it, and not where it does", () => {
    assert.match(
      of(record("PodCIDR", 24), {}).join(),
      /^pool nodes gives nodes nothing .* nodeCIDRs\.families/,
    );
    assert.match(
      of(record("Cilium", 24), { podCIDRs: ["IPv4"] }).join(),
      /^pool nodes gives .* cilium\.ipam/,
    );
    assert.deepEqual(of(record("PodCIDR", 24), { podCIDRs: ["IPv4"] }), []);
    const { name, spec } = record("PodCIDR", 24);
    assert.match(
      of({ name, spec: { ...spec, cooldown: "48h" } }, { podCIDRs: ["IPv4"] }).join(),
      /^pool nodes keeps each CIDR from everybody for 48h .*: nodes that come and go/,
    );
    assert.deepEqual(of(record("Cilium", 24), { cilium: "cluster-pool" }), []);
  });

  it("is told where the size does not suit Cilium's mode", () => {
    assert.match(of(record("Cilium", 23), { cilium: "crd" }).join(), /more than 256 addresses.* \/24/);
    assert.deepEqual(of(record("Cilium", 24), { cilium: "crd" }), []);
    assert.match(of(record("Cilium", 31), { cilium: "multi-pool" }).join(), /gives pods nothing.* \/30/);
    assert.deepEqual(of(record("Cilium", 30), { cilium: "multi-pool" }), []);
  });
});
