// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../../../allocator/base/errors.ts";
import type { Clock } from "../../../../allocator/base/ports.ts";
import type { Dialects } from "../../../../allocator/model/dialect.ts";
import type { Pool } from "../../../../allocator/pool/pool.ts";
import type { Stored } from "../../../../allocator/store/store.ts";
import { NO_CLAIM } from "../claim-result.ts";
import type { AttachRequest, ClaimMatch, NoClaim } from "../claim-source.ts";
import { within } from "../deadline.ts";
import { BINDING_MS, lookUpClaim, type Unasked } from "./claim-lookup.ts";
import { isKeptFor, isPastReview, notReviewed } from "./kept-claim.ts";
import { type NodeCache, type NodePod, type PodName, podKey } from "./node-cache.ts";

export interface ClaimSearchOptions {
  /** This node's name. */
  readonly node: string;
  readonly view: NodeCache;
  readonly clock: Clock;
  /** A pod as the API server has it at this moment. Throws BerthError when it cannot know. */
  readonly livePod: (pod: PodName) => Promise<NodePod | undefined>;
  /** The interface that has the claim already; undefined: any may have it. */
  readonly interfaceOf: (claim: Stored<"claim">, request: AttachRequest) => string | undefined;
  /** Which requests in other systems' words are for Berth; `all` of them if absent. */
  readonly dialects?: Dialects;
  /** Whether pods that ask for nothing are served out of blocks of the pool; absent: of none. */
  readonly hasBlocks?: (pool: string) => boolean;
  /** Every pool that there is; undefined: not all are known. */
  readonly allPools?: () => readonly Pool[] | undefined;
  /** A claim as the store has it, where pods may come to be without a review; absent: every pod that is to be reviewed was. */
  readonly storedClaim?: (claim: string) => Promise<Stored<"claim"> | undefined>;
}

/** Which claim an ADD has, as memory shows it; waits as long as a binding may take until memory shows one. */
export class ClaimSearch {
  readonly #options: ClaimSearchOptions;

  constructor(options: ClaimSearchOptions) {
    this.#options = options;
  }

  async find(request: AttachRequest, signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal> {
    const found = await this.#searchFor(request, signal);
    return found.kind === "unasked" ? await this.#unlessKept(request, signal) : found;
  }

  async #searchFor(
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<ClaimMatch | NoClaim | Refusal | Unasked> {
    const found = this.#look(request);
    if (found.kind !== "wait") return found;
    const { view } = this.#options;
    if (!view.isSynced) await this.#await(request.pod, signal, () => view.isSynced);
    // Only from here on can it be seen what is missing, and all the time for it begins.
    if (view.isSynced) await this.#await(request.pod, signal, () => this.#look(request).kind !== "wait");
    const last = this.#look(request);
    return last.kind === "wait" ? last.giveUp() : last;
  }

  /** The review that would have told the pod of a claim may have been left out: then the store says whether there is one. */
  async #unlessKept(request: AttachRequest, signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal> {
    const { view, livePod, storedClaim } = this.#options;
    // one that has its address anyway does not depend on the API server
    if (storedClaim === undefined || isPastReview(view.pod(request.pod))) return NO_CLAIM;
    const kept = (await storedClaim(podKey(request.pod)))?.record;
    if (kept === undefined || !isKeptFor(request, kept)) return NO_CLAIM;
    if (isPastReview(view.pod(request.pod) ?? (await livePod(request.pod)))) return NO_CLAIM;
    await this.#await(request.pod, signal, () => view.isSynced && this.#look(request).kind !== "unasked");
    const last = await this.#searchFor(request, signal);
    return last.kind === "unasked" ? notReviewed(request, kept) : last;
  }

  async #await(pod: PodName, signal: AbortSignal, isOver: () => boolean): Promise<void> {
    const { view, clock } = this.#options;
    await within({ ms: BINDING_MS, clock, signals: [signal] }, async (late) => {
      while (!isOver() && !late.aborted) await view.changed(pod, late);
    });
  }

  #look(request: AttachRequest) {
    const { view, node, dialects = {}, hasBlocks = () => false, allPools = () => undefined } = this.#options;
    const interfaceOf = (claim: Stored<"claim">) => this.#options.interfaceOf(claim, request);
    return lookUpClaim({ view, node, dialects, hasBlocks, allPools, interfaceOf }, request);
  }
}
