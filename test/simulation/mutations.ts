// SPDX-License-Identifier: Apache-2.0
// What could be wrong, put between the processes and what they rely on: the simulation must find each of these.
import type { Inventory } from "../../allocator/inventory.ts";
import type { Mirror } from "../../allocator/mirror.ts";
import type { Reservation } from "../../allocator/reservation.ts";
import type { Database } from "../../allocator/store/database.ts";
import type { Work } from "../../allocator/store/sql.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import type { Mooring } from "../../ipam-plugin/agent/mooring.ts";
import { altered } from "./altered.ts";
import type { Role, Tampering } from "./setting.ts";

/** The reaper deletes what it did not mark. */
export function withoutMark(store: Store): Store {
  return altered(store, {
    replace: async (kind, seen, next) => {
      const marks = kind === "reservation" && (next as Reservation).marked === true;
      return marks ? { kind: "replaced", stored: seen } : await store.replace(kind, seen, next);
    },
  });
}

/** What it created it takes for granted, once: that is when it should look. */
export function withoutReadingBack(store: Store): Store {
  const created = new Map<string, Stored<Kind>>(); // address -> reservation as it was created
  return altered(store, {
    create: async (kind, record) => {
      const result = await store.create(kind, record);
      if (kind === "reservation" && result.kind === "created") created.set(result.stored.key, result.stored);
      return result;
    },
    get: async <K extends Kind>(kind: K, key: string) => {
      const known = kind === "reservation" ? (created.get(key) as Stored<K> | undefined) : undefined;
      created.delete(key);
      return known ?? (await store.get(kind, key));
    },
  });
}

/** What the view shows is taken for what is stored. */
export function trustingMirror(store: Store, mirror: Mirror): Store {
  return altered(store, {
    get: async <K extends Kind>(kind: K, key: string) => {
      const shown = kind === "claim" ? mirror.claim(key) : mirror.reservation(key as Reservation["address"]);
      return (shown as Stored<K> | undefined) ?? (await store.get(kind, key));
    },
  });
}

/** Whatever is there goes, not what was seen. */
export function removingAnything(store: Store): Store {
  return altered(store, {
    remove: async (kind, seen) => {
      const there = await store.get(kind, seen.key);
      return there === undefined ? { kind: "conflict" } : await store.remove(kind, there);
    },
  });
}

/** The last writer wins. */
export function replacingAnything(store: Store): Store {
  return altered(store, {
    replace: async (kind, seen, next) => {
      const there = await store.get(kind, seen.key);
      return there === undefined ? { kind: "conflict" } : await store.replace(kind, there, next);
    },
  });
}

/** An address that is taken is taken all the same. */
export function takingAnyway(store: Store): Store {
  return altered(store, {
    create: async (kind, record) => {
      const result = await store.create(kind, record);
      if (kind !== "reservation" || result.kind === "created") return result;
      const replaced = await store.replace(kind, result.stored, record);
      return replaced.kind === "replaced" ? { kind: "created", stored: replaced.stored } : result;
    },
  });
}

/** Says that it wrote that a sandbox is up, and did not. */
export function withoutReport(store: Store): Store {
  return altered(store, {
    report: async (seen, status) =>
      status.attachment?.detached === false
        ? { kind: "replaced", stored: seen }
        : await store.report(seen, status),
  });
}

/** Every node counts as gone for good. */
export function fencingAll(inventory: Inventory): Inventory {
  return altered(inventory, { fenced: async () => true });
}

/** The end of any sandbox of the pod is taken for the end of the one that is up. */
export function mistakingSandboxes(mooring: Mooring, store: Store): Mooring {
  return altered(mooring, {
    detached: async (notice) => {
      const known = (await store.get("claim", notice.claim))?.record.status.attachment;
      const containerID = known?.containerID ?? notice.attachment.containerID;
      await mooring.detached({ ...notice, attachment: { ...notice.attachment, containerID } });
    },
  });
}

/** The caller goes on while the commit is under way. */
export function answeringEarly(database: Database): Database {
  return altered(database, {
    write: async <T>(work: Work<T>) => {
      database.write(work).catch(() => undefined); // nobody waits for it
      return undefined as T;
    },
  });
}

/** The journal is there, and nobody reads it. */
export function forgetful(database: Database): Database {
  return altered(database, { read: <T>() => ({ attachments: [], positions: [] }) as T });
}

/** Puts it between the store and the processes of one role. */
export function storeOf(role: Role, tamper: (store: Store, mirror: Mirror) => Store): Tampering {
  return { store: (store, of) => (of.role === role ? tamper(store, of.mirror) : store) };
}

export function inventoryOf(role: Role, tamper: (inventory: Inventory) => Inventory): Tampering {
  return { inventory: (inventory, of) => (of === role ? tamper(inventory) : inventory) };
}
