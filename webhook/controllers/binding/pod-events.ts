// SPDX-License-Identifier: Apache-2.0
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

/** Tells people, by events on their pods, what became of the claims. */
export class PodEvents {
  readonly #events: { record(notice: EventInput): void };
  readonly #tellsBound: boolean;
  readonly #said = new Map<string, string>(); // pod key -> the obstacle that was told last

  /** `tellsBound`: of each binding, though nothing was in its way: a write for each start of a pod. */
  constructor(events: { record(notice: EventInput): void }, tellsBound: boolean) {
    this.#events = events;
    this.#tellsBound = tellsBound;
  }

  /** Once for each obstacle, however often it is found in the way. */
  blocked(pod: PodRef, { code, message }: Blocker): void {
    const key = `${pod.namespace}/${pod.name}`;
    const said = `${pod.uid} ${code} ${message}`;
    if (this.#said.get(key) === said) return;
    this.#said.set(key, said);
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
