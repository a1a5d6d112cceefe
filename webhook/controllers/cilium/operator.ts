// SPDX-License-Identifier: Apache-2.0

import { inParallel } from "../../../allocator/base/parallel.ts";
import { BlockTimes } from "../../../allocator/blocks/block-times.ts";
import { endCooldown } from "../../../allocator/blocks/give-back.ts";
import { finishGrant } from "../../../allocator/blocks/grant.ts";
import type { CidrShortage } from "../../../allocator/blocks/node-cidr-plan.ts";
import { PoolFaults } from "../../../allocator/blocks/pool-faults.ts";
import { RecentGrants } from "../../../allocator/blocks/recent-grants.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { Client } from "../../../kube/api/client.ts";
import type { Informers, ObservedNode } from "../../cluster-state/informers.ts";
import type { CiliumMode, CiliumNode } from "./cilium-node.ts";
import { ExaminedNodes } from "./examined-nodes.ts";
import { giveBackOfGone } from "./gone-cilium-nodes.ts";
import { grantCidrs, grantsOf, MOST_OF_A_NODE, type NodeAbout, type NodeRequest } from "./grant-cidrs.ts";
import { HeldAddresses } from "./held-addresses.ts";
import { PLANS, QUIET_MS, usedBy } from "./modes.ts";
import { NodeFaults } from "./node-faults.ts";
import { carryOut, type NodeView } from "./node-writer.ts";
import type { CiliumPlan } from "./plan.ts";
import {
  cidrsOf,
  ciliumPoolOf,
  ciliumPools,
  offersFor,
  ownedBlocks,
  QuietBlocks,
  situationOf,
} from "./situation.ts";

const AT_ONCE = 16;
const FULL_NODE = `this node has ${MOST_OF_A_NODE} CIDRs, and gets no more; make a pool of larger ones if it needs that many addresses`;

interface OperatorDeps {
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
  /** Neither a Node nor a CiliumNode of the name has been there for as long as the grace is; asked where none is seen. */
  readonly isAbsentLong: (name: string) => boolean;
  readonly quietMs?: number;
}

/** A node that lacks CIDRs, and the pools that it could have them of: there may be none. */
export type Lack = Pick<CidrShortage, "node" | "family" | "pools">;

/** Berth in the place of Cilium's operator, as far as addresses are concerned: pass by pass, from whatever is there. Any number may run. */
export class CiliumOperator {
  readonly #deps: OperatorDeps;
  readonly #quiet: QuietBlocks;
  readonly #recent: RecentGrants;
  readonly #examined: ExaminedNodes;
  readonly #faults: NodeFaults;
  readonly #poolFaults: PoolFaults;
  readonly #times = new BlockTimes();
  #shared: readonly string[] = [];

  constructor(deps: OperatorDeps) {
    this.#deps = deps;
    this.#faults = new NodeFaults(deps.context.log);
    this.#poolFaults = new PoolFaults(deps.context.clock);
    const isShown = (cidr: string) => deps.view.block(cidr) !== undefined;
    this.#recent = new RecentGrants(deps.context.clock, isShown);
    const keep = (stored: Stored<"block">) => this.#recent.keep(stored);
    this.#examined = new ExaminedNodes({ ...deps, keep });
    this.#quiet = new QuietBlocks(deps.context.clock, deps.quietMs ?? QUIET_MS[deps.mode]);
  }

  /** Nodes whose objects have, by the last pass, what could not be recorded for them: it is another node's. */
  get shared(): readonly string[] {
    return this.#shared;
  }

  /** Why CIDRs of a pool could not be given in the last pass, by its name. */
  get faults(): ReadonlyMap<string, string> {
    return this.#poolFaults.words;
  }

