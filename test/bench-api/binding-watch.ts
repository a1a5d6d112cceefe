// SPDX-License-Identifier: Apache-2.0
import type { Connection } from "../../kube/api/connection.ts";
import { CLAIMS, type KubeItem } from "../../kube/api/resource.ts";
import { listAndWatch } from "../../kube/watch/list-watch.ts";
import { hostDeps } from "../support/host-deps.ts";

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
    const deps = { connection, ...hostDeps() };
    const changes = listAndWatch({ ...deps, resource: CLAIMS, selection: { namespace } }, this.#stop.signal);
    this.#running = this.#see(changes);
  }

  of(podUID: string): Bound | undefined {
    return this.#bound.get(podUID);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #see(changes: ReturnType<typeof listAndWatch>): Promise<void> {
    for await (const change of changes) {
      if (change.type !== "put") continue;
      const { binding, addresses = [] } = (change.item as KubeItem & { spec?: ClaimSpec }).spec ?? {};
      const uid = binding?.podUID ?? "";
      if (uid !== "" && !this.#bound.has(uid)) this.#bound.set(uid, { at: performance.now(), addresses });
    }
  }
}
