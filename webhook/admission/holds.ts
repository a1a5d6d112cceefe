// SPDX-License-Identifier: Apache-2.0
import { claimKey } from "../../allocator/claim.ts";
import { ASSIGNED_CLAIM } from "../../allocator/dialects.ts";
import { isRefusal, type Refusal, refuse } from "../../allocator/errors.ts";
import type { Mirror } from "../../allocator/mirror.ts";
import type { Clock, Logger } from "../../allocator/ports.ts";
import type { Reserved } from "../../allocator/reserve.ts";
import type { View } from "../../allocator/view.ts";
import type { Watches } from "../cluster/watches.ts";

/** How many claims may stand that this replica made for pods which have not come yet. */
export interface HoldLimits {
  readonly perNamespace: number;
  readonly inAll: number;
}

/**
 * Whoever reaches the webhook's port can send reviews of pods that nobody creates, and each would hold an address for
 * 120 s. A pod that is created is seen within a second, so that these are as many as come in a second on a busy cluster.
 */
export const HOLD_LIMITS: HoldLimits = { perNamespace: 500, inAll: 2_000 };

/** What is held is seen to come or go while one waits, unless it is for nobody: less than a review may take. */
const PATIENCE_MS = 3_000;
const LOOK_MS = 50;
/** A review that waits costs memory: those beyond are refused at once. */
const MOST_WAITING = 256;
/** The view knows a claim for certain that was made so long ago. */
const KNOWN_MS = 10_000;

/** Where pods that come and claims that go are heard of. */
interface Sources {
  readonly mirror: Mirror;
  readonly watches: Pick<Watches, "pods">;
}

/** The holds of one replica, told of every pod that comes with a claim, and of every claim that goes. */
export function followHolds({ mirror, watches }: Sources, deps: Omit<HoldsDeps, "view">): Holds {
  const holds = new Holds({ ...deps, view: mirror });
  watches.pods.onChange((_, now) => {
    const claim = now?.annotations[ASSIGNED_CLAIM];
    if (now !== undefined && claim !== undefined) {
      holds.settled(claimKey({ namespace: now.namespace, name: claim }));
    }
  });
  mirror.onChange("claim", (key, now) => {
    if (now === undefined) holds.settled(key);
  });
  return holds;
}

export interface HoldsDeps {
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly log: Logger;
  readonly view: Pick<View, "claim">;
}

interface Hold {
  readonly namespace: string;
  readonly since: number;
}

/**
 * The claims that this replica has made for pods at their admission and whose pods have not come. One leaves when its
 * pod is seen, or the claim is gone; time alone proves neither.
 */
export class Holds {
  readonly #deps: HoldsDeps;
  readonly #limits: HoldLimits;
  readonly #held = new Map<string, Hold>(); // namespace/name of a claim -> since when
  readonly #counts = new Map<string, number>(); // namespace -> held, and being made
  #inAll = 0;
  #waiting = 0;

  constructor(deps: HoldsDeps, limits: HoldLimits = HOLD_LIMITS) {
    this.#deps = deps;
    this.#limits = limits;
  }

  get size(): number {
    return this.#inAll;
  }

  /** Makes a claim for a pod of the namespace if there is room for one more, and waits a little until there is. */
  async during(namespace: string, make: () => Promise<Reserved | Refusal>): Promise<Reserved | Refusal> {
    const refusal = await this.#enter(namespace);
    if (refusal !== undefined) return refusal;
    let made: string | undefined;
    try {
      const got = await make();
      if (!isRefusal(got) && got.made) made = claimKey(got.claim.record);
      return got;
    } finally {
      // what was counted for another claim of the key counts no more
      if (made === undefined || this.#held.has(made)) this.#count(namespace, -1);
      if (made !== undefined) this.#held.set(made, { namespace, since: this.#deps.clock.monotonic() });
    }
  }

  /** A pod was seen that was admitted with the claim, or the claim is gone. */
  settled(claim: string): void {
    const hold = this.#held.get(claim);
    if (hold === undefined) return;
    this.#held.delete(claim);
    this.#count(hold.namespace, -1);
  }

  /** Counts one more, in the same turn in which there is room. Waits for that, unless so many wait that it is of no use. */
  async #enter(namespace: string): Promise<Refusal | undefined> {
    if (this.#isFull(namespace)) await this.#wait(namespace);
    if (!this.#isFull(namespace)) {
      this.#count(namespace, 1);
      return undefined;
    }
    const count = this.#inAll;
    this.#deps.log.warn("too many claims wait for pods that have not come", { namespace, count });
    return this.#refusal(namespace);
  }

  async #wait(namespace: string): Promise<void> {
    this.#sweep();
    if (this.#waiting >= MOST_WAITING) return;
    const { clock } = this.#deps;
    const until = clock.monotonic() + PATIENCE_MS;
    this.#waiting++;
    while (this.#isFull(namespace) && clock.monotonic() < until) await clock.sleep(LOOK_MS);
    this.#waiting--;
  }

  #isFull(namespace: string): boolean {
    const { perNamespace, inAll } = this.#limits;
    return (this.#counts.get(namespace) ?? 0) >= perNamespace || this.#inAll >= inAll;
  }

  /** A claim that came and went while nobody was told of changes. */
  #sweep(): void {
    const { view, clock } = this.#deps;
    for (const [claim, { since }] of this.#held) {
      if (clock.monotonic() - since >= KNOWN_MS && view.claim(claim) === undefined) this.settled(claim);
    }
  }

  #refusal(namespace: string): Refusal {
    const { perNamespace, inAll } = this.#limits;
    const own = (this.#counts.get(namespace) ?? 0) >= perNamespace;
    const where = own ? `namespace ${namespace} has ${perNamespace}` : `the cluster has ${inAll}`;
    return refuse(
      "LIMIT_REACHED",
      `${where} claims whose pods were admitted and have not come, and no more are made until they come or their claims go; try again`,
      { namespace },
    );
  }

  #count(namespace: string, by: number): void {
    this.#inAll += by;
    const next = (this.#counts.get(namespace) ?? 0) + by;
    if (next === 0) this.#counts.delete(namespace);
    else this.#counts.set(namespace, next);
  }
}
