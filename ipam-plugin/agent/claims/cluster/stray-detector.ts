// SPDX-License-Identifier: Apache-2.0
import type { Clock, Logger } from "../../../../allocator/base/ports.ts";
import { ownedIn } from "../../../../allocator/cache/block-index.ts";
import { familyOf, toNumber } from "../../../../allocator/ip/address.ts";
import { contains } from "../../../../allocator/ip/ip-range.ts";
import type { Stored } from "../../../../allocator/store/store.ts";
import { type Attachment, attachmentKey } from "../../journal/attachment.ts";
import type { NodeCache } from "./node-cache.ts";

interface StrayDetectorOptions {
  readonly view: Pick<NodeCache, "isSynced" | "claim"> & {
    /** All blocks of this node were listed once. */
    readonly areBlocksSynced: boolean;
    blocks(): Iterable<Stored<"block">>;
  };
  /** What the journal has attached. */
  readonly attached: () => readonly Attachment[];
  readonly clock: Clock;
  readonly log: Logger;
}

const EVERY_MS = 15_000;

/**
 * Sandboxes that use the addresses of a claim which is not bound to their pod, or of a block which is not this node's, so far as is
 * known: the node was fenced and is back, somebody took a binding away by hand, or etcd was restored from before they were attached.
 * Nothing keeps others from being given these addresses, so people must hear of it.
 */
export class StrayDetector {
  readonly #options: StrayDetectorOptions;
  #suspects: ReadonlySet<string> = new Set(); // ids of the places that were stray at the last look
  readonly #reported = new Set<string>(); // ids of those that were told

  constructor(options: StrayDetectorOptions) {
    this.#options = options;
  }

  /** Those of this moment; none before the claims are loaded, or of blocks, before these are. */
  find(): readonly Attachment[] {
    const { view, attached } = this.#options;
    if (!view.isSynced) return [];
    const all = attached();
    return [...all.filter((one) => this.#isUnbound(one)), ...this.#besideBlocks(all)];
  }

  #isUnbound({ claim, pod }: Attachment): boolean {
    if (claim === undefined) return false;
    const uid = this.#options.view.claim(claim)?.record.binding?.podUID;
    return uid === undefined || (pod !== undefined && pod.uid !== "" && uid !== pod.uid);
  }

  #besideBlocks(all: readonly Attachment[]): readonly Attachment[] {
    const { view } = this.#options;
    const fromBlocks = all.filter(({ source }) => source === "block");
    if (fromBlocks.length === 0 || !view.areBlocksSynced) return [];
    const held = [...view.blocks()].filter(({ record }) => record.releasedAt === undefined);
    const owned = held.map(({ record }) => ownedIn(record));
    return fromBlocks.filter(({ result }) =>
      result.addresses.some(({ address }) => {
        const [family, n] = [familyOf(address), toNumber(address)];
        return !owned.some((one) => one.family === family && one.intervals.some((span) => contains(span, n)));
      }),
    );
  }

  /** Looks every 15 s, until the signal aborts; tells of one that is found twice, once. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.look();
      await this.#options.clock.sleep(EVERY_MS, signal);
    }
  }

  /** A watch that is behind is no stray sandbox: the second look in a row counts. */
  look(): void {
    const strays = new Map(this.find().map((attachment) => [attachmentKey(attachment), attachment]));
    for (const [id, attachment] of strays)
      if (this.#suspects.has(id) && !this.#reported.has(id)) this.#report(id, attachment);
    for (const id of this.#reported) if (!strays.has(id)) this.#reported.delete(id);
    this.#suspects = new Set(strays.keys());
  }

  #report(id: string, { claim, pool, pod, containerID, result }: Attachment): void {
    this.#reported.add(id);
    this.#options.log.error("sandbox has addresses that are not bound to its pod; remove it", {
      ...(pool === undefined ? { claim } : { pool }),
      pod: pod && `${pod.namespace}/${pod.name}`,
      uid: pod?.uid,
      containerID,
      address: result.addresses.map(({ address }) => address).join(","),
    });
  }
}
