// SPDX-License-Identifier: Apache-2.0

import { isStoreFault, messageOf } from "../base/errors.ts";
import { inParallel } from "../base/parallel.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Context } from "../cache/context.ts";
import { type Family, parseCidr } from "../ip/address.ts";
import type { Stored } from "../store/store.ts";
import { BlockTimes } from "./block-times.ts";
import { endCooldown, giveBack } from "./give-back.ts";
import { finishGrant } from "./grant.ts";
import { GrantedCidrs } from "./granted-cidrs.ts";
import { believed, NamedCidrs, namedBy, namesOthers } from "./named-cidrs.ts";
import { grantNodeCidrs, isConflict, ownedAs } from "./node-cidr-grant.ts";
import { type CidrShortage, type NodeCidrPlan, planNodeCidrs } from "./node-cidr-plan.ts";
import { type CidrCollision, takeOverAll } from "./node-cidr-take-over.ts";
import { PoolFaults } from "./pool-faults.ts";
import { SHOWN_MS } from "./recent-grants.ts";

/** A Node as far as its CIDRs go. */
export interface ClusterNode {
  readonly name: string;
  readonly uid: string;
  readonly labels: Labels;
  /** What its spec says: once it says something, that never changes. */
  readonly podCIDRs: readonly string[];
  /** Its spec says nothing, and annotations do. */
  readonly isAnnotated?: boolean;
}

/** What the distributor goes by besides the records, and what writes into Nodes. */
export interface NodeFacts {
  /** All Nodes; may be behind. */
  nodes(): Iterable<ClusterNode>;
  /** The Node as it is now, read from the API server. */
  live(name: string): Promise<ClusterNode | undefined>;
  /** No Node of that name was there for as long as the grace lasts, and the API server has none now. */
  gone(name: string): Promise<boolean>;
  /** Writes the CIDRs into exactly this Node; `changed`: it is gone, another, or has CIDRs by now, and nothing was written. */
  writePodCIDRs(node: ClusterNode, cidrs: readonly string[]): Promise<"written" | "changed">;
}

type Deps = Context & {
  readonly view: Pick<
    RecordCache,
    "pools" | "pool" | "blocks" | "block" | "reservationCount" | "unpickable" | "occupants"
  >;
};

/** What people are to know of. */
export interface CidrReport {
  /** Nodes for which no CIDR is free. */
  readonly short: readonly CidrShortage[];
  /** Nodes whose CIDRs are, as recorded, others'. */
  readonly collisions: readonly CidrCollision[];
  /** Nodes that wait for a CIDR, for whatever reason. */
  readonly waiting: number;
}

/** Writes at the same time. */
const AT_ONCE = 32;

/**
 * Gives every Node the CIDRs that its spec has room for, one of each family, and takes them back when it is gone: pass by pass, from
 * whatever is there. Any number of them may run. A CIDR is a Node's by its record, which is there before the Node is told and names the
 * Node's UID; so what is not told yet, or whose Node is gone, can be gone on with by anybody (ADR 0029).
 */
export class NodeCidrDistributor {
  readonly #context: Deps & { readonly times: BlockTimes };
  readonly #facts: NodeFacts;
  readonly #families: readonly Family[];
  readonly #mayWrite: () => boolean;
  readonly #granted: GrantedCidrs;
  readonly #faults: PoolFaults;
  #named = new NamedCidrs([]);
  readonly #written = new Map<string, number>(); // UID of a Node -> until when it is taken as told

  /** `families`: in the order in which a Node lists them; none: nothing is given, only taken back. */
  constructor(
    context: Deps,
    facts: NodeFacts,
    {
      families,
      mayWrite = () => true,
    }: { readonly families: readonly Family[]; readonly mayWrite?: () => boolean },
  ) {
    this.#context = { ...context, times: new BlockTimes() };
    this.#facts = facts;
    this.#granted = new GrantedCidrs(context);
    this.#faults = new PoolFaults(context.clock);
    this.#families = families;
    this.#mayWrite = mayWrite;
  }

