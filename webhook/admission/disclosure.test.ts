// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, pod, poolObject, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BLOCKS, CLAIMS_OF_BANK, CONTROLLER, MINE, POOLS, toldTo } from "../testing/told-refusals.ts";
import type { ReadAccess, Subject } from "./disclosure.ts";
import { createHandlers } from "./routes.ts";

const SECRET = poolRecord("secret", "10.40.0.0/24", {
  namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "bank" } },
});

async function worldWithHolder(): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL, SECRET] });
  const object = pod("ledger", { namespace: "bank", annotations: { "berth.dev/ips": "10.20.0.70" } });
  const request = review(object, "CREATE", { namespace: "bank" });
  const made = await createHandlers(world.admission)["/mutate/pods"](request, new AbortController().signal);
  assert.equal(made.allowed, true, made.status?.message);
  await world.settle();
  return world;
}

describe("what a refusal tells", () => {
  it("names the holder in another namespace to who may read its claims, and to nobody else", async () => {
    await using world = await worldWithHolder();
    const asks = { namespace: "shop", ips: "10.20.0.70" };
    assert.match(
      await toldTo(world, [CLAIMS_OF_BANK], asks),
      /^ADDRESS_TAKEN: .*held by bank\/ledger \(Pod ledger\)/,
    );
    const words = await toldTo(world, [POOLS], asks);
    assert.match(
      words,
      /^ADDRESS_TAKEN: address 10\.20\.0\.70 in pool "db" is held in another namespace; free nearby: /,
    );
    assert.doesNotMatch(words, /bank|ledger/);
  });

  it("names what the own namespace holds to everybody in it", async () => {
    await using world = await worldWithHolder();
    assert.match(await toldTo(world, [], { namespace: "bank", ips: "10.20.0.70" }), /held by bank\/ledger/);
  });

  it("tells controllers of kube-system no more, whatever they may read: the namespace's events repeat it", async () => {
    await using world = await worldWithHolder();
    const words = await toldTo(world, "all", { namespace: "shop", ips: "10.20.0.70", user: CONTROLLER });
    assert.match(words, /is held in another namespace/);
    assert.doesNotMatch(words, /bank|ledger/);
  });

  it("is the same for pools that are closed, that do not exist and for addresses of either", async () => {
    await using world = await worldWithHolder();
    const reported = new Set<string>();
    for (const asks of [
      { pools: "secret" },
      { pools: "nowhere" },
      { ips: "10.40.0.7" },
      { ips: "10.40.0.0" },
      { ips: "192.0.2.1" },
    ]) {
      reported.add(await toldTo(world, [CLAIMS_OF_BANK], { namespace: "shop", ...asks }));
    }
    assert.deepEqual(
      [...reported],
      [
        'POOL_FORBIDDEN: what is asked for is in no pool that is open to it in namespace shop; open to all: "db"; ask whoever runs the network',
      ],
    );
    assert.match(
      await toldTo(world, [POOLS], { namespace: "shop", pools: "secret" }),
      /^POOL_FORBIDDEN: pool "secret" is not open to namespace shop/,
    );
    assert.match(
      await toldTo(world, [POOLS], { namespace: "shop", ips: "192.0.2.1" }),
      /^ADDRESS_OUTSIDE: address 192\.0\.2\.1 is in no pool; name one of a pool: "db" 10\.20/,
    );
  });
});

describe("what a refusal tells of a pool of nodes' CIDRs", () => {
  const nodeCIDRs = { use: "Cilium", blockSize: { ipv4: 27 } } as const;

  it("is to everybody that it gives pods nothing, and what to do instead", async () => {
    await using world = await openWorld({
      pools: [DB_POOL, poolRecord("agents", "10.60.0.0/24", { nodeCIDRs })],
    });
    for (const may of ["all", []] as const)
      for (const asks of [{ pools: "agents" }, { ips: "10.60.0.9" }])
        assert.match(
          await toldTo(world, may, { namespace: "shop", ...asks }),
          /^POOL_FORBIDDEN: pool "agents" is for CIDRs of nodes .* gives pods no address; Cilium's agents pick .*; name a pool without nodeCIDRs/,
        );
  });

  it("never names it where pools are named that give pods addresses", async () => {
    await using world = await openWorld({
      pools: [DB_POOL, SECRET, poolRecord("agents", "10.60.0.0/24", { nodeCIDRs })],
    });
    for (const may of ["all", []] as const)
      for (const asks of [{ pools: "nowhere" }, { pools: "secret" }, { ips: "192.0.2.1" }]) {
        const words = await toldTo(world, may, { namespace: "shop", ...asks });
        assert.match(words, /"db"/);
        assert.doesNotMatch(words, /agents/);
      }
  });
});

