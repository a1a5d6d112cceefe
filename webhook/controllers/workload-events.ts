// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../allocator/base/counted.ts";
import { BerthError, isRefusal, messageOf, type Refusal } from "../../allocator/base/errors.ts";
import type { ObservedWorkload } from "../cluster-state/informers.ts";
import { reasonOf } from "./conditions.ts";
import type { ControllerDeps } from "./controller.ts";
import { disclosedRefusal } from "./disclosed-refusal.ts";
import { PASSING } from "./passing-faults.ts";

/** The same refusal is told again after this long at the earliest: its words name free addresses nearby, which change all the time. */
const TELL_AGAIN_MS = 60_000;

/** What keeps a pod from its address: a refusal, or a fault. */
type Obstacle = Pick<Refusal, "message" | "details"> & { readonly code: string };

/** Events of workloads whose pods cannot have their addresses. */
export class WorkloadEvents {
  readonly #deps: Pick<ControllerDeps, "context" | "events" | "refusalsNameAll">;
  readonly #reported = new Map<string, { readonly what: string; readonly at: number }>(); // workload -> what was told, monotonic time

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  /** One event for all of the pods, which names the first of them. */
  tellFirst(
    key: string,
    seen: ObservedWorkload,
    blocked: readonly { readonly name: string; readonly obstacle: Obstacle }[],
    what: string,
  ): void {
    const [first] = blocked;
    if (first === undefined) return;
    const shown = (refusal: Refusal) => disclosedRefusal(this.#deps, refusal, seen.facts.namespace);
    const obstacle = isRefusal(first.obstacle) ? shown(first.obstacle) : first.obstacle;
    const words = `pod ${first.name}: ${obstacle.message}`;
    const note =
      blocked.length > 1 ? `${counted(blocked.length, "pod")} ${what}; the first, ${words}` : words;
    this.tell(key, seen, { obstacle, note });
  }

  /** Unless the same was told within TELL_AGAIN_MS. */
  tell(key: string, { object }: ObservedWorkload, about: { obstacle: Obstacle; note: string }): void {
    const { apiVersion, kind, metadata } = object;
    const { namespace, name, uid } = metadata;
    const { code, details } = about.obstacle;
    const waits = code === "CLAIM_CHANGED"; // for its pods, one after the other
    const isPassing = PASSING.has(code); // each walk over its ordinals may meet another of them
    const what = JSON.stringify([uid, isPassing ? "passing" : code, waits || isPassing ? {} : details]);
    const at = this.#deps.context.clock.monotonic();
    const last = this.#reported.get(key);
    if (last?.what === what && at - last.at < TELL_AGAIN_MS) return;
    this.#reported.set(key, { what, at });
    const regarding = { apiVersion, kind, namespace, name, uid };
    const type = waits ? "Normal" : "Warning";
    const said = { type, reason: reasonOf(code), action: "Reserving", note: about.note } as const;
    this.#deps.events.record({ regarding, ...said });
  }

  /** Nothing is in the way of any of its pods: what comes next is told at once. */
  forget(key: string): void {
    this.#reported.delete(key);
  }
}

export function obstacleOf(fault: unknown): Obstacle {
  const { code, details } = fault instanceof BerthError ? fault : { code: "INTERNAL", details: {} };
  return { code, details, message: messageOf(fault) };
}
