// SPDX-License-Identifier: Apache-2.0

import { listed } from "../../../allocator/base/listed.ts";
import { BlockDistributor, type Shortage } from "../../../allocator/blocks/distributor.ts";
import type { BlockEvidence } from "../../../allocator/blocks/give-back.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { Controller } from "../../../kube/controller/run-queue.ts";
import { type ChangedEvents, type PoolNote, poolEvents } from "../changed-events.ts";
import type { ControllerDeps } from "../controller.ts";
import { type Passes, PassLoop } from "../pass-loop.ts";
import { followNodes, followPools } from "../pass-triggers.ts";
import { RefusedPools } from "../refused-pools.ts";
import { FreedAddresses } from "./freed-addresses.ts";
import { notesOfGoneNodes } from "./gone-node-notes.ts";
import { countNodeNeeds, type NodeNeeds } from "./node-needs.ts";
import { PodCounts } from "./pod-counts.ts";
import { WaitingPods } from "./waiting-pods.ts";

/** After a pass, 20 times as long as it counted: 5 % of a processor. */
const REST_FACTOR = 20;
/** And no longer, for the first count is of all pods: a pod's ADD waits 5 s for a block. */
const MOST_REST_MS = 2_000;
/** Between a node's deletion and the return of its blocks. */
const NODE_GONE = { type: "Normal", reason: "NodeGone", action: "GivingBack" } as const;

/** Hands blocks of pools out to nodes, and takes them back, for as long as this replica leads. */
export function startBlocks(deps: ControllerDeps): Controller {
  return new Blocks(deps).start();
}

class Blocks implements Passes {
  readonly name = "blocks";
  readonly #deps: ControllerDeps;
  readonly #loop: PassLoop;
  readonly #shortageEvents: ChangedEvents<PoolNote>;
  readonly #goneNodeEvents: ChangedEvents<PoolNote>;
  readonly #refused: RefusedPools;
  readonly #waiting: WaitingPods;
  readonly #freed: FreedAddresses;
  readonly #counts: PodCounts;
  #demand: NodeNeeds | undefined;
  #distributor: BlockDistributor | undefined;
  #shortages: readonly Shortage[] = [];
  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { metrics, context, cache, watches } = deps;
    this.#counts = new PodCounts(cache, watches);
    this.#waiting = new WaitingPods(() => context.clock.monotonic());
    this.#freed = new FreedAddresses(context.clock, cache);
    this.#loop = new PassLoop(deps, this);
    this.#shortageEvents = poolEvents(deps);
    this.#goneNodeEvents = poolEvents(deps, NODE_GONE);
    this.#refused = new RefusedPools(deps, "blocks");
    metrics.gauge?.("berth_blocks_short_nodes", () =>
      this.#shortages.map(({ pool, family, short }) => ({ labels: { pool, family }, value: short.length })),
    );
  }

  start(): Controller {
    const { cache, watches } = this.#deps;
    return this.#loop.start([
      (soon) => followPools(cache, soon),
      (soon) => cache.onChange("block", soon),
      (soon) => followNodes(watches.nodes, soon),
      (soon) =>
        watches.pods.onChange((_, now, before) => {
          this.#freed.see(now, before);
          if (now?.node !== before?.node || now?.ended !== before?.ended) soon();
        }),
      () => this.#counts.follow(cache, watches.pods),
    ]);
  }

  async pass(signal: AbortSignal): Promise<number> {
    const { cache, context } = this.#deps;
    const began = context.clock.monotonic();
    const source = { ...this.#deps, counts: this.#counts, waiting: this.#waiting, freed: this.#freed };
    this.#demand = await countNodeNeeds(source, () => context.clock.sleep(0));
    const restMs = Math.min(MOST_REST_MS, REST_FACTOR * (context.clock.monotonic() - began));
    if (signal.aborted) return restMs;
    this.#distributor ??= new BlockDistributor({ ...context, view: cache }, this.#facts(), () =>
      this.#loop.mayWrite(),
    );
    this.#shortages = await this.#distributor.pass();
    this.#shortageEvents.publish(
      new Map(
        this.#shortages.map((one) => [`${one.pool}/${one.family}`, { pool: one.pool, note: wordsFor(one) }]),
      ),
    );
    this.#refused.publish(this.#distributor.faults);
    const isThere = (node: string) => this.#deps.watches.nodes.get(node) !== undefined;
    this.#goneNodeEvents.publish(notesOfGoneNodes(cache, isThere));
    return restMs;
  }

  forget(): void {
    this.#counts.forget();
    this.#demand = undefined;
    this.#distributor = undefined;
    this.#shortages = [];
    this.#shortageEvents.forget();
    this.#goneNodeEvents.forget();
    this.#refused.forget();
  }

  knows(): boolean {
    const { cache, watches } = this.#deps;
    const { pods, nodes, namespaces } = watches;
    return cache.ready && cache.knows("block") && [pods, nodes, namespaces].every((one) => one.isSynced);
  }

  hasWork(): boolean {
    const { cache } = this.#deps;
    for (const _ of cache.blocks()) return true;
    return cache.pools().some(({ spec }) => spec.blockSize !== undefined);
  }

  #facts() {
    const { cached, live } = this.#deps.inventory;
    return {
      nodesFor: (...of: Parameters<NodeNeeds["needs"]>) => this.#demand?.needs(...of) ?? [],
      evidence: async ({ record: { node } }: Stored<"block">): Promise<BlockEvidence | undefined> => {
        const fenced = (await cached.fenced(node)) && (await live.fenced(node));
        return fenced ? { kind: "fenced", node } : undefined;
      },
      selects: (...of: Parameters<NodeNeeds["selects"]>) => this.#demand?.selects(...of),
      areProven: true,
    };
  }
}

/** Nodes that a message names. */
const NAMED = 5;

function wordsFor({ family, short, recalls, asked: singles }: Shortage): string {
  const some = listed(short, NAMED, ({ node, missing }) => `${node} (${missing})`);
  const lacking = new Set(short.map(({ node }) => node));
  const all = [...new Set([...recalls.map(({ node }) => node), ...singles])];
  const asked = all.filter((node) => !lacking.has(node)).slice(0, NAMED);
  const next =
    asked.length > 0
      ? `asked back from ${asked.join(", ")}`
      : "add a range: no address that nodes have is to spare";
  return `pods lack ${family} addresses and no block is free, on ${some}; ${next}`;
}
