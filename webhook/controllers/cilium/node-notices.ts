// SPDX-License-Identifier: Apache-2.0

import { apiVersionOf, NODES } from "../../../kube/api/resource.ts";
import type { ControllerDeps } from "../controller.ts";

/** Events of Nodes, of one kind: one when there is something else to tell than before. */
export class NodeNotices {
  readonly #deps: Pick<ControllerDeps, "watches" | "events">;
  readonly #reason: string;
  readonly #reported = new Map<string, string>(); // node -> what an event told

  constructor(deps: Pick<ControllerDeps, "watches" | "events">, reason: string) {
    this.#deps = deps;
    this.#reason = reason;
  }

  /** Nodes of which something is told. */
  get size(): number {
    return this.#reported.size;
  }

  /** All that is to be told now, by node; what is not among it is over. */
  tell(notes: ReadonlyMap<string, string>): void {
    for (const name of [...this.#reported.keys()]) if (!notes.has(name)) this.#reported.delete(name);
    for (const [name, note] of notes) {
      if (this.#reported.get(name) === note) continue;
      this.#reported.set(name, note);
      const uid = this.#deps.watches.nodes.get(name)?.uid;
      if (uid === undefined) continue;
      this.#deps.events.record({
        regarding: { apiVersion: apiVersionOf(NODES), kind: NODES.kind, name, uid },
        ...{ type: "Warning", reason: this.#reason, action: "Granting", note },
      });
    }
  }

  forget(): void {
    this.#reported.clear();
  }
}
