// SPDX-License-Identifier: Apache-2.0
// Pods, nodes and pools, and what nodes need of these by the count of them.
import assert from "node:assert/strict";
import type { Block } from "../../allocator/model/block.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { PoolRecord, PoolSpec } from "../../allocator/pool/pool.ts";
import { bindingTo, claimRecord, poolRecord } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { namespaceFacts, observedNode, observedPod } from "../cluster-state/projections.ts";
import { FreedAddresses } from "../controllers/blocks/freed-addresses.ts";
import { countNodeNeeds } from "../controllers/blocks/node-needs.ts";
import { PodCounts } from "../controllers/blocks/pod-counts.ts";
import { WaitingPods } from "../controllers/blocks/waiting-pods.ts";

interface Scene {
  readonly pools: readonly PoolRecord[];
  readonly nodes?: Readonly<Record<string, object>>; // name -> of its object
  readonly pods?: Readonly<Record<string, object>>; // name -> of its object
  readonly blocks?: readonly Partial<Block>[];
  readonly claims?: readonly (string | Partial<Claim>)[]; // of pods of these names
  readonly namespace?: object;
  /** Addresses that pods had a moment ago. */
  readonly freed?: readonly string[];
  /** For how long pods have been waiting before this count. */
  readonly waitedMs?: number;
}

const item = (name: string, object: object, namespace?: string) => {
  const { metadata = {}, ...rest } = object as { metadata?: object };
  const meta = {
    name,
    uid: `uid-${name}`,
    resourceVersion: "1",
    ...(namespace === undefined ? {} : { namespace }),
  };
  return { ...rest, metadata: { ...meta, ...metadata } };
};

const reflected = <T>(made: readonly (readonly [string, T])[]) => {
  const map = new Map(made);
  return { all: () => map.entries() as never, get: (key: string) => map.get(key) };
};

async function store(world: World, scene: Scene): Promise<void> {
  for (const block of scene.blocks ?? []) {
    const { status, ...record } = block;
    const base = { cidr: "10.0.0.0/28", pool: "web", node: "a", nodeUID: "u", holes: [], granted: true };
    const made = await world.realStore.create("block", { ...base, ...record });
    if (status !== undefined) await world.realStore.reportBlock(made.stored, status);
  }
  for (const one of scene.claims ?? []) {
    const { name = "", ...more } = typeof one === "string" ? { name: one } : one;
    await world.realStore.create("claim", claimRecord({ name, binding: bindingTo(name, "a"), ...more }));
  }
}

/** pool/family of each pool -> node:addresses, and how many of those that it has cool. */
export async function needs(scene: Scene): Promise<Record<string, string>> {
  await using world = await openWorld({ pools: scene.pools });
  await store(world, scene);
  await world.settle();
  const nodes = Object.entries(scene.nodes ?? { a: {}, b: {} });
  const pods = Object.entries(scene.pods ?? {});
  let rests = 0;
  let now = 0;
  const waiting = new WaitingPods(() => now);
  for (const [name] of pods) waiting.see({ uid: `uid-${name}` }, false);
  waiting.end();
  now = scene.waitedMs ?? 0;
  const freed = new FreedAddresses({ monotonic: () => now }, world.cache);
  for (const addresses of scene.freed ?? []) freed.see(undefined, { addresses, ended: false });
  const seen = pods.map(
    ([name, object]) => [`shop/${name}`, observedPod(item(name, object, "shop"))] as const,
  );
  const demand = await countNodeNeeds(
    {
      counts: new PodCounts(world.cache, { pods: reflected(seen) }),
      waiting,
      freed,
      cache: world.cache,
      watches: {
        nodes: reflected(nodes.map(([name, object]) => [name, observedNode(item(name, object))])),
        namespaces: reflected([["shop", namespaceFacts(item("shop", scene.namespace ?? {}))]]),
      },
    },
    async () => void rests++,
  );
  assert.ok(rests >= Math.floor(pods.length / 500));
  const found: Record<string, string> = {};
  for (const pool of world.cache.pools()) {
    for (const family of pool.families) {
      const own = demand
        .needs(pool, family)
        .map(
          ({ node, pods: count, cooling = 0 }) =>
            `${node}:${count}${cooling > 0 ? ` cooling:${cooling}` : ""}`,
        );
      found[`${pool.name}/${family}`] = own.join(" ");
    }
  }
  return found;
}

export const web = (over: Partial<PoolSpec> = {}, name = "web", cidr: string | string[] = "10.0.0.0/24") =>
  poolRecord(name, cidr, { blockSize: { ipv4: 28 }, ...over });
export const on = (nodeName: string, more: object = {}) => ({ spec: { nodeName, ...more } });

/** A pod that was told addresses of interfaces. */
export const reported = (node: string, addresses: string) => ({
  ...on(node),
  metadata: { annotations: { "berth.dev/claim": "x", "berth.dev/addresses": addresses } },
});
