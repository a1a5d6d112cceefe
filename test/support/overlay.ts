// SPDX-License-Identifier: Apache-2.0
import type { Store } from "../../allocator/store/store.ts";

/** The store, but for these verbs. */
export function overlay(store: Store, verbs: Partial<Store>): Store {
  return {
    create: (kind, record) => store.create(kind, record),
    get: (kind, key) => store.get(kind, key),
    replace: (kind, seen, next) => store.replace(kind, seen, next),
    report: (seen, status) => store.report(seen, status),
    reportBlock: (seen, status) => store.reportBlock(seen, status),
    remove: (kind, seen) => store.remove(kind, seen),
    list: (kind) => store.list(kind),
    watch: (kind, signal) => store.watch(kind, signal),
    close: () => store.close(),
    ...verbs,
  };
}
