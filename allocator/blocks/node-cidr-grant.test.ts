// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { altered } from "../../test/simulation/altered.ts";
import { addr, parsed, poolRecord, reservationRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { type Cidr, type Family, parseCidr } from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { blockAgainst } from "../lifecycle/block-conflict.ts";
import type { Block } from "../model/block.ts";
import { cutSpace } from "../pool/blocks.ts";
import { finishGrant } from "./grant.ts";
import { type CidrConflict, grantNodeCidrs, isConflict, ownedAs, takeOver } from "./node-cidr-grant.ts";
import { PoolFaults } from "./pool-faults.ts";

const POOL = poolRecord("nodes", "10.244.0.0/22", {
  nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 24 } },
});
const SIX = poolRecord("six", "fd00:10::/48", { nodeCIDRs: { use: "Cilium", blockSize: { ipv6: 64 } } });

function network(text: string): Cidr {
  return parseCidr(text) ?? assert.fail(text);
}

async function grantTo(world: World, nodes: readonly string[], pool = POOL, family: Family = "IPv4") {
  const requests = nodes.map((node) => ({ family, node, nodeUID: `uid-${node}` }));
  const grants = [{ pool: parsed(pool), requests, taken: new IntervalSet() }];
  const granted: Block[] = [];
  const faults = new PoolFaults(world.context.clock);
  for await (const some of grantNodeCidrs({ ...world.context, view: world.cache, faults }, { grants }))
    granted.push(...some.map(({ record }) => record));
  await world.settle();
  return granted;
}

describe("a pool whose CIDRs cannot be given", () => {
  it("keeps no other from giving its own, but a store that is away does", async () => {
    const pools = [
      POOL,
      poolRecord("other", "10.245.0.0/22", { nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 24 } } }),
    ];
    let code: "WRITE_REFUSED" | "STORE_UNAVAILABLE" = "WRITE_REFUSED";
    await using world = await openWorld({
      pools,
      wrap: (store) =>
        altered(store, {
          create: async (kind, record) => {
            if (kind === "block" && "pool" in record && record.pool === "nodes")
              throw new BerthError(code, "a policy refuses it");
            return await store.create(kind, record);
          },
        }),
    });
    const said: unknown[] = [];
    const log = { ...world.context.log, error: (...line: unknown[]) => void said.push(line) };
    const grants = pools.map((pool) => ({
      pool: parsed(pool),
      requests: [{ family: "IPv4" as const, node: "a", nodeUID: "u" }],
      taken: new IntervalSet(),
    }));
    const granted = async () => {
      const found: string[] = [];
      const faults = new PoolFaults(world.context.clock);
      for await (const lot of grantNodeCidrs(
        { ...world.context, log, view: world.cache, faults },
        { grants },
      ))
        found.push(...lot.map(({ record }) => record.pool));
      return found;
    };
    assert.deepEqual(await granted(), ["other"]);
    const about = { pool: "nodes", error: "a policy refuses it" };
    assert.deepEqual(said, [["CIDRs of a pool cannot be given to nodes", about]]);
    code = "STORE_UNAVAILABLE";
    await assert.rejects(granted, { code });
  });
});

function conflictOf(result: Awaited<ReturnType<typeof takeOver>>): CidrConflict | undefined {
  return isConflict(result) ? result : undefined;
}

describe("a grant of a node's CIDR", () => {
  it("is a record of all of it, for its use, and of each a different one", async () => {
    await using world = await openWorld({ pools: [POOL, SIX] });
    const got = await grantTo(world, ["a", "b", "c", "d", "e"]);
    assert.equal(new Set(got.map(({ cidr }) => cidr)).size, 4);
    const { cidr, node, nodeUID, ...rest } = got[0] ?? assert.fail();
    assert.deepEqual(
      [rest, nodeUID],
      [{ pool: "nodes", use: "PodCIDR", holes: [], granted: true }, `uid-${node}`],
    );
    assert.ok(cutSpace(parsed(POOL), "IPv4")?.has(network(cidr)));
    const [six] = await grantTo(world, ["a"], SIX, "IPv6");
    assert.deepEqual([six?.use, network(six?.cidr ?? "").prefixLength], ["Cilium", 64]);
  });

  it("is of none with an address that is reserved, whatever the cache knows of it", async () => {
    await using world = await openWorld({ pools: [POOL, SIX] });
    for (const address of ["10.244.0.9", "10.244.1.9", "10.244.2.9", "fd00:10::7:0:0:0:1"])
      await world.realStore.create("reservation", reservationRecord(addr(address), { pool: "nodes" }));
    const four = [...(await grantTo(world, ["a"])), ...(await grantTo(world, ["a", "b", "c"]))];
    assert.deepEqual([...new Set(four.map(({ cidr }) => cidr))], ["10.244.3.0/24"]);
    assert.equal((await grantTo(world, ["a"], SIX, "IPv6")).length, 1);
    assert.equal((await world.all("block")).length, 2);
  });

  it("and a fixed address of it exclude each other, whoever writes first", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const record = { pool: "nodes", node: "a", nodeUID: "u", holes: [], use: "PodCIDR" } as const;
    const made = await world.realStore.create("block", { cidr: "10.244.1.0/24", ...record });
    assert.equal(await blockAgainst(world.context, addr("10.244.1.5")), undefined);
    assert.equal(await finishGrant(world.context, made.stored), undefined);
    assert.deepEqual(await world.all("block"), []);
    const [granted] = await grantTo(world, ["a"]);
    const inside = addr((granted?.cidr ?? "").replace("0/24", "5"));
    assert.equal((await blockAgainst(world.context, inside))?.node, "a");
  });

  it("is refused while another pool has addresses of the pool", async () => {
    await using world = await openWorld({ pools: [POOL] });
    await world.realStore.create("pool", poolRecord("late", "10.244.0.0/16"));
    assert.deepEqual(await grantTo(world, ["a", "b"]), []);
    assert.deepEqual(await world.all("block"), []);
  });
});

describe("a CIDR that a node has already", () => {
  it("is the first node's that is recorded, and the other one is told whose it is", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const over = (node: string, nodeUID = `uid-${node}`) =>
      takeOver(world.context, parsed(POOL), { node, nodeUID, cidr: network("10.244.2.0/24") });
    assert.equal(conflictOf(await over("a")), undefined);
    assert.equal(conflictOf(await over("a", "again")), undefined);
    assert.deepEqual(conflictOf(await over("b")), { cidr: "10.244.2.0/24", node: "a", isCooling: false });
    const [stored] = await world.all("block");
    const { granted, nodeUID, use } = stored?.record ?? {};
    assert.deepEqual([granted, nodeUID, use], [true, "again", "PodCIDR"]);
  });

  it("is not made a new object's once it was taken back", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const [granted] = await grantTo(world, ["a"]);
    const [seen] = await world.all("block");
    assert.ok(granted && seen);
    await world.realStore.replace("block", seen, { ...granted, releasedAt: 5 });
    const result = await ownedAs(world.context.store, seen, { node: "a", nodeUID: "second" });
    assert.equal(conflictOf(result)?.isCooling, true);
    assert.equal((await world.all("block"))[0]?.record.nodeUID, "uid-a");
  });
});
