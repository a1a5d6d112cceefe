// SPDX-License-Identifier: Apache-2.0

import { BlockDistributor, type Shortage } from "../../../allocator/blocks/distributor.ts";
import type { BlockEvidence } from "../../../allocator/blocks/give-back.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { apiVersionOf, POOLS } from "../../../kube/api/resource.ts";
import { type Controller, runQueue } from "../../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../../kube/controller/workqueue.ts";
import type { ControllerDeps } from "../controller.ts";
import { countNodeNeeds, type NodeNeeds } from "./node-needs.ts";

/** What changes within this time is looked at together. */
const SOON_MS = 200;
/** Blocks cool, and nodes are gone for long enough, without anything that would change. */
const EVERY_MS = 5_000;
/** After a pass, 20 times as long as it counted: 5 % of a processor. */
const REST_FACTOR = 20;
const ALL = "blocks";

/** Hands blocks of pools out to nodes, and takes them back, for as long as this replica leads. */
export function startBlocks(deps: ControllerDeps): Controller {
  return new Blocks(deps).start();
}

class Blocks {
  readonly #deps: ControllerDeps;
  readonly #queue: WorkQueue;
  readonly #stop = new AbortController();
  readonly #told = new Map<string, string>(); // pool/family -> the shortage that an event told of
  #demand: NodeNeeds | undefined;
  #distributor: BlockDistributor | undefined;
  #shortages: readonly Shortage[] = [];
  /** Monotonic: the next pass begins no sooner. */
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
    const { clock, random, log } = deps.context;
    const { metrics } = deps;
    const work = (_: string, signal: AbortSignal) => this.#pass(signal);
    this.#queue = new WorkQueue({ name: "blocks", work, clock, random, log, metrics });
    metrics.gauge?.("berth_blocks_short_nodes", () =>
      this.#shortages.map(({ pool, family, short }) => ({ labels: { pool, family }, value: short.length })),
    );
  }

  start(): Controller {
    const { leadership, mirror, watches } = this.#deps;
    const undo = [
      leadership.onGain(() => this.#soon()),
      mirror.onChange("pool", () => this.#soon()),
      mirror.onChange("block", () => this.#soon()),
      watches.nodes.onChange(() => this.#soon()),
      watches.pods.onChange((_, now, before) => {
        if (now?.node !== before?.node || now?.ended !== before?.ended) this.#soon();
      }),
    ];
    this.#soon();
    return runQueue(this.#queue, [...undo, () => this.#stop.abort()]);
  }

  #mayWrite(): boolean {
    return !this.#stop.signal.aborted && this.#deps.leadership.leads();
  }

  #soon(): void {
    if (!this.#deps.leadership.leads()) return;
    const { clock } = this.#deps.context;
    this.#queue.addAfter(ALL, Math.max(SOON_MS, this.#restsUntil - clock.monotonic()));
  }

  async #pass(signal: AbortSignal): Promise<Outcome> {
    const { leadership, mirror, context } = this.#deps;
    if (!leadership.leads()) return this.#rest();
    if (!this.#knows()) return { kind: "again", afterMs: SOON_MS };
    if (!this.#hasWork()) return this.#rest();
    const began = context.clock.monotonic();
    this.#demand = await countNodeNeeds(this.#deps, () => context.clock.sleep(0));
    const ended = context.clock.monotonic();
    this.#restsUntil = ended + REST_FACTOR * (ended - began);
    if (signal.aborted) return DONE;
    this.#distributor ??= new BlockDistributor({ ...context, view: mirror }, this.#facts(), () =>
      this.#mayWrite(),
    );
    this.#shortages = await this.#distributor.pass();
    this.#tell();
    return { kind: "again", afterMs: EVERY_MS };
  }

  #rest(): Outcome {
    this.#distributor = undefined;
    this.#shortages = [];
    this.#told.clear();
    return DONE;
  }

  /** Before everything was listed once, pods and nodes would look as if they were gone. */
  #knows(): boolean {
    const { mirror, watches } = this.#deps;
    const { pods, nodes, namespaces } = watches;
    return mirror.ready && mirror.knows("block") && [pods, nodes, namespaces].every((one) => one.isSynced);
  }

  #hasWork(): boolean {
    const { mirror } = this.#deps;
    for (const _ of mirror.blocks()) return true;
    return mirror.pools().some(({ spec }) => spec.blockSize !== undefined);
  }

  #facts() {
    const { cached, live } = this.#deps.inventory;
    return {
      nodesFor: (...of: Parameters<NodeNeeds["needs"]>) => this.#demand?.needs(...of) ?? [],
      evidence: async ({ record: { node } }: Stored<"block">): Promise<BlockEvidence | undefined> => {
        const fenced = (await cached.fenced(node)) && (await live.fenced(node));
        return fenced ? { kind: "fenced", node } : undefined;
      },
    };
  }

  /** An event for the pool when other nodes than before lack addresses of it. */
  #tell(): void {
    const short = new Map(this.#shortages.map((one) => [`${one.pool}/${one.family}`, one]));
    for (const key of [...this.#told.keys()]) if (!short.has(key)) this.#told.delete(key);
    for (const [key, shortage] of short) {
      const note = wordsFor(shortage);
      if (this.#told.get(key) === note) continue;
      this.#told.set(key, note);
      const stored = this.#deps.mirror.poolRecord(shortage.pool);
      if (stored === undefined) continue;
      this.#deps.events.record({
        regarding: { apiVersion: apiVersionOf(POOLS), kind: POOLS.kind, name: stored.key, uid: stored.uid },
        ...{ type: "Warning", reason: "BlocksShort", action: "Granting", note },
      });
    }
  }
}

/** Nodes that a message names. */
const NAMED = 5;

function wordsFor({ family, short, recalls, asked: singles }: Shortage): string {
  const some = short.slice(0, NAMED).map(({ node, missing }) => `${node} (${missing})`);
  const more = short.length > NAMED ? ` and ${short.length - NAMED} more` : "";
  const asked = [...new Set([...recalls.map(({ node }) => node), ...singles])].slice(0, NAMED);
  const next =
    asked.length > 0
      ? `asked back from ${asked.join(", ")}`
      : "add a range: no address that nodes have is to spare";
  return `pods lack ${family} addresses and no block is free, on ${some.join(", ")}${more}; ${next}`;
}