  /** Gives the nodes that lack CIDRs, since no pool has one that is free. */
  async pass(): Promise<readonly Lack[]> {
    const { nodes, ciliumNodes } = this.#deps;
    const pools = ciliumPools(this.#deps.view);
    const held = new HeldAddresses(() => ciliumNodes.all());
    this.#faults.begin();
    this.#poolFaults.beginPass();
    this.#poolFaults.forgetGone(() => Array.from(nodes.all(), ([node, { uid }]) => ({ node, nodeUID: uid })));
    this.#recent.forgetShown();
    await this.#settle();
    const seen = [...ciliumNodes.all()].flatMap(([name, node]) => {
      const object = nodes.get(name);
      return object === undefined ? [] : [{ object, node }];
    });
    await this.#createMissing(pools);
    this.#examined.noticePools(pools);
    // what nodes have already comes before anything is granted
    const wrong = new Map<string, readonly string[]>();
    await this.#each(
      seen,
      ({ node }) => node.name,
      async ({ object, node }) => {
        wrong.set(node.name, await this.#examined.takeOver(pools, object, node));
      },
    );
    this.#shared = [...wrong].flatMap(([name, words]) => (words.length > 0 ? [name] : []));
    const owned = ownedBlocks(this.#recent.beside(this.#deps.view.blocks()));
    const uids = [...owned.values()].flatMap((blocks) => blocks.map(({ uid }) => uid));
    this.#quiet.keepOnly(new Set(uids));
    const requests = await this.#each(
      seen,
      ({ node }) => node.name,
      async ({ object, node }) => {
        const view = { node, blocks: owned.get(node.name) ?? [] };
        const known = wrong.get(node.name);
        if (known === undefined) return undefined; // what it has is not known to be recorded
        const about = { object, wrong: known, held };
        const after = await this.#carryOut(pools, about, view);
        const { grants, wrong: words } = after.plan;
        const lacksPool = this.#isServedByNone(pools, object, after.view) || this.#isRefused(about, words);
        return { ...about, view: after.view, grants, lacksPool };
      },
    );
    const unserved = requests.filter(({ lacksPool }) => lacksPool);
    const none = unserved.map(({ object }): Lack => ({ node: object.name, family: "IPv4", pools: [] }));
    return [...(await this.#grant(pools, requests)), ...none];
  }

  /** What came of each for which it went well. */
  async #each<T, R>(
    all: readonly T[],
    nameOf: (one: T) => string,
    act: (one: T) => Promise<R | undefined>,
  ): Promise<readonly R[]> {
    const results = await inParallel(all, AT_ONCE, (one) => this.#faults.of(nameOf(one), () => act(one)));
    return results.flatMap((result) => (result === undefined ? [] : [result]));
  }

  /** No pool selects the node, and it has nothing from others. An agent in multi-pool asks, and one that asks for nothing lacks nothing. */
  #isServedByNone(pools: readonly Pool[], object: ObservedNode, { node, blocks }: NodeView): boolean {
    const { mode } = this.#deps;
    if (mode === "multi-pool" || blocks.length > 0 || offersFor(pools, object).length > 0) return false;
    return cidrsOf(mode, node).length === 0;
  }

  /** In multi-pool alone a plan says itself that there is no pool for what the agent asks for. */
  #isRefused(about: NodeAbout, all: readonly string[]): boolean {
    return this.#deps.mode === "multi-pool" && all.length > about.wrong.length;
  }

  async #carryOut(pools: readonly Pool[], { object, wrong, held }: NodeAbout, seen: NodeView) {
    const { view, mode } = this.#deps;
    const offers = offersFor(pools, object);
    const plan = ({ node, blocks }: NodeView): CiliumPlan => {
      const quiet = this.#quiet.see(blocks, usedBy(mode, node));
      const isOthers = (address: string) => held.isOthers(address, node.name);
      const planned = PLANS[mode]({ ...situationOf(view, { node, offers, blocks, quiet }), isOthers });
      const isFull = planned.grants.length > 0 && blocks.length >= MOST_OF_A_NODE;
      const words = [...wrong, ...planned.wrong, ...(isFull ? [FULL_NODE] : [])];
      return { ...planned, wrong: words, ...(isFull && { grants: [] }) };
    };
    return await carryOut(this.#deps, object.uid, seen, plan);
  }

  /** A record of the node is gone: what its object has is recorded again. */
  examineAgain(node: string): void {
    this.#examined.forget(node);
  }

  /** What is nobody's, or never was finished. */
  async #settle(): Promise<void> {
    const { context, view, mayWrite } = this.#deps;
    const own = [...view.blocks()].filter(({ record }) => record.use === "Cilium");
    await this.#each(
      own,
      ({ record }) => record.node,
      async (stored) => {
        if (!mayWrite()) return;
        const { releasedAt, granted } = stored.record;
        if (releasedAt !== undefined)
          return void (await endCooldown({ ...context, times: this.#times }, stored));
        if (granted !== true) return void (await finishGrant(context, stored));
        if (this.#isGone(stored)) await this.#giveBack(stored);
      },
    );
  }

  #isGone({ record: { node } }: Stored<"block">): boolean {
    const { nodes, ciliumNodes, isAbsentLong } = this.#deps;
    return nodes.get(node) === undefined && ciliumNodes.get(node) === undefined && isAbsentLong(node);
  }

  async #giveBack(stored: Stored<"block">): Promise<void> {
    const { context, client, nodeClient } = this.#deps;
    this.#examined.forget(stored.record.node);
    await giveBackOfGone({ context, ciliumNodes: client, nodes: nodeClient }, stored);
  }

  /** Empty: an object with CIDRs in it could come after its node has gone, and its CIDRs to others. It goes with its Node. */
  async #createMissing(pools: readonly Pool[]): Promise<void> {
    const { nodes, ciliumNodes, client, mayWrite } = this.#deps;
    const owned = ownedBlocks(this.#recent.beside(this.#deps.view.blocks()));
    const missing = [...nodes.all()].flatMap(([name, node]) => {
      // what it has of pools that are not for it any more it would never give back
      const isFor = offersFor(pools, node).length > 0 || owned.has(name);
      return isFor && ciliumNodes.get(name) === undefined ? [node] : [];
    });
    await this.#each(
      missing,
      ({ name }) => name,
      async ({ name, uid }) => {
        if (!mayWrite()) return;
        const ownerReferences = [{ apiVersion: "v1", kind: "Node", name, uid }];
        await client.create({ name }, { metadata: { ownerReferences }, spec: {} });
      },
    );
  }

  async #grant(pools: readonly Pool[], requests: readonly NodeRequest[]): Promise<readonly Lack[]> {
    const lacks: Lack[] = [];
    const deps = { ...this.#deps, recent: this.#recent, faults: this.#poolFaults };
    for (const own of this.#grantedFrom(pools)) {
      const wanted = requests.filter(({ grants }) => grantsOf(own, grants).length > 0);
      if (wanted.length === 0 || !this.#deps.mayWrite()) continue;
      const { granted, short } = await grantCidrs(deps, own, wanted);
      lacks.push(...short);
      await this.#each(
        wanted,
        ({ view }) => view.node.name,
        async ({ view, ...about }) => {
          const more = granted.get(view.node.name) ?? [];
          if (more.length > 0)
            await this.#carryOut(pools, about, { ...view, blocks: [...view.blocks, ...more] });
        },
      );
    }
    return lacks;
  }

  /** Pools any of which will do: in multi-pool agents ask for each of Cilium's pools by its name, else for addresses. */
  #grantedFrom(pools: readonly Pool[]): readonly (readonly Pool[])[] {
    return this.#deps.mode === "multi-pool" ? [...Map.groupBy(pools, ciliumPoolOf).values()] : [pools];
  }
}
