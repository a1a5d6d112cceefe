// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { parseAddress } from "../../allocator/ip/address.ts";
import type { Reserved } from "../../allocator/lifecycle/allocation-request.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { namesOf, placesOf } from "../../allocator/model/interfaces.ts";
import type { Informers } from "../cluster-state/informers.ts";

/** How much may stand that this replica took for pods which have not come yet: claims, holds, and addresses beside claims. */
interface PendingLimits {
  readonly perNamespace: number;
  readonly inAll: number;
}

/**
 * Whoever reaches the webhook's port can send reviews of pods that nobody creates, and each would hold an address for
 * 120 s. A pod that is created is seen within a second, so that these are as many as come in a second on a busy cluster.
 */
export const PENDING_LIMITS: PendingLimits = { perNamespace: 500, inAll: 2_000 };

/** What is held is seen to come or go while one waits, unless it is for nobody: less than a review may take. */
const MAX_WAIT_MS = 3_000;
const LOOK_MS = 50;
/** A review that waits costs memory: those beyond are refused at once. */
const MOST_WAITING = 256;
/** The view knows a claim for certain that was made so long ago. */
const KNOWN_MS = 10_000;

/** Where pods that come and claims that go are heard of. */
interface Sources {
  readonly cache: RecordCache;
  readonly watches: Pick<Informers, "pods">;
}

/** The holds of one replica, told of every pod that comes with a claim, and of every claim that goes. */
export function trackPendingClaims(
  { cache, watches }: Sources,
  deps: Omit<PendingClaimsDeps, "view">,
): PendingClaimLimiter {
  const pendingClaims = new PendingClaimLimiter({ ...deps, view: cache });
  watches.pods.onChange((_, now) => {
    const claim = now?.annotations[ASSIGNED_CLAIM];
    if (now !== undefined && claim !== undefined) {
      pendingClaims.settled(claimKey({ namespace: now.namespace, name: claim }));
    }
  });
  cache.onChange("claim", (key, now, before) => {
    if (now === undefined) pendingClaims.settled(key);
    const token = before?.record.binding?.token ?? "";
    if (token !== "" && now?.record.binding?.token !== token) pendingClaims.settled(key, token);
    for (const address of now?.record.addresses ?? []) pendingClaims.settled(address);
  });
  cache.onChange("reservation", (address, now) => {
    if (now === undefined) pendingClaims.settled(address);
  });
  return pendingClaims;
}

interface PendingClaimsDeps {
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly log: Logger;
  readonly view: Pick<RecordReader, "claim" | "reservation">;
}

interface Hold {
  readonly namespace: string;
  readonly since: number;
  /** A claim for several interfaces counts for each: it has as many addresses as so many claims. */
  readonly weight: number;
  /** Of the hold that was made; absent: none was. */
  readonly token?: string;
}

/**
 * What this replica has taken for pods at their admission that have not come. A claim leaves when its pod is seen, or the
 * claim is gone, an address beside a claim when the claim lists it or its reservation is gone; time alone proves nothing.
 */
export class PendingClaimLimiter {
  readonly #deps: PendingClaimsDeps;
  readonly #limits: PendingLimits;
  readonly #held = new Map<string, Hold>(); // namespace/name of a claim, or an address -> since when
  readonly #counts = new Map<string, number>(); // namespace -> held, and being made
  #inAll = 0;
  #waiting = 0;

  constructor(deps: PendingClaimsDeps, limits: PendingLimits = PENDING_LIMITS) {
    this.#deps = deps;
    this.#limits = limits;
  }

  get size(): number {
    return this.#inAll;
  }

  /** Takes something for a pod of the namespace if there is room for one more, and waits a little until there is. */
  async during(namespace: string, make: () => Promise<Reserved | Refusal>): Promise<Reserved | Refusal> {
    const refusal = await this.#enter(namespace);
    if (refusal !== undefined) return refusal;
    try {
      const got = await make();
      if (!isRefusal(got)) this.#holdAll(namespace, got);
      return got;
    } finally {
      this.#count(namespace, -1); // it is not under way any more
    }
  }

  /** A pod was seen that was admitted with the claim, or has the address, or what was held is gone; or that hold is. */
  settled(what: string, token?: string): void {
    const hold = this.#held.get(what);
    if (hold === undefined || (token !== undefined && hold.token !== token)) return;
    this.#held.delete(what);
    this.#count(hold.namespace, -hold.weight);
  }

  #holdAll(namespace: string, { claim, besideClaim: held, waits }: Reserved): void {
    const hold = { namespace, since: this.#deps.clock.monotonic(), weight: 1 };
    const { binding } = claim.record;
    const { token = "" } = binding ?? {};
    const weight = Math.max(1, namesOf(placesOf(claim.record) ?? {}).length);
    if (waits) this.#hold(claim.key, { ...hold, weight, ...(token === "" ? {} : { token }) });
    for (const address of held) this.#hold(address, hold);
  }

  #hold(what: string, hold: Hold): void {
    this.settled(what); // what was counted for another claim of the key counts no more
    this.#held.set(what, hold);
    this.#count(hold.namespace, hold.weight);
  }

  /** Counts one more, in the same turn in which there is room. Waits for that, unless so many wait that it is of no use. */
  async #enter(namespace: string): Promise<Refusal | undefined> {
    if (this.#isFull(namespace)) await this.#wait(namespace);
    if (!this.#isFull(namespace)) {
      this.#count(namespace, 1);
      return undefined;
    }
    const count = this.#inAll;
    this.#deps.log.warn("too much is held for pods that have not come", { namespace, count });
    return this.#refusal(namespace);
  }

  async #wait(namespace: string): Promise<void> {
    this.#sweep();
    if (this.#waiting >= MOST_WAITING) return;
    const { clock } = this.#deps;
    const until = clock.monotonic() + MAX_WAIT_MS;
    this.#waiting++;
    while (this.#isFull(namespace) && clock.monotonic() < until) await clock.sleep(LOOK_MS);
    this.#waiting--;
  }

  #isFull(namespace: string): boolean {
    const { perNamespace, inAll } = this.#limits;
    return (this.#counts.get(namespace) ?? 0) >= perNamespace || this.#inAll >= inAll;
  }

  /** What came and went while nobody was told of changes. */
  #sweep(): void {
    const { view, clock } = this.#deps;
    for (const [what, { since, token }] of this.#held) {
      if (clock.monotonic() - since < KNOWN_MS) continue;
      const address = parseAddress(what);
      const claim = view.claim(what)?.record;
      const isSeen =
        address === undefined
          ? claim !== undefined && (token === undefined || claim.binding?.token === token)
          : view.reservation(address) !== undefined;
      if (!isSeen) this.settled(what);
    }
  }

  #refusal(namespace: string): Refusal {
    const { perNamespace, inAll } = this.#limits;
    const own = (this.#counts.get(namespace) ?? 0) >= perNamespace;
    const where = own ? `namespace ${namespace} has ${perNamespace}` : `the cluster has ${inAll}`;
    return refuse(
      "LIMIT_REACHED",
      `${where} claims and addresses that are held for pods which were admitted and have not come, and no more is taken until they come, or what is held for them is free again after 120 s; try again`,
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
