// SPDX-License-Identifier: Apache-2.0
import type { Clock, Logger } from "../../../../allocator/base/ports.ts";
import { type Attachment, attachmentKey } from "../../journal/attachment.ts";
import type { NodeCache } from "./node-cache.ts";

interface StrayDetectorOptions {
  readonly view: Pick<NodeCache, "isSynced" | "claim">;
  /** What the journal has attached. */
  readonly attached: () => readonly Attachment[];
  readonly clock: Clock;
  readonly log: Logger;
}

const EVERY_MS = 15_000;

/**
 * Sandboxes that use the addresses of a claim which is not bound to their pod, so far as is known: the node was fenced
 * and is back, somebody took a binding away by hand, or etcd was restored from before they were attached. Nothing keeps
 * others from being given these addresses, so people must hear of it.
 */
export class StrayDetector {
  readonly #options: StrayDetectorOptions;
  #suspects: ReadonlySet<string> = new Set(); // ids of the places that were stray at the last look
  readonly #reported = new Set<string>(); // ids of those that were told

  constructor(options: StrayDetectorOptions) {
    this.#options = options;
  }

  /** Those of this moment; none before the claims are loaded. */
  find(): readonly Attachment[] {
    const { view, attached } = this.#options;
    if (!view.isSynced) return [];
    return attached().filter(({ claim, pod }) => {
      if (claim === undefined) return false;
      const uid = view.claim(claim)?.record.binding?.podUID;
      return uid === undefined || (pod !== undefined && pod.uid !== "" && uid !== pod.uid);
    });
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

  #report(id: string, { claim, pod, containerID, result }: Attachment): void {
    this.#reported.add(id);
    this.#options.log.error("sandbox has addresses that are not bound to its pod; remove it", {
      claim,
      pod: pod && `${pod.namespace}/${pod.name}`,
      uid: pod?.uid,
      containerID,
      address: result.addresses.map(({ address }) => address).join(","),
    });
  }
}
