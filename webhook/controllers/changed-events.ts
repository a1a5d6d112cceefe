// SPDX-License-Identifier: Apache-2.0

import { apiVersionOf, NODES, POOLS } from "../../kube/api/resource.ts";
import type { InvolvedObject } from "../../kube/controller/event-recorder.ts";
import type { ControllerDeps } from "./controller.ts";

/** What events of one kind are called. */
interface EventKind {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly action: string;
}

/** What there is to say of a pool. */
export interface PoolNote {
  readonly pool: string;
  readonly note: string;
}

/** What there is to say of a Node. */
export interface NodeNote {
  readonly node: string;
  readonly note: string;
}

const BLOCKS_SHORT: EventKind = { type: "Warning", reason: "BlocksShort", action: "Granting" };

/** Events of one kind: one when there is something else to say than before. */
export class ChangedEvents<N extends { readonly note: string }> {
  readonly #events: ControllerDeps["events"];
  readonly #kind: EventKind;
  readonly #objectOf: (note: N) => InvolvedObject | undefined;
  readonly #reported = new Map<string, string>(); // key -> the words

  constructor(
    events: ControllerDeps["events"],
    kind: EventKind,
    objectOf: (note: N) => InvolvedObject | undefined,
  ) {
    this.#events = events;
    this.#kind = kind;
    this.#objectOf = objectOf;
  }

  /** Keys of which something is said. */
  get size(): number {
    return this.#reported.size;
  }

  /** All that is to be said now, by key; what is not among it is over. */
  publish(notes: ReadonlyMap<string, N>): void {
    for (const key of [...this.#reported.keys()]) if (!notes.has(key)) this.#reported.delete(key);
    for (const [key, about] of notes) {
      const { note } = about;
      if (this.#reported.get(key) === note) continue;
      this.#reported.set(key, note);
      const regarding = this.#objectOf(about);
      if (regarding !== undefined) this.#events.record({ regarding, ...this.#kind, note });
    }
  }

  forget(): void {
    this.#reported.clear();
  }
}

/** Of pools; of those that lack blocks unless said otherwise. */
export function poolEvents(
  { cache, events }: Pick<ControllerDeps, "cache" | "events">,
  kind = BLOCKS_SHORT,
): ChangedEvents<PoolNote> {
  return new ChangedEvents(events, kind, ({ pool }) => {
    const stored = cache.poolRecord(pool);
    return stored && { apiVersion: apiVersionOf(POOLS), kind: POOLS.kind, name: stored.key, uid: stored.uid };
  });
}

/** Warnings of Nodes that are given addresses. */
export function nodeEvents(
  { watches, events }: Pick<ControllerDeps, "watches" | "events">,
  reason: string,
): ChangedEvents<NodeNote> {
  return new ChangedEvents(events, { type: "Warning", reason, action: "Granting" }, ({ node: name }) => {
    const uid = watches.nodes.get(name)?.uid;
    return uid === undefined ? undefined : { apiVersion: apiVersionOf(NODES), kind: NODES.kind, name, uid };
  });
}
