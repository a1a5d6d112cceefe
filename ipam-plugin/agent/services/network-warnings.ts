// SPDX-License-Identifier: Apache-2.0
import type { Logger } from "../../../allocator/base/ports.ts";

/** Networks that are remembered. Whoever may define networks can name as many as they like. */
const MOST_NETWORKS = 256;
/** Names in one line of the log. */
const NAMED = 10;

/** What of networks' configurations has no effect and is no reason to refuse pods: told in the log, once. */
export class NetworkWarnings {
  readonly #log: Logger;
  readonly #warned = new Map<string, string>(); // kind of warning and network -> what was told last

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Keys of `ipam` that are ignored, as host-local ignores them: another tool may have put them there. */
  unread(network: string, keys: readonly string[]): void {
    const field = keys.slice(0, NAMED).join(", ");
    if (this.#isNew(`unread ${network}`, field))
      this.#log.warn("keys of a network's ipam are not known and have no effect", { network, field });
  }

  /** Ranges beside `ipam.pools`, which come first: somebody may think that both give addresses. */
  beside(network: string, names: readonly string[], field: "ranges" | "subnet" | ""): void {
    if (this.#isNew(`beside ${network}`, field))
      this.#log.warn("a network has addresses of its own beside ipam.pools", {
        ...{ network, field: `ipam.${field}`, pool: names.slice(0, NAMED).join(", ") },
        consequence:
          "pods get addresses of the pools; the others serve only pods to which the pools are closed",
        remedy: "take one of the two out, unless that is meant",
      });
  }

  /** Pools that a network names in these fields and that are not there. They may be made at any moment, and pods with claims do without. */
  missing(network: string, names: readonly string[], fields: string): void {
    const pool = names.slice(0, NAMED).join(", ");
    if (this.#isNew(`missing ${network}`, pool))
      this.#log.warn("a network names pools that do not exist", {
        ...{ network, pool },
        consequence: "pods of the network that have no claim are refused",
        remedy: `make the pools, or name others in ${fields}`,
      });
  }

  /** Pools that a network names and that have no blocks: one host makes a claim for a pod that asks for nothing, a cluster does not. */
  uncut(
    network: string,
    {
      names,
      size,
      isOneHost,
    }: { readonly names: readonly string[]; readonly size: string; readonly isOneHost: boolean },
  ): void {
    const pool = names.slice(0, NAMED).join(", ");
    if (!this.#isNew(`uncut ${network}`, pool)) return;
    const remedy = `make such a pool with spec.blockSize: ${size}, or with {} if it is only for pods that ask`;
    const words = "a network names pools that have no spec.blockSize";
    if (isOneHost)
      this.#log.info(words, {
        ...{ network, pool, remedy },
        consequence:
          "here a pod that asks for nothing gets a claim of them, a container that CNI_ARGS names no pod of is refused; in a cluster both are",
      });
    else
      this.#log.warn(words, {
        ...{ network, pool, remedy },
        consequence: "pods of the network that ask for nothing are refused",
      });
  }

  /** A configuration that was written for another plugin, and that no pool serves so far. */
  unserved(network: string, why: string): void {
    if (this.#isNew(`unserved ${network}`, why))
      this.#log.warn("a network's configuration means a pool that does not exist", {
        ...{ network, error: why },
        consequence: "pods of the network are refused",
      });
  }

  #isNew(about: string, words: string): boolean {
    if ((this.#warned.get(about) ?? "") === words) return false;
    this.#warned.delete(about);
    if (words === "") return false;
    this.#warned.set(about, words);
    const [oldest] = this.#warned.size > MOST_NETWORKS ? this.#warned.keys() : [];
    if (oldest !== undefined) this.#warned.delete(oldest);
    return true;
  }
}
