// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Kind, Store } from "../../allocator/store/store.ts";
import type { Backend } from "../backend/backend.ts";

interface Closed {
  readonly kinds: readonly Kind[];
  readonly arePodsClosed?: boolean;
}

/** A cluster as somebody has it with rights in namespace shop, and without any to these kinds. */
export function tenantsOf(backend: Backend, { kinds, arePodsClosed = false }: Closed): Backend {
  return {
    ...backend,
    place: "cluster",
    node: "",
    store: closed(backend.store, kinds),
    world: arePodsClosed ? withoutPods(backend.world) : backend.world,
    claims: async (namespace) =>
      (await backend.claims(namespace)).filter(({ record }) => record.namespace === namespace),
  };
}

function closed(store: Store, kinds: readonly Kind[]): Store {
  const refuse = () => new BerthError("STORE_READ_ONLY", "no");
  return {
    ...store,
    get: async (kind, key) => {
      if (kinds.includes(kind) || (kind === "claim" && !key.startsWith("shop/"))) throw refuse();
      return await store.get(kind, key);
    },
    list: (kind, ...rest) => {
      if (kinds.includes(kind)) throw refuse();
      return store.list(kind, ...rest);
    },
  };
}

/** What of the world commands ask, but for lists: it keeps its parts to itself, and is not copied. */
function withoutPods(world: Backend["world"]): Backend["world"] {
  const refuse = () => {
    throw new BerthError("STORE_READ_ONLY", "no");
  };
  return {
    pod: (...args) => world.pod(...args),
    workload: (ref) => world.workload(ref),
    namespace: (name) => world.namespace(name),
    fenced: (node) => world.fenced(node),
    object: (...args) => world.object(...args),
    objects: refuse,
    each: refuse,
  };
}
