// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Body, Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  BLOCKS,
  CLAIMS,
  type KubeItem,
  NAMESPACES,
  POOLS,
  RESERVATIONS,
  type Resource,
} from "../../kube/api/resource.ts";
import { patient } from "../support/eventually.ts";
import { parseYaml } from "../support/yaml.ts";
import { DEFINITIONS } from "./cluster-resources.ts";
import { Etcd } from "./etcd.ts";
import type { ControlPlane } from "./plane.ts";

const FOLDER = join(import.meta.dirname, "../../charts/berth/files/crds");
const SERVED_MS = 30_000;

export interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: "Namespaced" | "Cluster";
    readonly names: { readonly plural: string; readonly singular: string; readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly storage: boolean;
      readonly schema: { readonly openAPIV3Schema: unknown };
    }[];
  };
}

/** Every definition of the chart. */
export function definitions(): readonly Definition[] {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(".yaml"));
  return files.sort().map((file) => parseYaml(readFileSync(join(FOLDER, file), "utf8")) as Definition);
}

/** Installs Berth's kinds and waits until the API server serves them. Where it does, as a shared one, nothing is asked but that. */
export async function installDefinitions(connection: Connection): Promise<void> {
  const kinds = [POOLS, CLAIMS, RESERVATIONS, BLOCKS];
  const served = await Promise.all(kinds.map((kind) => isServed(connection, kind)));
  if (!served.every(Boolean)) await define(connection, definitions());
}

/** Makes the definitions, and waits until their kinds are served. */
export async function define(connection: Connection, all: readonly Definition[]): Promise<void> {
  const client = new Client(connection, DEFINITIONS);
  for (const { metadata, spec } of all) await client.create({ name: metadata.name }, { spec });
  const limit = patient(SERVED_MS);
  const until = Date.now() + limit;
  for (const resource of all.map(resourceOf)) {
    while (!(await isServed(connection, resource))) {
      if (Date.now() > until) throw new Error(`${resource.plural} are not served within ${limit} ms`);
      await pause(20);
    }
  }
}

function resourceOf({ spec: { group, scope, names, versions } }: Definition): Resource {
  const version = versions.find(({ storage }) => storage)?.name ?? "";
  return { group, version, plural: names.plural, kind: names.kind, namespaced: scope === "Namespaced" };
}

/** Makes the namespaces that are not there. */
export async function makeNamespaces(connection: Connection, names: readonly string[]): Promise<void> {
  const client = new Client(connection, NAMESPACES);
  for (const name of names) await client.create({ name }, {});
}

/** Takes every object of Berth's kinds away, whatever holds it: in etcd, past the API server, which hears of it. */
export async function clear({ etcdUrl }: ControlPlane): Promise<void> {
  const etcd = new Etcd(etcdUrl);
  const all = (await etcd.keys({ values: false })).map(({ key }) => key);
  await etcd.removeEach(all.filter((key) => key.startsWith("/registry/berth.dev/")));
}

/** Deletes an object, whatever it looks like now and whoever holds it with a finalizer. */
export async function wipe(client: Client, { metadata }: KubeItem): Promise<void> {
  const { name, namespace } = metadata;
  const place = client.resource.namespaced && namespace !== undefined ? { name, namespace } : { name };
  for (let seen: KubeItem["metadata"] | undefined = metadata; seen !== undefined; ) {
    const { uid, resourceVersion, finalizers = [] }: KubeItem["metadata"] = seen;
    const freed: Body = { metadata: { uid, resourceVersion, finalizers: null } };
    if (finalizers.length > 0) await client.patch(place, { type: "merge", body: freed });
    else if (await client.remove(place, seen)) return;
    seen = (await client.get(place))?.metadata;
  }
}

async function isServed(connection: Connection, resource: Resource): Promise<boolean> {
  try {
    await new Client(connection, resource).pages({}, 1).next();
    return true;
  } catch {
    return false;
  }
}
