// SPDX-License-Identifier: Apache-2.0
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { syncCache } from "../../allocator/cache/sync.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import type { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { HostRegistry } from "../../allocator/store/etcd/hosts.ts";
import type { WriteGuard } from "../../allocator/store/etcd/write-guard.ts";
import { openAdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { EmbeddedClaims } from "../../ipam-plugin/agent/claims/embedded.ts";
import { isContainerName } from "../../ipam-plugin/agent/claims/etcd/container-name.ts";
import { Presence } from "../../ipam-plugin/agent/claims/etcd/presence.ts";
import { createClock } from "../../system/clock.ts";
import { hostDeps } from "../support/host-deps.ts";
import { openHandle } from "./handles.ts";

/** What decides about addresses on one host that shares etcd with others: everything of an agent but its socket. */
export interface Host {
  readonly node: string;
  readonly context: Context;
  readonly claims: EmbeddedClaims;
  readonly collector: GarbageCollector;
  close(): Promise<void>;
}

/** `single`: as it was before a claim and its reservations were written together. */
export async function openHost(node: string, endpoints: readonly string[], single = false): Promise<Host> {
  const handle = openHandle({ endpoints }, single ? {} : { guard: (client) => guardOf(node, client) });
  const { store } = handle;
  if (single) Object.defineProperty(store, "createClaim", { value: undefined });
  const view = new RecordCache(noopLogger);
  const stop = new AbortController();
  const following = syncCache(store, view, stop.signal);
  const deps = { ...hostDeps(), serial: new KeyedMutex() };
  const context: Context = { ...deps, store, view };
  // of this host alone: the others know nothing of what was admitted here
  const database = openDatabase(":memory:");
  const inventory = openAdmittedObjects(database);
  await following.synced;
  return {
    node,
    context,
    claims: new EmbeddedClaims({
      ...{ context, inventory, node, enqueueForGc: () => undefined },
      ...(single ? {} : { bindsAtOnce: true, isNew: ({ name }) => isContainerName(name) }),
    }),
    collector: new GarbageCollector(context, inventory),
    async close() {
      stop.abort();
      await following.ended;
      await handle.close();
      database.close();
    },
  };
}

/** As an agent has it. */
function guardOf(node: string, client: EtcdClient): WriteGuard {
  const registry = new HostRegistry(client);
  const id = { journal: () => `journal of ${node}`, process: { id: node, isFormer: () => false } };
  const presence = new Presence({
    registry,
    node,
    ...id,
    clock: createClock(),
    log: noopLogger,
    isKept: async () => true,
  });
  return {
    key: registry.keyOf(node),
    covers: (claim) => claim.binding?.node === node && !isDetached(claim),
    revision: (failed) => presence.revision(failed),
  };
}