describe("a pool that cannot stand beside another", () => {
  const CUT = poolRecord("cut", "10.50.0.0/28", { blockSize: { ipv4: 28 }, default: true });
  const OWNED = { node: "rack-7", nodeUID: "u", holes: [], granted: true, cidr: "10.60.0.8/29" };

  /** What whoever makes a pool is told. */
  async function toldOfPool(world: World, may: readonly Subject[], spec: object): Promise<string> {
    const readAccess: ReadAccess = {
      mayRead: async (_, subject) => may.some((one) => JSON.stringify(one) === JSON.stringify(subject)),
    };
    const request = review(poolObject("mine", { ...spec }), "CREATE", { userInfo: MINE, dryRun: true });
    const handle = createHandlers({ ...world.admission, readAccess })["/validate/pools"];
    const response = await handle(request, new AbortController().signal);
    return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
  }

  it("is told which, and where, only to who may list pools", async () => {
    await using world = await openWorld({ pools: [DB_POOL, SECRET, CUT] });
    await world.realStore.create("block", { ...OWNED, pool: "gone" });
    const blind =
      "POOL_OVERLAPS: pool mine has addresses, a gateway or part of a block of another pool's, or of what nodes have of one; choose others, or ask whoever runs the network";
    for (const { spec, words } of [
      { spec: { ranges: [{ cidr: "10.40.0.128/25" }] }, words: /pools mine and secret both contain / },
      {
        spec: {
          ranges: [
            { cidr: "10.50.0.16/28", gateway: "10.50.0.17" },
            { cidr: "10.50.0.0/24", from: "10.50.0.32", gateway: "10.50.0.2" },
          ],
        },
        words: /the gateway 10\.50\.0\.2 of pool mine could be given out by pool cut/,
      },
      {
        spec: { ranges: [{ cidr: "10.60.0.0/24" }] },
        words: /of block 10\.60\.0\.8\/29, which is of pool gone/,
      },
    ]) {
      assert.match(await toldOfPool(world, [POOLS], spec), words);
      assert.equal(await toldOfPool(world, [CLAIMS_OF_BANK, BLOCKS], spec), blind);
    }
  });

  it("is not told which are the default, either", async () => {
    await using world = await openWorld({ pools: [CUT] });
    const spec = { ranges: [{ cidr: "10.70.0.0/24" }], blockSize: { ipv4: 28 }, default: true };
    assert.match(await toldOfPool(world, [POOLS], spec), /^pool mine is a default, as cut: of several/);
    assert.match(await toldOfPool(world, [], spec), /^pool mine is a default, as another pool: of several/);
  });
});

describe("an address that others have, and not from Berth", () => {
  const MAY_PODS: Subject = { verb: "get", resource: "pods", namespace: "bank" };
  const MAY_NODES: Subject = { verb: "list", resource: "nodes", namespace: "" };
  const cases = [
    ["a pod's", { kind: "pod", namespace: "bank", name: "vault-0" }, MAY_PODS, "pod bank/vault-0"],
    ["a node's", { kind: "node", namespace: "", name: "node-a" }, MAY_NODES, "node node-a"],
  ] as const;
  for (const [title, occupant, may, name] of cases) {
    it(`names ${title} to those who may read it`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      world.cache.occupy(addr("10.20.0.70"), occupant);
      const asks = { namespace: "shop", ips: "10.20.0.70" };
      const named = await toldTo(world, [may], asks);
      assert.ok(
        named.startsWith(`ADDRESS_TAKEN: address 10.20.0.70 in pool "db" is in use by ${name}, and not`),
      );
      const hidden = await toldTo(world, [{ verb: "get", resource: "ipclaims", namespace: "bank" }], asks);
      assert.equal(
        hidden,
        'ADDRESS_TAKEN: address 10.20.0.70 in pool "db" is in use, and not from Berth; free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or ask whoever runs the network',
      );
    });
  }
});
