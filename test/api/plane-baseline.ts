// SPDX-License-Identifier: Apache-2.0
// What a control plane had before a test used it, and has again afterwards: in etcd, and in what the API server remembers.
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../support/eventually.ts";
import { Etcd, type Operation, put, removeRange, type StoredKey } from "./etcd.ts";
import type { ControlPlane } from "./plane.ts";
import { forgotten } from "./plane-memory.ts";

/** What an API server writes by itself, at any time. */
const ITS_OWN = [
  "/registry/masterleases/",
  "/registry/leases/kube-system/apiserver-",
  "/registry/flowschemas/",
  "/registry/prioritylevelconfigurations/",
  "/registry/services/endpoints/default/kubernetes",
  "/registry/endpointslices/default/kubernetes",
  // from its fifth minute on; it panics if the key is gone in its tenth (k8s.io/apiserver, storage/etcd3/compact.go)
  "compact_rev_key",
];
/** Kinds that an API server serves and documents anew when they change: one that starts anew is quicker. */
const DEFINITIONS = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
const STABLE_MS = 250;

export class Baseline {
  readonly #plane: ControlPlane;
  readonly #etcd: Etcd;
  readonly #keys: Map<string, StoredKey>; // key -> as it must be
  #settled = 0;

  private constructor(plane: ControlPlane, etcd: Etcd, keys: readonly StoredKey[]) {
    this.#plane = plane;
    this.#etcd = etcd;
    this.#keys = new Map(keys.map((one) => [one.key, one]));
  }

  /** What is stored, once nothing is written any more. */
  static async take(plane: ControlPlane): Promise<Baseline> {
    const etcd = new Etcd(plane.etcdUrl);
    let last = "";
    const keys = await eventually(
      "a new API server has written what it has to",
      async () => {
        const now = await etcd.keys({ values: true });
        const [before, seen] = [last, revisionsOf(now)];
        last = seen;
        if (before === seen) return now;
        await pause(STABLE_MS);
        return undefined;
      },
      60_000,
    );
    return new Baseline(plane, etcd, keys);
  }

  /** Puts it back. `written to`: somebody wrote meanwhile. `changed`: it cannot be, as kinds of objects were made or changed. */
  async restore(): Promise<"restored" | "written to" | "changed"> {
    const now = await this.#etcd.keys({ values: false });
    const added = now.filter(({ key }) => !this.#keys.has(key) && !isItsOwn(key));
    const revisions = new Map(now.map(({ key, revision }) => [key, revision]));
    const changed = [...this.#keys.values()].filter(
      ({ key, revision }) => revisions.get(key) !== revision && !isItsOwn(key),
    );
    if ([...added, ...changed].some(({ key }) => key.startsWith(DEFINITIONS))) return "changed";
    const puts = changed.map(({ key, value = "" }) => put(key, value));
    await this.#etcd.apply([...removals(now, new Set(added.map(({ key }) => key))), ...puts]);
    await this.#remember(changed);
    await forgotten(
      this.#plane,
      [...added, ...changed].map(({ key }) => key),
      ++this.#settled,
    );
    return (await this.#isRestored()) ? "restored" : "written to";
  }

  async #remember(changed: readonly StoredKey[]): Promise<void> {
    if (changed.length === 0) return;
    const names = new Set(changed.map(({ key }) => key));
    const written = (await this.#etcd.keys({ values: false })).filter(({ key }) => names.has(key));
    for (const { key, revision } of written) {
      const before = this.#keys.get(key);
      if (before !== undefined) this.#keys.set(key, { ...before, revision });
    }
  }

  /** Somebody who was left running may write on. */
  async #isRestored(): Promise<boolean> {
    const now = (await this.#etcd.keys({ values: false })).filter(({ key }) => !isItsOwn(key));
    const wanted = [...this.#keys.values()].filter(({ key }) => !isItsOwn(key));
    return revisionsOf(now) === revisionsOf(wanted);
  }
}

/** One range for all that lies between two keys that stay. */
function removals(sorted: readonly StoredKey[], gone: ReadonlySet<string>): readonly Operation[] {
  const found: Operation[] = [];
  let [first, last]: [string | undefined, string] = [undefined, ""];
  for (const { key } of [...sorted, { key: "" }]) {
    if (gone.has(key)) {
      first ??= key;
      last = key;
    } else if (first !== undefined) {
      found.push(removeRange(first, last));
      first = undefined;
    }
  }
  return found;
}

function isItsOwn(key: string): boolean {
  return ITS_OWN.some((prefix) => key.startsWith(prefix));
}

function revisionsOf(keys: readonly StoredKey[]): string {
  return keys.map(({ key, revision }) => `${key} ${revision}`).join("\n");
}
