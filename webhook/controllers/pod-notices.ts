// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../../allocator/claim.ts";
import { claimKey } from "../../allocator/claim.ts";
import type { Notice, Regarding } from "../../kube/events.ts";
import type { PodSeen } from "../cluster/watches.ts";
import { reasonOf } from "./conditions.ts";

type PodRef = Pick<PodSeen, "namespace" | "name" | "uid">;

/** What keeps a pod from its addresses. */
export interface Obstacle {
  /** Of a refusal or a fault. */
  readonly code: string;
  readonly message: string;
}

/** Tells people, by events on their pods, what became of the claims. */
export class PodNotices {
  readonly #events: { record(notice: Notice): void };
  readonly #said = new Map<string, string>(); // pod key -> the obstacle that was told last

  constructor(events: { record(notice: Notice): void }) {
    this.#events = events;
  }

  /** Once for each obstacle, however often it is found in the way. */
  blocked(pod: PodRef, { code, message }: Obstacle): void {
    const key = `${pod.namespace}/${pod.name}`;
    const said = `${pod.uid} ${code} ${message}`;
    if (this.#said.get(key) === said) return;
    this.#said.set(key, said);
    this.#record(pod, { type: "Warning", reason: reasonOf(code), note: message });
  }

  bound(pod: PodRef, claim: Claim): void {
    const words = `claim ${claimKey(claim)} (${claim.addresses.join(", ")}) is bound to ${claim.binding?.node ?? ""}`;
    this.#record(pod, { type: "Normal", reason: "AddressBound", note: words });
  }

  /** Nothing is in the way of this pod any more: what comes next is told again. */
  forget(key: string): void {
    this.#said.delete(key);
  }

  #record(pod: PodRef, said: Pick<Notice, "type" | "reason" | "note">): void {
    this.#events.record({ regarding: regardingOf(pod), action: "Binding", ...said });
  }
}

/** With the UID: `kubectl describe` asks for events of exactly this pod. */
function regardingOf({ namespace, name, uid }: PodRef): Regarding {
  return { apiVersion: "v1", kind: "Pod", namespace, name, uid };
}
