// SPDX-License-Identifier: Apache-2.0
// What a control plane had before a test used it, and has again afterwards: in etcd, and in what the API server remembers.
import { setTimeout as pause } from "node:timers/promises";
import type { Connection } from "../../kube/api/connection.ts";
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
  // one for each group that is served
  "/registry/apiregistration.k8s.io/apiservices/",
];
/** Kinds that an API server serves and documents anew when they change. */
const DEFINITIONS = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
/** Of Berth. */
const OWN_DEFINITION = /\/customresourcedefinitions\/[a-z]+\.berth\.dev$/;
const OWN_OBJECTS = "/registry/berth.dev/";
const STABLE_MS = 250;
const DOCUMENTED_MS = 60_000;
/** It looks once a second. */
const DOCUMENTS_STABLE_MS = 2_500;

export class Baseline {
  readonly #plane: ControlPlane;
  readonly #etcd: Etcd;
  readonly #keys: Map<string, StoredKey>; // key -> as it must be
  /** What the API server says of its kinds. */
  readonly #documents: string;
  #settled = 0;

  private constructor(plane: ControlPlane, etcd: Etcd, keys: readonly StoredKey[], documents: string) {
    this.#plane = plane;
    this.#etcd = etcd;
    this.#keys = new Map(keys.map((one) => [one.key, one]));
    this.#documents = documents;
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
    return new Baseline(plane, etcd, keys, await settledDocuments(plane));
  }

  /** Takes Berth's definitions away, with all objects: nobody can tell that they ever were there. `restore` brings them back. */
  async undefine(): Promise<void> {
    const all = (await this.#etcd.keys({ values: false })).map(({ key }) => key);
    const gone = all.filter((key) => OWN_DEFINITION.test(key) || key.startsWith(OWN_OBJECTS));
    await this.#etcd.removeEach(gone);
    await documented(this.#plane, "Berth's kinds are gone", (text) => !text.includes("berth.dev"));
  }

  /** Puts it back. `written to`: somebody wrote meanwhile. */
  async restore(): Promise<"restored" | "written to"> {
    const now = await this.#etcd.keys({ values: false });
    const added = now.filter(({ key }) => !this.#keys.has(key) && !isItsOwn(key));
    const revisions = new Map(now.map(({ key, revision }) => [key, revision]));
    const changed = [...this.#keys.values()].filter(
      ({ key, revision }) => revisions.get(key) !== revision && !isItsOwn(key),
    );
    const puts = changed.map(({ key, value = "" }) => put(key, value));
    await this.#etcd.apply([...removals(now, new Set(added.map(({ key }) => key))), ...puts]);
    await this.#remember(changed);
    if ([...added, ...changed].some(({ key }) => key.startsWith(DEFINITIONS)))
      await documented(this.#plane, "its kinds are as they were", (text) => text === this.#documents);
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

/** What the API server says of its kinds: their groups, and how each is documented, which it knows by a hash. */
async function documentsOf(connection: Connection): Promise<string> {
  const paths = ["/apis", "/openapi/v3"];
  const answers = await Promise.all(paths.map((path) => connection.call({ method: "GET", path })));
  return JSON.stringify(answers.map(({ body }) => body));
}

async function documented(plane: ControlPlane, what: string, is: (text: string) => boolean): Promise<void> {
  const connection = plane.connect();
  try {
    await eventually(what, async () => is(await documentsOf(connection)) || undefined, DOCUMENTED_MS);
  } finally {
    connection.close();
  }
}

/** An API server documents what it has some moments after it is ready. */
async function settledDocuments(plane: ControlPlane): Promise<string> {
  let [last, since] = ["", 0];
  await documented(plane, "an API server has documented its kinds", (text) => {
    if (text !== last) [last, since] = [text, performance.now()];
    return performance.now() - since > DOCUMENTS_STABLE_MS;
  });
  return last;
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
