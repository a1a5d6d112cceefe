// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../../../allocator/base/ports.ts";
import type { HostRegistry } from "../../../../allocator/store/etcd/hosts.ts";

/** How old a look at all hosts may be that decides only whether to look closer. */
const FRESH_MS = 10_000;

/** Which hosts a person has said to be gone for good. */
export class Fences {
  readonly #registry: Pick<HostRegistry, "get" | "list">;
  readonly #own: string;
  readonly #clock: Pick<Clock, "monotonic">;
  #seen: { readonly at: number; readonly names: Promise<ReadonlySet<string>> } | undefined;

  constructor(registry: Pick<HostRegistry, "get" | "list">, own: string, clock: Pick<Clock, "monotonic">) {
    this.#registry = registry;
    this.#own = own;
    this.#clock = clock;
  }

  /** By etcd, now. A host that asks this of itself is there. */
  async isFenced(node: string): Promise<boolean> {
    if (node === "" || node === this.#own) return false;
    return (await this.#registry.get(node))?.record.fenced !== undefined;
  }

  /** A moment ago: one call for all. */
  async wasFenced(node: string): Promise<boolean> {
    if (node === "" || node === this.#own) return false;
    const now = this.#clock.monotonic();
    if (this.#seen === undefined || now - this.#seen.at >= FRESH_MS) {
      const names = this.#list();
      this.#seen = { at: now, names };
      names.catch(() => {
        this.#seen = undefined;
      });
    }
    return (await this.#seen.names).has(node);
  }

  async #list(): Promise<ReadonlySet<string>> {
    const hosts = await this.#registry.list();
    return new Set(hosts.filter(({ record }) => record.fenced !== undefined).map(({ name }) => name));
  }
}
