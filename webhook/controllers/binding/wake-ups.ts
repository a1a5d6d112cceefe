// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { ASSIGNED_CLAIM } from "../../../allocator/manifest/annotations.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { PoolRecord } from "../../../allocator/pool/pool.ts";
import type { ObservedNode, ObservedPod } from "../../cluster-state/informers.ts";
import type { ControllerDeps } from "../controller.ts";
import { leftHold } from "./left-holds.ts";
import type { WaitIndex } from "./wait-index.ts";

interface WakeUpsTo {
  /** Pods that wait, and for which claims. */
  readonly waiters: WaitIndex;
  /** Gets the pods that have gone, or have ended, and for which a claim may still be held. */
  readonly left: Map<string, ObservedPod>;
  /** Queues a pod. */
  add(key: string): void;
}

/** Which pods the binder looks at again when a pod, a node, a claim or a pool changes. */
export class WakeUps {
  readonly #deps: Pick<ControllerDeps, "watches" | "cache" | "leadership">;
  readonly #to: WakeUpsTo;

  constructor(deps: Pick<ControllerDeps, "watches" | "cache" | "leadership">, to: WakeUpsTo) {
    this.#deps = deps;
    this.#to = to;
  }

  /** Returns what ends it. */
  follow(): readonly (() => void)[] {
    const { watches, cache } = this.#deps;
    return [
      watches.pods.onChange((key, now, before) => this.#podChanged(key, now, before)),
      watches.nodes.onChange((name, now, before) => this.#nodeChanged(name, now, before)),
      cache.onChange("claim", (key, now, before) => this.#claimChanged(key, now?.record, before?.record)),
      cache.onChange("pool", (_, now, before) => this.#poolChanged(now?.record, before?.record)),
    ];
  }

  #podChanged(key: string, now: ObservedPod | undefined, before: ObservedPod | undefined): void {
    if (now?.exempt !== true && [now, before].some((pod) => pod && mayHaveClaim(this.#deps.cache, key, pod)))
      this.#to.add(key);
    if (before === undefined || before.exempt) return;
    const gone = now?.uid !== before.uid;
    if (!gone && (before.ended || !now.ended)) return;
    if (this.#deps.leadership.leads() && leftHold(this.#deps.cache, before) !== undefined)
      this.#to.left.set(key, before);
    for (const { key: claim } of this.#deps.cache.claimsOfPod(before.namespace, before.name))
      this.#wakeWaitersOf(claim);
  }

  /** Nodes change every few seconds, but their labels and fences hardly ever do. */
  #nodeChanged(name: string, now: ObservedNode | undefined, before: ObservedNode | undefined): void {
    if (!isDeepStrictEqual(now?.labels, before?.labels)) this.#wakeWaiters(({ node }) => node === name);
    if (now !== undefined && now.fenced === (before?.fenced ?? false)) return;
    for (const { key } of this.#deps.cache.claimsOnNode(name)) this.#wakeWaitersOf(key);
  }

  /** Pods may wait because their pool was for other nodes. */
  #poolChanged(now: PoolRecord | undefined, before: PoolRecord | undefined): void {
    if (!isDeepStrictEqual(now?.spec.nodeSelector, before?.spec.nodeSelector))
      this.#wakeWaiters(({ node }) => node !== "");
  }

  #claimChanged(key: string, now: Claim | undefined, before: Claim | undefined): void {
    const namespace = (now ?? before)?.namespace ?? "";
    const names = [now?.binding?.podName ?? "", before?.binding?.podName ?? ""];
    const pods = [key, ...names.filter((name) => name !== "").map((name) => `${namespace}/${name}`)];
    for (const pod of pods) if (this.#deps.watches.pods.get(pod)?.exempt === false) this.#to.add(pod);
    this.#wakeWaitersOf(key);
  }

  #wakeWaitersOf(claim: string): void {
    for (const pod of this.#to.waiters.of(claim)) this.#to.add(pod);
  }

  #wakeWaiters(isMeant: (pod: ObservedPod) => boolean): void {
    for (const key of this.#to.waiters.all()) {
      const pod = this.#deps.watches.pods.get(key);
      if (pod !== undefined && isMeant(pod)) this.#to.add(key);
    }
  }
}

/** Most pods are none of Berth's: there is nothing to look at before a claim of the pod's name comes, which wakes it. */
export function mayHaveClaim(
  cache: Pick<RecordCache, "claim">,
  key: string,
  { annotations }: Pick<ObservedPod, "annotations">,
): boolean {
  return annotations[ASSIGNED_CLAIM] !== undefined || cache.claim(key) !== undefined;
}
