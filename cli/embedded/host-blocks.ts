// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { BlockDistributor } from "../../allocator/blocks/distributor.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Family } from "../../allocator/ip/address.ts";
import { blockLength, blocksAhead } from "../../allocator/pool/blocks.ts";
import { matches } from "../../allocator/pool/label-selector.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { AdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { BlockSource } from "../../ipam-plugin/agent/blocks/block-source.ts";

/** Blocks cool without anything that would change. */
const EVERY_MS = 5_000;

interface HostBlocksOptions {
  readonly context: Context & { readonly view: RecordCache };
  readonly admitted: Pick<AdmittedObjects, "labelsOf">;
  /** This host's name. */
  readonly node: string;
}

/** What this process asks its agent, once there is one. */
interface BlockUser {
  /** Addresses of the pool's blocks that cannot be given now. */
  blockUse(pool: string, family: Family): number;
  blocksChanged(): Promise<void>;
}

/**
 * Blocks where there is one node: it has as many as it uses and two ahead, as in a cluster, and when an ADD finds none with a free
 * address, another one at once.
 */
export class HostBlocks {
  readonly source: BlockSource;
  readonly #options: HostBlocksOptions;
  readonly #distributor: BlockDistributor;
  readonly #stop = new AbortController();
  #wake = new AbortController();
  readonly #wanted = new Map<string, number>(); // pool -> how many ADDs have found no address of it
  #agent: BlockUser | undefined;
  #passing: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #running: Promise<void> | undefined;

  constructor(options: HostBlocksOptions) {
    this.#options = options;
    const { context } = options;
    this.source = this.#sourceOf(options);
    this.#distributor = new BlockDistributor(
      context,
      {
        nodesFor: (pool, family) => this.#needs(pool, family),
        // it never loses its node
        evidence: async () => undefined,
      },
      () => !this.#stop.signal.aborted && context.view.ready,
    );
  }

  /** Whether pods that ask for nothing are served out of blocks of the pool. */
  isCut(name: string): boolean {
    const pool = this.#options.context.view.pool(name);
    return pool?.families.some((family) => blockLength(pool, family) !== undefined) ?? false;
  }

  /** From here on blocks are made for what the agent uses. */
  serve(agent: BlockUser): void {
    this.#agent = agent;
    const { view } = this.#options.context;
    view.onChange("pool", () => void this.#changed());
    // one that turned out to have nothing to give is gone before it was anybody's: to try again at once would be for nothing
    view.onChange("block", (_, now, before) => {
      if (isGranted(now) || isGranted(before)) void this.#changed();
    });
    void this.#changed();
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await Promise.all([this.#running, this.#passing, this.#next]);
  }

  async #run(): Promise<void> {
    const { clock } = this.#options.context;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      await this.#pass();
      if (!this.#stop.signal.aborted) await clock.sleep(EVERY_MS, this.#wake.signal);
    }
  }

  async #changed(): Promise<void> {
    this.#wake.abort();
    const { log } = this.#options.context;
    await this.#agent?.blocksChanged().catch((error: unknown) => {
      log.warn("blocks of this node were not journalled", { error });
    });
  }

  /** The view has every block as it was stored at this moment, or as it was after. */
  async #shown(): Promise<void> {
    const { view, store } = this.#options.context;
    const unheard = new Map<string, string | undefined>(); // CIDR -> the revision that the view has
    for await (const { key, revision } of store.list("block")) {
      const known = view.block(key)?.revision;
      if (known !== revision) unheard.set(key, known);
    }
    const isBehind = () => [...unheard].some(([key, known]) => view.block(key)?.revision === known);
    if (!isBehind()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const heard = () => {
      if (!isBehind() || this.#stop.signal.aborted) resolve();
    };
    const undo = view.onChange("block", heard);
    this.#stop.signal.addEventListener("abort", heard, { once: true });
    await promise;
    undo();
    this.#stop.signal.removeEventListener("abort", heard);
  }

  /** One that begins after this call: what is under way may have looked already. */
  #pass(): Promise<void> {
    if (this.#passing === undefined) {
      this.#passing = this.#passOnce().finally(() => {
        this.#passing = undefined;
      });
      return this.#passing;
    }
    this.#next ??= this.#passing.then(() => {
      this.#next = undefined;
      return this.#pass();
    });
    return this.#next;
  }

  async #passOnce(): Promise<void> {
    const { view, log } = this.#options.context;
    if (!view.ready || !view.knows("block") || this.#agent === undefined) return;
    try {
      await this.#distributor.pass();
    } catch (error) {
      log.warn("blocks could not be made; tried again", { error: messageOf(error) });
    }
  }

  #needs(pool: Pool, family: Family) {
    const { node } = this.#options;
    if (!matches(pool.spec.nodeSelector, this.#nodeLabels())) return [];
    // of a pool that the node has nothing ahead of it gets what ADDs wait for
    const wanted = blocksAhead(pool) === 0 ? (this.#wanted.get(pool.name) ?? 0) : 0;
    return [{ node, nodeUID: "", pods: (this.#agent?.blockUse(pool.name, family) ?? 0) + wanted }];
  }

  /** One pool after the other: what the first has is not to be had of the next, too. */
  async #more(pools: readonly string[]): Promise<boolean> {
    const { view } = this.#options.context;
    const waited = pools.filter((name) => blocksAhead(view.pool(name)) === 0);
    for (const name of waited.length === 0 ? pools.slice(0, 1) : waited) {
      const before = new Set([...view.blocks()].filter(isGranted).map(({ uid }) => uid));
      this.#wanted.set(name, (this.#wanted.get(name) ?? 0) + 1);
      try {
        await this.#pass();
        await this.#shown();
        await this.#changed();
      } finally {
        this.#wanted.set(name, (this.#wanted.get(name) ?? 1) - 1);
      }
      if ([...view.blocks()].some((block) => isGranted(block) && !before.has(block.uid))) return true;
    }
    return false;
  }

  #nodeLabels(): Labels {
    return { "kubernetes.io/hostname": this.#options.node };
  }

  #sourceOf({ context, admitted, node }: HostBlocksOptions): BlockSource {
    const { view, store } = context;
    return {
      statuses: { node, store },
      get isSynced() {
        return view.knows("pool") && view.knows("block");
      },
      // whatever the host was called when they were made: there is no other
      blocks: () => view.blocks(),
      pool: (name) => view.pool(name),
      pools: () => view.pools(),
      factsOf: (pod) => ({ ...admitted.labelsOf(pod), nodeLabels: this.#nodeLabels() }),
      more: (pools) => this.#more(pools),
    };
  }
}

function isGranted(block: Stored<"block"> | undefined): boolean {
  return block?.record.granted === true;
}
