// SPDX-License-Identifier: Apache-2.0

import { inParallel } from "../../../allocator/base/parallel.ts";
import { endCooldown } from "../../../allocator/blocks/give-back.ts";
import { finishGrant } from "../../../allocator/blocks/grant.ts";
import { grantNodeCidrs } from "../../../allocator/blocks/node-cidr-grant.ts";
import { type CidrNode, type CidrShortage, planNodeCidrs } from "../../../allocator/blocks/node-cidr-plan.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import type { Cidr, Family } from "../../../allocator/ip/address.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { Client } from "../../../kube/api/client.ts";
import type { Informers, ObservedNode } from "../../cluster-state/informers.ts";
import type { CiliumMode, CiliumNode } from "./cilium-node.ts";
import { giveBackOfGone } from "./gone-nodes.ts";
import { carryOut, type NodeView } from "./node-writer.ts";
import { type CiliumPlan, type Grant, listing, type Situation } from "./plan.ts";
import { planClusterPoolNode } from "./plan-cluster-pool.ts";
import { planCrdNode } from "./plan-crd.ts";
import { planMultiPoolNode } from "./plan-multi-pool.ts";
import {
  cidrsOf,
  ciliumPoolOf,
  ciliumPools,
  offersFor,
  ownedBlocks,
  QuietBlocks,
  RecentBlocks,
  situationOf,
} from "./situation.ts";
import { takeOverFor } from "./take-over.ts";

const PLANS: Readonly<Record<CiliumMode, (situation: Situation) => CiliumPlan>> = {
  crd: planCrdNode,
  "cluster-pool": planClusterPoolNode,
  "multi-pool": planMultiPoolNode,
};

/** An agent tells what is used once in 15 s, and writes its list of CIDRs anew once in 60 s: after that it would have said otherwise. */
const QUIET_MS: Readonly<Record<CiliumMode, number>> = {
  crd: 20_000,
  "cluster-pool": 20_000,
  "multi-pool": 75_000,
};

const AT_ONCE = 16;

export interface OperatorDeps {
  readonly context: Context;
  readonly view: RecordCache;
  readonly mode: CiliumMode;
  readonly nodes: Pick<Informers["nodes"], "all" | "get">;
  readonly ciliumNodes: {
    all(): Iterable<readonly [string, CiliumNode]>;
    get(name: string): CiliumNode | undefined;
  };
  /** Of CiliumNodes. */
  readonly client: Client;
  /** Of Nodes. */
  readonly nodeClient: Pick<Client, "get">;
  readonly mayWrite: () => boolean;
  readonly quietMs?: number;
}

/** A node that lacks CIDRs, and the pools that it could have them of: there may be none. */
export type Lack = Pick<CidrShortage, "node" | "family" | "pools">;

/** Berth in the place of Cilium's operator, as far as addresses are concerned: pass by pass, from whatever is there. Any number may run. */
export class CiliumOperator {
  readonly #deps: OperatorDeps;
  readonly #quiet: QuietBlocks;
  readonly #recent: RecentBlocks;
  readonly #examined = new Map<string, string>(); // node -> version of its object whose CIDRs have records
  #examinedFor = ""; // the pools that they were examined for
  #shared: readonly string[] = [];

  constructor(deps: OperatorDeps) {
    this.#deps = deps;
    this.#recent = new RecentBlocks(deps.view, deps.context.clock);
    this.#quiet = new QuietBlocks(deps.context.clock, deps.quietMs ?? QUIET_MS[deps.mode]);
  }

  /** Nodes whose objects have, by the last pass, what could not be recorded for them: it is another node's. */
  get shared(): readonly string[] {
    return this.#shared;
  }

