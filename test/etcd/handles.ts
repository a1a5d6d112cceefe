// SPDX-License-Identifier: Apache-2.0
import { noopLogger } from "../../allocator/base/ports.ts";
import type { EtcdAccess } from "../../allocator/store/etcd/access.ts";
import { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { openEtcdStore } from "../../allocator/store/etcd/store.ts";
import type { Store } from "../../allocator/store/store.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";

/** A store on etcd with a client of its own, as another host has it. */
export interface Handle {
  readonly store: Store;
  readonly client: EtcdClient;
  close(): Promise<void>;
}

export function openHandle(
  access: EtcdAccess,
  options: { readonly prefix?: string; readonly pageSize?: number } = {},
): Handle {
  const deps = { clock: createClock(), random: createRandom(), log: noopLogger };
  const client = new EtcdClient(access, deps);
  const store = openEtcdStore({ ...deps, client, ...options });
  return {
    store,
    client,
    async close() {
      await store.close();
      await client.close();
    },
  };
}