  /** Why CIDRs of a pool could not be given in the last pass, by its name. */
  get faults(): ReadonlyMap<string, string> {
    return this.#faults.words;
  }

  async pass(): Promise<CidrReport> {
    this.#forget();
    this.#faults.beginPass();
    const nodes = new Map([...this.#facts.nodes()].map((node) => [node.name, node]));
    this.#faults.forgetGone(() => [...nodes.values()].map(({ name, uid }) => ({ node: name, nodeUID: uid })));
    await this.#each(
      this.#granted.all(),
      ({ key }) => key,
      (stored) => this.#settle(stored, nodes.get(stored.record.node)),
    );
    if (this.#families.length === 0) return { short: [], collisions: [], waiting: 0 };
    const having = [...nodes.values()].filter(({ podCIDRs }) => podCIDRs.length > 0);
    const collisions = await this.#takeOver(having);
    const saying = believed(having, this.#context.view.pools());
    this.#named = new NamedCidrs(saying);
    const waiting = [...nodes.values()].filter((node) => this.#isWaiting(node));
    await this.#writeAll(waiting);
    const plan = this.#plan(waiting, saying);
    const context = { ...this.#context, atOnce: AT_ONCE, faults: this.#faults };
    for await (const lot of grantNodeCidrs(context, plan, this.#mayWrite)) {
      for (const block of lot) this.#granted.keep(block);
      const served = new Set(lot.map(({ record }) => record.node));
      await this.#writeAll(waiting.filter(({ name }) => served.has(name)));
    }
    const { length } = waiting.filter((node) => this.#isWaiting(node));
    return { short: plan.short, collisions, waiting: length };
  }

  #plan(waiting: readonly ClusterNode[], saying: readonly ClusterNode[]): NodeCidrPlan {
    const { view } = this.#context;
    const wants = Object.fromEntries(this.#families.map((family) => [family, 1]));
    const own = this.#granted.own().map(({ record: { node, cidr } }) => ({ name: node, podCIDRs: [cidr] }));
    const untold = new Set(waiting.map(({ name }) => name));
    // what another Node says it has by now no Node can be told: its own gets another, and that one goes
    const isOthers = ({ key, record: { node } }: Stored<"block">) =>
      untold.has(node) && this.#named.touches(key);
    return planNodeCidrs({
      use: "PodCIDR",
      pools: view.pools(),
      nodes: waiting.map(({ name, uid, labels }) => ({ node: name, nodeUID: uid, labels, wants })),
      // else those that are refused keep the last ones from others
      lineOf: (node) => this.#faults.lineOf(node),
      blocks: this.#granted.all().flatMap((stored) => (isOthers(stored) ? [] : [stored.record])),
      unpickable: (pool, family) => view.unpickable(pool, family),
      inUse: [...saying, ...own].flatMap(namedBy),
    });
  }

  async #takeOver(having: readonly ClusterNode[]): Promise<readonly CidrCollision[]> {
    const { store, view } = this.#context;
    const known = new Map(this.#granted.all().map((stored) => [stored.key, stored]));
    const keep = (stored: Stored<"block">) => this.#granted.keep(stored);
    const isLeft = (owner: string, cidr: string) => this.#isLeftBy(owner, cidr);
    const seen = { known, pools: view.pools(), keep, isLeft, mayWrite: this.#mayWrite };
    const collisions: CidrCollision[] = [];
    await this.#each(
      having,
      ({ name }) => name,
      async (node) => {
        collisions.push(...(await takeOverAll({ store }, seen, node)));
      },
    );
    return collisions;
  }

  /** Undefined: not all families have one yet. */
  #completeFor(
    { name }: ClusterNode,
    own: readonly Stored<"block">[],
  ): readonly Stored<"block">[] | undefined {
    const mine = own.filter(
      ({ key, record }) =>
        record.node === name &&
        record.granted === true &&
        record.releasedAt === undefined &&
        // whatever the record says: two Nodes would have it from then on
        !this.#named.touches(key),
    );
    const found = this.#families.flatMap(
      (family) => mine.find(({ key }) => parseCidr(key)?.family === family) ?? [],
    );
    return found.length === this.#families.length ? found : undefined;
  }

  async #writeAll(nodes: readonly ClusterNode[]): Promise<void> {
    const byNode = Map.groupBy(this.#granted.all(), ({ record }) => record.node);
    await this.#each(
      nodes,
      ({ name }) => name,
      async (node) => {
        const complete = this.#completeFor(node, byNode.get(node.name) ?? []);
        if (complete !== undefined) await this.#writePodCIDRs(node, complete);
      },
    );
  }

  /** Its record names this Node object before the object is told: then nobody takes the CIDR back as that of one that is gone. */
  async #writePodCIDRs(node: ClusterNode, blocks: readonly Stored<"block">[]): Promise<void> {
    const cidrs: string[] = [];
    for (const stored of blocks) {
      const to = { node: node.name, nodeUID: node.uid };
      const owned =
        stored.record.nodeUID === node.uid ? stored : await ownedAs(this.#context.store, stored, to);
      if (isConflict(owned) || owned.record.granted !== true) return void this.#granted.drop(stored.key);
      this.#granted.keep(owned);
      cidrs.push(owned.record.cidr);
    }
    if (!this.#mayWrite()) return;
    if ((await this.#facts.writePodCIDRs(node, cidrs)) === "written")
      this.#written.set(node.uid, this.#context.clock.monotonic() + SHOWN_MS);
  }

  #isWaiting({ uid, podCIDRs }: ClusterNode): boolean {
    return podCIDRs.length === 0 && !this.#written.has(uid);
  }

  async #settle(stored: Stored<"block">, node: ClusterNode | undefined): Promise<void> {
    if (stored.record.releasedAt !== undefined) return void (await endCooldown(this.#context, stored));
    const isLeft =
      node === undefined ? await this.#facts.gone(stored.record.node) : await this.#isUnused(stored, node);
    if (isLeft) {
      this.#granted.drop(stored.key);
      return void (await giveBack(this.#context, stored, { kind: "fenced", node: stored.record.node }));
    }
    if (node === undefined || stored.record.granted === true) return;
    const granted = await finishGrant(this.#context, stored);
    if (granted !== undefined) this.#granted.keep(granted);
  }

  /** The Node has other CIDRs, which stay: nobody will ever use this one. */
  async #isUnused({ key }: Stored<"block">, node: ClusterNode): Promise<boolean> {
    if (!namesOthers(node, key)) return false;
    const live = await this.#facts.live(node.name);
    return live !== undefined && namesOthers(live, key);
  }

  /** The Node is there, and does not name it: another one that does may have it. */
  async #isLeftBy(owner: string, text: string): Promise<boolean> {
    const live = await this.#facts.live(owner);
    return live !== undefined && (live.podCIDRs.length === 0 || namesOthers(live, text));
  }

  #forget(): void {
    this.#granted.forgetShown();
    const now = this.#context.clock.monotonic();
    for (const [uid, until] of this.#written) if (now >= until) this.#written.delete(uid);
  }

  /** What is wrong with one says nothing about the next one; what is wrong with the store does. */
  async #each<T>(
    all: readonly T[],
    nameOf: (one: T) => string,
    act: (one: T) => Promise<void>,
  ): Promise<void> {
    await inParallel(all, AT_ONCE, async (one) => {
      if (!this.#mayWrite()) return;
      try {
        await act(one);
      } catch (error) {
        if (isStoreFault(error)) throw error;
        this.#context.log.error("CIDR of a node cannot be settled", {
          key: nameOf(one),
          error: messageOf(error),
        });
      }
    });
  }
}
