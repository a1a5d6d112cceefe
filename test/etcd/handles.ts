// SPDX-License-Identifier: Apache-2.0
import { listed } from "../../allocator/store/contract/subject.ts";
import type { EtcdAccess } from "../../allocator/store/etcd/access.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { openEtcdStore } from "../../allocator/store/etcd/store.ts";
import type { WriteGuard } from "../../allocator/store/etcd/write-guard.ts";
import type { Store } from "../../allocator/store/store.ts";
import { hostDeps } from "../support/host-deps.ts";

/** A store on etcd with a client of its own, as another host has it. */
export interface Handle {
  readonly store: Store;
  readonly client: EtcdClient;
  close(): Promise<void>;
}

export interface HandleOptions {
  readonly prefix?: string;
  readonly pageSize?: number;
  readonly guard?: (client: EtcdClient) => WriteGuard;
}

export function openHandle(access: EtcdAccess, options: HandleOptions = {}): Handle {
  const deps = hostDeps();
  const client = new EtcdClient(access, deps);
  const { guard, ...others } = options;
  const store = openEtcdStore({ ...deps, client, ...others, ...(guard && { guard: guard(client) }) });
  return {
    store,
    client,
    async close() {
      await store.close();
      await client.close();
    },
  };
}

/** Which addresses are taken, by etcd: for what is looked at until it is so. berthctl takes a quarter of a second of a processor for it. */
export async function taken(access: EtcdAccess): Promise<readonly string[]> {
  const { store, close } = openHandle(access);
  try {
    return (await listed(store, "reservation")).map(({ key }) => key).toSorted();
  } finally {
    await close();
  }
}
