// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import { noopLogger } from "../../allocator/base/ports.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { bareNamespace, type PodState } from "../../allocator/model/cluster-state.ts";
import { type EtcdAccess, readEndpoints } from "../../allocator/store/etcd/access.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { HostRegistry } from "../../allocator/store/etcd/hosts.ts";
import { openEtcdStore } from "../../allocator/store/etcd/store.ts";
import type { Store } from "../../allocator/store/store.ts";
import type { Io } from "../terminal/command.ts";
import { printable } from "../terminal/output.ts";
import type { EtcdTarget } from "../terminal/target.ts";
import { usesOf } from "./attachment-report.ts";
import type { Backend } from "./backend.ts";
import { allOf } from "./embedded-backend.ts";
import { UnreadRecords } from "./unread-records.ts";

/** Pools and claims that many hosts share, and the hosts. */
export interface EtcdBackend extends Backend {
  readonly registry: HostRegistry;
  readonly unread: UnreadRecords;
  /** All keys, those of other systems too. */
  readonly keys: Pick<EtcdClient, "range" | "change">;
}

/** Throws CONFIG_INVALID naming the URL that is none. */
export function etcdAccessOf({ urls, ...files }: EtcdTarget): EtcdAccess {
  const paths = Object.entries(files).map(([name, file]) => [name, name === "user" ? file : resolve(file)]);
  return { endpoints: readEndpoints(urls), ...Object.fromEntries(paths) };
}

/** Connects for `work`, and warns of records that could not be read and were skipped. Throws CONFIG_INVALID, CERTIFICATE_INVALID, or the error of etcd. */
export async function withEtcd<T>(
  { clock, random, stderr }: Pick<Io, "clock" | "random" | "stderr">,
  target: EtcdTarget,
  work: (etcd: EtcdBackend) => Promise<T>,
): Promise<T> {
  const deps = { clock, random, log: noopLogger };
  const client = new EtcdClient(etcdAccessOf(target), deps);
  const unread = new UnreadRecords();
  const store = openEtcdStore({
    ...{ ...deps, client },
    unreadable: (kind, key, fault) => unread.note(kind, key, fault),
  });
  const registry = new HostRegistry(client, noopLogger, (fault, name) => unread.note("host", name, fault));
  try {
    return await work({
      place: "etcd",
      store,
      unread,
      registry,
      keys: client,
      world: worldOf(registry, store),
      namespace: "default",
      node: "",
      claims: () => allOf(store, "claim"),
      hosts: () => registry.list(),
      uses: async (claims) => usesOf(claims),
      giveBack: release,
    });
  } finally {
    for (const { why } of unread.taken()) stderr.write(`Warning: ${printable(why)}\n`);
    await store.close();
    await client.close();
  }
}

/** Hosts without Kubernetes keep no objects of their containers: what is known is what they report to the claims. */
function worldOf(registry: HostRegistry, store: Store): Backend["world"] {
  return {
    pod: async (namespace, name) => containerOf((await store.get("claim", `${namespace}/${name}`))?.record),
    workload: async () => "never admitted",
    namespace: async (name) => bareNamespace(name),
    fenced: async (node) => node !== "" && (await registry.get(node))?.record.fenced !== undefined,
    object: async () => undefined,
    objects: async () => [],
    async *each() {},
  };
}

/** The container that has the claim, as far as its host has not said that it ended. */
function containerOf(claim: Claim | undefined): PodState | undefined {
  const { binding } = claim ?? {};
  if (claim === undefined || binding === undefined || isDetached(claim)) return undefined;
  const { podName: name, podUID: uid, node } = binding;
  return { namespace: claim.namespace, name, uid, node, labels: {}, annotations: {}, ended: false };
}
