// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../../allocator/base/errors.ts";
import type { Clock } from "../../../allocator/base/ports.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { claimKey } from "../../../allocator/model/claim.ts";
import { formatHolding } from "../../../allocator/model/interfaces.ts";
import type { EventInput, InvolvedObject } from "../../../kube/controller/event-recorder.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";
import { reasonOf } from "../conditions.ts";

type PodRef = Pick<ObservedPod, "namespace" | "name" | "uid">;

/** What keeps a pod from its addresses. */
export interface Blocker {
  /** Of a refusal or a fault. */
  readonly code: string;
  readonly message: string;
}

/** The same obstacle in other words is told again so often at most: they count what others have at the moment. */
const TELL_AGAIN_MS = 60_000;

interface Told {
  readonly obstacle: string;
  readonly message: string;
  /** Monotonic. */
  readonly at: number;
}

/**
 * What tells one obstacle from another. The words do not: they name free neighbours, or how much of a limit is used, of
 * the moment, and would be new at each look while others come and go.
 */
export function obstacleOf(blocker: Blocker): string {
  if (!isRefusal(blocker)) return blocker.code;
  const { code, details, parts } = blocker;
  if (parts !== undefined) return `${code} ${parts.refusals.map(obstacleOf).join()}`;
  return `${code} ${JSON.stringify(details)}`;
}

/** Tells people, by events on their pods, what became of the claims. */
export class PodEvents {
  readonly #events: { record(notice: EventInput): void };
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #tellsBound: boolean;
  readonly #said = new Map<string, Told>(); // pod key -> the obstacle that was told last

  /** `tellsBound`: of each binding, though nothing was in its way: a write for each start of a pod. */
  constructor(
    events: { record(notice: EventInput): void },
    clock: Pick<Clock, "monotonic">,
    tellsBound: boolean,
  ) {
    this.#events = events;
    this.#clock = clock;
    this.#tellsBound = tellsBound;
  }

  /** Once for each obstacle, however often it is found in the way; now and then in other words, if these changed. */
  blocked(pod: PodRef, blocker: Blocker): void {
    const { code, message } = blocker;
    const key = `${pod.namespace}/${pod.name}`;
    const obstacle = `${pod.uid} ${obstacleOf(blocker)}`;
    const at = this.#clock.monotonic();
    const last = this.#said.get(key);
    if (last?.obstacle === obstacle && (last.message === message || at - last.at < TELL_AGAIN_MS)) return;
    this.#said.set(key, { obstacle, message, at });
    this.#record(pod, { type: "Warning", reason: reasonOf(code), note: message });
  }

  /** Of a pod that was told what was in its way, and of others if that is asked for. */
  bound(pod: PodRef, claim: Claim): void {
    if (!this.#tellsBound && !this.#said.has(`${pod.namespace}/${pod.name}`)) return;
    const words = `claim ${claimKey(claim)} (${formatHolding(claim).join(", ")}) is bound to ${claim.binding?.node ?? ""}`;
    this.#record(pod, { type: "Normal", reason: "AddressBound", note: words });
  }

  /** Nothing is in the way of this pod any more: what comes next is told again. */
  forget(key: string): void {
    this.#said.delete(key);
  }

  #record(pod: PodRef, said: Pick<EventInput, "type" | "reason" | "note">): void {
    this.#events.record({ regarding: regardingOf(pod), action: "Binding", ...said });
  }
}

/** With the UID: `kubectl describe` asks for events of exactly this pod. */
function regardingOf({ namespace, name, uid }: PodRef): InvolvedObject {
  return { apiVersion: "v1", kind: "Pod", namespace, name, uid };
}
