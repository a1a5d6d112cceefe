// SPDX-License-Identifier: Apache-2.0
import { openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import type { Store } from "../../allocator/store/store.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { hostDeps } from "../support/host-deps.ts";

/** The records of an API server, as whoever has that connection reaches them. */
export function openStore(connection: Connection): Store {
  return openKubernetesStore({ connection, ...hostDeps() });
}
