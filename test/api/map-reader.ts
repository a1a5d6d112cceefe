// SPDX-License-Identifier: Apache-2.0
// ConfigMaps of tests, and who follows them.
import assert from "node:assert/strict";
import { type Logger, noopLogger } from "../../allocator/base/ports.ts";
import type { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import type { KubeItem } from "../../kube/api/resource.ts";
import { type ListWatchOptions, listAndWatch } from "../../kube/watch/list-watch.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { eventually } from "../support/eventually.ts";
import { hostDeps } from "../support/host-deps.ts";
import { CONFIG_MAPS } from "./cluster-resources.ts";

export const NAMESPACE = "default";
export const OURS = { namespace: NAMESPACE, labelSelector: "berth-test" };
const PATIENCE_MS = 30_000;

/** Names that a reader of the changes believes to be there, and how often he was told everything. */
export class Reader {
  readonly names = new Set<string>();
  readonly #stale = new Set<string>();
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  relists = 0;
  synced = 0;

  constructor(options: ListWatchOptions) {
    this.#ended = this.#read(options);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  /** Waits until exactly these are believed to be there. */
  async believes(...names: readonly string[]): Promise<void> {
    const wanted = names.toSorted().join(" ");
    const pendingClaims = () =>
      (this.synced > 0 && this.synced === this.relists && [...this.names].sort().join(" ") === wanted) ||
      undefined;
    await eventually(`${wanted}, not ${[...this.names].join(" ")}`, pendingClaims, PATIENCE_MS);
  }

  async #read(options: ListWatchOptions): Promise<void> {
    for await (const change of listAndWatch(options, this.#stop.signal)) {
      if (change.type === "relist") {
        this.relists++;
        for (const name of this.names) this.#stale.add(name);
      } else if (change.type === "synced") {
        this.synced++;
        for (const name of this.#stale) this.names.delete(name);
        this.#stale.clear();
      } else if (change.type === "put") {
        this.names.add(change.item.metadata.name);
        this.#stale.delete(change.item.metadata.name);
      } else {
        this.names.delete(change.item.metadata.name);
      }
    }
  }
}

export async function makeMap(client: Client, name: string): Promise<KubeItem> {
  const body = { metadata: { labels: { "berth-test": "" } } };
  const item = await client.create({ namespace: NAMESPACE, name }, body);
  assert.ok(item, `${name} is there already`);
  return item;
}

export async function removeMap(client: Client, { metadata }: KubeItem): Promise<void> {
  await client.remove({ namespace: NAMESPACE, name: metadata.name }, metadata);
}

export function optionsFor(connection: Connection): ListWatchOptions {
  return { connection, resource: CONFIG_MAPS, selection: OURS, ...hostDeps() };
}

export interface Lettered {
  readonly name: string;
  readonly letter: string;
}

/** A reflector that cannot use what is named bad, and one of whose handlers fails. */
export function lettered(
  options: ListWatchOptions,
  seen: { readonly errors: string[]; readonly reported: string[] },
): Reflector<Lettered> {
  const log: Logger = { ...noopLogger, error: (message) => seen.errors.push(message) };
  const project = ({ metadata }: KubeItem) => {
    if (metadata.name === "bad") throw new Error("cannot be used");
    return { name: metadata.name, letter: metadata.name.slice(0, 1) };
  };
  const indexes = { letter: ({ letter }: Lettered) => [letter] };
  const reflector = new Reflector({ ...options, log, project, indexes });
  reflector.onChange((key) => {
    seen.reported.push(key);
    throw new Error("a handler that fails");
  });
  assert.equal(reflector.isSynced, false);
  return reflector;
}
