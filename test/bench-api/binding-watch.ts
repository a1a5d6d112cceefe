// SPDX-License-Identifier: Apache-2.0
import { silent } from "../../allocator/ports.ts";
import type { Connection } from "../../kube/connection.ts";
import { follow } from "../../kube/follow.ts";
import { CLAIMS, type Item } from "../../kube/resource.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";

export interface Bound {
  /** Of performance.now(), when the binding was seen first. */
  readonly at: number;
  readonly addresses: readonly string[];
}

interface ClaimSpec {
  readonly addresses?: readonly string[];
  readonly binding?: { readonly podUID?: string };
}

/** Sees claims being bound to pods, by a watch, as agents do. */
export class BindingWatch {
  readonly #bound = new Map<string, Bound>(); // pod uid -> when, and to what
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(connection: Connection, namespace: string) {
    const deps = { connection, clock: createClock(), random: createRandom(), log: silent };
    const changes = follow({ ...deps, resource: CLAIMS, selection: { namespace } }, this.#stop.signal);
    this.#running = this.#see(changes);
  }

  of(podUID: string): Bound | undefined {
    return this.#bound.get(podUID);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #see(changes: ReturnType<typeof follow>): Promise<void> {
    for await (const change of changes) {
      if (change.type !== "put") continue;
      const { binding, addresses = [] } = (change.item as Item & { spec?: ClaimSpec }).spec ?? {};
      const uid = binding?.podUID ?? "";
      if (uid !== "" && !this.#bound.has(uid)) this.#bound.set(uid, { at: performance.now(), addresses });
    }
  }
}
