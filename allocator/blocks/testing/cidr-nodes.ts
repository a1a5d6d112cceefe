// SPDX-License-Identifier: Apache-2.0
// Nodes that get CIDRs of pools, and what must hold of these whatever becomes of the nodes.
import assert from "node:assert/strict";
import type { Failure } from "../../../test/support/failing-store.ts";
import { poolRecord } from "../../../test/support/fixtures.ts";
import type { World } from "../../../test/support/world.ts";
import { BerthError } from "../../base/errors.ts";
import { type Family, parseCidr } from "../../ip/address.ts";
import { fullInterval, intersection } from "../../ip/ip-range.ts";
import type { PoolRecord } from "../../pool/pool.ts";
import type { Store } from "../../store/store.ts";
import { type ClusterNode, NodeCidrDistributor, type NodeFacts } from "../node-cidr-distributor.ts";

/** Nodes as an API server keeps them: what one says of its CIDRs it says for good. */
export class Nodes implements NodeFacts {
  readonly there = new Map<string, ClusterNode>();
  readonly seen = new Map<string, ClusterNode>(); // what a watch shows of them
  #uids = 0;
  /** Counts writes of the process whose facts these are; thrown at that one. */
  failAt: { readonly n: number; readonly when: Failure } | undefined;
  #writes = 0;

  add(name: string, over: Partial<ClusterNode> = {}): ClusterNode {
    const node = { name, uid: `uid-${++this.#uids}`, labels: {}, podCIDRs: [], ...over };
    this.there.set(name, node);
    return node;
  }

  show(): void {
    this.seen.clear();
    for (const [name, node] of this.there) this.seen.set(name, node);
  }

  nodes(): Iterable<ClusterNode> {
    return [...this.seen.values()];
  }

  async live(name: string): Promise<ClusterNode | undefined> {
    return this.there.get(name);
  }

  async gone(name: string): Promise<boolean> {
    return !this.there.has(name);
  }

  async writePodCIDRs(node: ClusterNode, cidrs: readonly string[]): Promise<"written" | "changed"> {
    const n = ++this.#writes;
    if (this.failAt?.n === n && this.failAt.when === "before")
      throw new BerthError("STORE_UNAVAILABLE", "died");
    const now = this.there.get(node.name);
    if (now?.uid !== node.uid || now.podCIDRs.length > 0) return "changed";
    this.there.set(node.name, { ...now, podCIDRs: cidrs });
    if (this.failAt?.n === n) throw new BerthError("STORE_UNAVAILABLE", "died");
    return "written";
  }
}

export function nodesPool(name: string, cidr: string, length: number, spec: object = {}): PoolRecord {
  const blockSize = cidr.includes(":") ? { ipv6: length } : { ipv4: length };
  return poolRecord(name, cidr, { nodeCIDRs: { use: "PodCIDR", blockSize }, cooldown: "0s", ...spec });
}

export const FOUR = nodesPool("four", "10.244.0.0/21", 24);
export const SIX = nodesPool("six", "fd00:10::/48", 64);

export function distributor(
  world: World,
  nodes: NodeFacts,
  {
    families = ["IPv4"],
    store = world.realStore,
  }: { readonly families?: readonly Family[]; readonly store?: Store } = {},
): NodeCidrDistributor {
  return new NodeCidrDistributor({ ...world.context, store, view: world.cache }, nodes, { families });
}

/** No two nodes have an address in common, and what each says is recorded as its. */
export async function check(world: World, nodes: Nodes): Promise<void> {
  const all = [...nodes.there.values()].flatMap(({ name, podCIDRs }) =>
    podCIDRs.map((text) => ({ name, text })),
  );
  const blocks = await world.all("block");
  for (const [i, { name, text }] of all.entries()) {
    const cidr = parseCidr(text) ?? assert.fail(text);
    const shared = all.slice(i + 1).find((other) => {
      const network = parseCidr(other.text);
      return (
        network?.family === cidr.family &&
        intersection(fullInterval(network), fullInterval(cidr)) !== undefined
      );
    });
    assert.equal(shared, undefined, `${text} of ${name}`);
    const record = blocks.find(({ key }) => key === text)?.record;
    if (record !== undefined) assert.equal(record.node, name, text);
  }
}

export async function settle(world: World, nodes: Nodes): Promise<void> {
  await world.settle();
  nodes.show();
}

export async function pass(world: World, nodes: Nodes, by: NodeCidrDistributor) {
  await settle(world, nodes);
  const report = await by.pass();
  await settle(world, nodes);
  await check(world, nodes);
  return report;
}
