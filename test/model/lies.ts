// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Kind, Records, Store, Stored } from "../../allocator/store/store.ts";
import { overlay } from "../support/overlay.ts";

/**
 * Stores that lie to one process, so that it does what the protocol forbids: with each of them the checker must find
 * the harm. The product code stays as it is.
 */

/** To a garbage collector: the mark is set, and is not. He deletes what he looked at before. */
export function withoutMarks(store: Store): Store {
  return overlay(store, {
    replace: (kind, seen, next) =>
      "marked" in next && next.marked === true
        ? Promise.resolve({ kind: "replaced", stored: { ...seen, record: next } })
        : store.replace(kind, seen, next),
  });
}

/** To a reserver: what he has created is still there when he reads it back. */
export function withoutReadingBack(store: Store): Store {
  const created = new Map<string, Stored<Kind>>(); // address -> reservation
  return overlay(store, {
    create: async (kind, record) => {
      const result = await store.create(kind, record);
      if (kind === "reservation") created.set(result.stored.key, result.stored);
      return result;
    },
    get: async <K extends Kind>(kind: K, key: string) =>
      kind === "reservation" && created.has(key) ? (created.get(key) as Stored<K>) : store.get(kind, key),
  });
}

/** To a binder: whatever a claim lists is reserved for it. */
export function withoutDoubt(store: Store): Store {
  let nonce = "";
  return overlay(store, {
    get: async <K extends Kind>(kind: K, key: string) => {
      const found = await store.get(kind, key);
      if (kind === "claim") nonce = (found as Stored<"claim"> | undefined)?.record.nonce ?? "";
      if (kind !== "reservation" || found === undefined) return found;
      const { marked: _, releasedAt: __, ...record } = found.record as Records["reservation"];
      return { ...found, record: { ...record, nonce } } as Stored<K>;
    },
  });
}

/** To a reserver who swaps: the claim is as he has written it, whatever others have made of it. */
export function withoutLookingAgain(store: Store): Store {
  const written = new Map<string, Stored<Kind>>(); // claim -> as it was written
  return overlay(store, {
    replace: async (kind, seen, next) => {
      const result = await store.replace(kind, seen, next);
      if (kind === "claim" && result.kind === "replaced") written.set(seen.key, result.stored);
      return result;
    },
    get: async <K extends Kind>(kind: K, key: string) =>
      kind === "claim" && written.has(key) ? (written.get(key) as Stored<K>) : store.get(kind, key),
  });
}

/** To whoever reserves what another's claim lists and lacks: the claim was written again first, and was not. */
export function withoutWritingAgain(store: Store): Store {
  return overlay(store, {
    replace: (kind, seen, next) =>
      isSameButForItsTime(seen.record, next)
        ? Promise.resolve({ kind: "replaced", stored: { ...seen, record: next } })
        : store.replace(kind, seen, next),
  });
}

function isSameButForItsTime(was: Records[Kind], is: Records[Kind]): boolean {
  return isDeepStrictEqual({ ...was, admittedAt: 0 }, { ...is, admittedAt: 0 });
}

/** To whoever reserves or binds: no node has a block. */
export function withoutBlocks(store: Store): Store {
  return overlay(store, {
    get: async <K extends Kind>(kind: K, key: string) =>
      kind === "block" ? undefined : await store.get(kind, key),
  });
}

/** To whoever grants a block: nothing in it is reserved. */
export function withoutReservations(store: Store): Store {
  return overlay(store, {
    get: async <K extends Kind>(kind: K, key: string) =>
      kind === "reservation" ? undefined : await store.get(kind, key),
  });
}

/** To whoever puts a hole into a block that is not granted: it is there, and is not. */
export function withoutHoles(store: Store): Store {
  return overlay(store, {
    replace: (kind, seen, next) =>
      kind === "block"
        ? Promise.resolve({ kind: "replaced", stored: { ...seen, record: next } })
        : store.replace(kind, seen, next),
  });
}

/** To whoever makes an address a block of its own: the block around it is as it was when it was read first. */
export function withoutSecondLook(store: Store): Store {
  const first = new Map<string, Stored<Kind>>(); // block -> as it was read first
  return overlay(store, {
    get: async <K extends Kind>(kind: K, key: string) => {
      const known = kind === "block" ? first.get(key) : undefined;
      if (known !== undefined) return known as Stored<K>;
      const found = await store.get(kind, key);
      if (kind === "block" && found !== undefined) first.set(key, found);
      return found;
    },
  });
}

/** To whoever deletes a block, reserves or binds: no address is a block of its own. */
export function withoutSingles(store: Store): Store {
  return overlay(store, {
    get: async <K extends Kind>(kind: K, key: string) =>
      kind === "block" && key.endsWith("/32") ? undefined : await store.get(kind, key),
  });
}
