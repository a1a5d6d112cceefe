// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../../allocator/base/ports.ts";
import type { RecordCache } from "../../../../allocator/cache/cache.ts";
import { type InUse, isKept, sayUnseen } from "./in-use.ts";
import type { Presence } from "./presence.ts";

interface LostClaimsOptions {
  readonly view: Pick<RecordCache, "claim">;
  /** Whether etcd, now, keeps for this host what a container of it has. */
  readonly isKept: (use: InUse) => Promise<boolean>;
  /** Where not everything under this host's name in etcd is its own, whoever asks for an address is told why. */
  readonly presence: Pick<Presence, "isOwn">;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const EVERY_MS = 10_000;

/**
 * Claims that containers of this host use, and that somebody has taken away from it while it serves: they were released by force, or their
 * keys were deleted. Nothing keeps others from being given these addresses, so people must hear of it on this host, too.
 */
export class LostClaims {
  readonly #options: LostClaimsOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #inUse: () => readonly InUse[] = () => [];
  #suspects: ReadonlySet<string> = new Set(); // ids of those that were missed at the last look
  readonly #told = new Set<string>(); // ids

  constructor(options: LostClaimsOptions) {
    this.#options = options;
  }

  /** `inUse`: what containers of this host have of this etcd, by its journal. */
  start(inUse: () => readonly InUse[]): void {
    this.#inUse = inUse;
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Tells once of each that is missed twice in a row, and that etcd itself does not have: what is in memory may be behind. */
  async look(): Promise<void> {
    const missed = this.#missed();
    const before = this.#suspects;
    this.#suspects = new Set(missed.keys());
    for (const id of this.#told) if (!missed.has(id)) this.#told.delete(id);
    for (const [id, use] of missed) {
      if (!before.has(id) || this.#told.has(id)) continue;
      if ((await this.#options.isKept(use)) || !this.#inUse().some((one) => idOf(one) === id)) continue;
      // where etcd has lost many claims that takes a while
      if (this.#stop.signal.aborted || !this.#options.presence.isOwn) return;
      this.#told.add(id);
      this.#tell(use);
    }
  }

  /** By what is in memory. */
  #missed(): ReadonlyMap<string, InUse> {
    const { view, node, presence } = this.#options;
    if (!presence.isOwn) return new Map();
    const missed = this.#inUse().filter((use) => !isKept(view.claim(use.claim)?.record, use, node));
    return new Map(missed.map((use) => [idOf(use), use]));
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    for (;;) {
      await clock.sleep(EVERY_MS, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      try {
        await this.look();
      } catch (error) {
        if (!(error instanceof BerthError)) throw error; // etcd is away: at the next look
      }
    }
  }

  #tell(use: InUse): void {
    const { log, node } = this.#options;
    const { claim, containerID, network, addresses } = use;
    log.error(
      "container has addresses that etcd does not keep for this host any more: others may have them",
      {
        ...{ claim, containerID, network, node, interface: use.interface },
        address: addresses.join(","),
        remedy: `stop the container${sayUnseen([use], node)}`,
      },
    );
  }
}

function idOf({ claim, containerID, interface: name, addresses }: InUse): string {
  return [claim, containerID, name, ...addresses].join("\0");
}