  /** Gives the nodes that lack CIDRs, since no pool has one that is free. */
  async pass(): Promise<readonly Lack[]> {
    const { nodes, ciliumNodes } = this.#deps;
    const pools = ciliumPools(this.#deps.view);
    await this.#settle();
    const seen = [...ciliumNodes.all()].flatMap(([name, node]) => {
      const object = nodes.get(name);
      return object === undefined ? [] : [{ object, node }];
    });
    await this.#createMissing(pools);
    this.#noticePools(pools);
    // what nodes have already comes before anything is granted
    const wrong = new Map<string, readonly string[]>();
    await inParallel(seen, AT_ONCE, async ({ object, node }) => {
      wrong.set(node.name, await this.#takeOver(pools, object, node));
    });
    this.#shared = [...wrong].flatMap(([name, words]) => (words.length > 0 ? [name] : []));
    const owned = ownedBlocks(this.#recent.all());
    const uids = [...owned.values()].flatMap((blocks) => blocks.map(({ uid }) => uid));
    this.#quiet.keepOnly(new Set(uids));
    const requests = await inParallel(seen, AT_ONCE, async ({ object, node }) => {
      const view = { node, blocks: owned.get(node.name) ?? [] };
      const about = { object, wrong: wrong.get(node.name) ?? [] };
      const after = await this.#carryOut(pools, about, view);
      const { grants, wrong: told } = after.plan;
      const lacksPool = this.#isServedByNone(pools, object, after.view) || this.#isRefused(about, told);
      return { ...about, view: after.view, grants, lacksPool };
    });
    const unserved = requests.filter(({ lacksPool }) => lacksPool);
    const none = unserved.map(({ object }): Lack => ({ node: object.name, family: "IPv4", pools: [] }));
    return [...(await this.#grant(pools, requests)), ...none];
  }

  /** No pool selects the node, and it has nothing from others. An agent in multi-pool asks, and one that asks for nothing lacks nothing. */
  #isServedByNone(pools: readonly Pool[], object: ObservedNode, { node, blocks }: NodeView): boolean {
    const { mode } = this.#deps;
    if (mode === "multi-pool" || blocks.length > 0 || offersFor(pools, object).length > 0) return false;
    return cidrsOf(mode, node).length === 0;
  }

  /** In multi-pool alone a plan says itself that there is no pool for what the agent asks for. */
  #isRefused(about: NodeAbout, told: readonly string[]): boolean {
    return this.#deps.mode === "multi-pool" && told.length > about.wrong.length;
  }

  async #carryOut(pools: readonly Pool[], { object, wrong }: NodeAbout, seen: NodeView) {
    const { view, mode } = this.#deps;
    const offers = offersFor(pools, object);
    const plan = ({ node, blocks }: NodeView): CiliumPlan => {
      const quiet = this.#quiet.see(blocks, usedBy(mode, node));
      const planned = PLANS[mode](situationOf(view, { node, offers, blocks, quiet }));
      return { ...planned, wrong: [...wrong, ...planned.wrong] };
    };
    return await carryOut(this.#deps, object.uid, seen, plan);
  }

  /** A pool that is new, or has another range, may have what a node has long since. */
  #noticePools(pools: readonly Pool[]): void {
    const now = JSON.stringify(pools.map(({ name, spec }) => [name, spec.ranges]));
    if (now !== this.#examinedFor) this.#examined.clear();
    this.#examinedFor = now;
  }

  async #takeOver(
    pools: readonly Pool[],
    object: ObservedNode,
    node: CiliumNode,
  ): Promise<readonly string[]> {
    if (this.#examined.get(node.name) === node.resourceVersion) return [];
    const keep = (stored: Stored<"block">) => this.#recent.keep(stored);
    const wrong = await takeOverFor({ ...this.#deps, keep }, pools, object, cidrsOf(this.#deps.mode, node));
    if (wrong.length === 0) this.#examined.set(node.name, node.resourceVersion);
    return wrong;
  }

  /** What is nobody's, or never was finished. */
  async #settle(): Promise<void> {
    const { context, view, mayWrite } = this.#deps;
    const own = [...view.blocks()].filter(({ record }) => record.use === "Cilium");
    await inParallel(own, AT_ONCE, async (stored) => {
      if (!mayWrite()) return;
      const { releasedAt, granted, pool } = stored.record;
      if (releasedAt !== undefined) return void (await endCooldown(context, stored));
      if (granted !== true) {
        if (view.pool(pool)?.disabled !== false) return void (await context.store.remove("block", stored));
        return void (await finishGrant(context, stored));
      }
      if (this.#isGone(stored)) await this.#giveBack(stored);
    });
  }

  #isGone({ record: { node } }: Stored<"block">): boolean {
    const { nodes, ciliumNodes } = this.#deps;
    return nodes.get(node) === undefined && ciliumNodes.get(node) === undefined;
  }

  async #giveBack(stored: Stored<"block">): Promise<void> {
    const { context, client, nodeClient } = this.#deps;
    this.#examined.delete(stored.record.node);
    await giveBackOfGone({ context, ciliumNodes: client, nodes: nodeClient }, stored);
  }

  /** Empty: an object with CIDRs in it could come after its node has gone, and its CIDRs to others. It goes with its Node. */
  async #createMissing(pools: readonly Pool[]): Promise<void> {
    const { nodes, ciliumNodes, client, mayWrite } = this.#deps;
    const missing = [...nodes.all()].flatMap(([name, node]) => {
      const isFor = ciliumNodes.get(name) === undefined && offersFor(pools, node).length > 0;
      return isFor ? [node] : [];
    });
    await inParallel(missing, AT_ONCE, async ({ name, uid }) => {
      if (!mayWrite()) return;
      const ownerReferences = [{ apiVersion: "v1", kind: "Node", name, uid }];
      await client.create({ name }, { metadata: { ownerReferences }, spec: {} });
    });
  }

  async #grant(pools: readonly Pool[], requests: readonly NodeRequest[]): Promise<readonly Lack[]> {
    const lacks: Lack[] = [];
    for (const ciliumPool of new Set(pools.map(ciliumPoolOf))) {
      const own = pools.filter((pool) => ciliumPoolOf(pool) === ciliumPool);
      const wanted = requests.filter(({ grants }) => grantsOf(own, grants).length > 0);
      if (wanted.length === 0 || !this.#deps.mayWrite()) continue;
      const { granted, short } = await this.#grantOf(own, wanted);
      lacks.push(...short);
      await inParallel(wanted, AT_ONCE, async ({ view, ...about }) => {
        const more = granted.get(view.node.name) ?? [];
        if (more.length > 0)
          await this.#carryOut(pools, about, { ...view, blocks: [...view.blocks, ...more] });
      });
    }
    return lacks;
  }

  async #grantOf(pools: readonly Pool[], wanted: readonly NodeRequest[]) {
    const { context, view, mode, ciliumNodes, mayWrite } = this.#deps;
    const blocks = this.#recent.all().map(({ record }) => record);
    const nodes = wanted.map(({ object, grants, view: { blocks: has } }): CidrNode => {
      const wants: Partial<Record<Family, number>> = {};
      for (const grant of grantsOf(pools, grants)) wants[grant.family] = countOf(pools, has, grant);
      return { node: object.name, nodeUID: object.uid, labels: object.labels, wants };
    });
    const plan = planNodeCidrs({
      ...{ use: "Cilium", pools, nodes },
      blocks: blocks.filter(({ pool }) => pools.some(({ name }) => name === pool)),
      unpickable: (pool, family) => view.unpickable(pool, family),
      inUse: [...ciliumNodes.all()].flatMap(([, node]) => cidrsOf(mode, node)),
    });
    const granted = new Map<string, Stored<"block">[]>();
    for await (const lot of grantNodeCidrs({ ...context, view }, plan, mayWrite)) {
      for (const stored of lot) {
        this.#recent.keep(stored);
        const { node } = stored.record;
        granted.set(node, [...(granted.get(node) ?? []), stored]);
      }
    }
    return { granted, short: plan.short };
  }
}

interface NodeAbout {
  readonly object: ObservedNode;
  readonly wrong: readonly string[];
}

interface NodeRequest extends NodeAbout {
  readonly view: NodeView;
  readonly grants: readonly Grant[];
  /** There is no pool that could give it what it needs. */
  readonly lacksPool: boolean;
}

function grantsOf(pools: readonly Pool[], grants: readonly Grant[]): readonly Grant[] {
  return grants.filter((grant) => grant.pools.some((name) => pools.some((pool) => pool.name === name)));
}

/** So many blocks it shall have in all: those that it has, and what it lacks in blocks of the size that it will get first. */
function countOf(pools: readonly Pool[], has: readonly Stored<"block">[], grant: Grant): number {
  const names = new Set(pools.map(({ name }) => name));
  const own = has.filter(
    ({ record }) => names.has(record.pool) && familyOfCidr(record.cidr) === grant.family,
  );
  return own.length + Math.max(1, Math.ceil(grant.addresses / grant.blockSize));
}

function familyOfCidr(cidr: string): Family {
  return cidr.includes(":") ? "IPv6" : "IPv4";
}

/** Whether the object shows that something of a block is used: then it is not quiet. */
function usedBy(mode: CiliumMode, node: CiliumNode) {
  if (mode === "crd") return listing([...node.used].map((one) => `${one}/${one.includes(":") ? 128 : 32}`));
  if (mode === "cluster-pool") return ({ text }: Cidr) => node.cidrStates.get(text) !== "released";
  return listing(node.allocated.flatMap(({ cidrs }) => cidrs));
}
