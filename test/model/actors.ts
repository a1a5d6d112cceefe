// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/address.ts";
import { type BindFacts, bind } from "../../allocator/bind.ts";
import { type Binding, type Claim, claimKey, type ClaimKey, isBound, type Retention } from "../../allocator/claim.ts";
import { isRefusal } from "../../allocator/errors.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import { lendSlot } from "../../allocator/lend.ts";
import { ORPHAN_GRACE_MS, Reaper } from "../../allocator/reaper.ts";
import { reapReservation } from "../../allocator/reap.ts";
import { release } from "../../allocator/release.ts";
import { type Intent, reserve } from "../../allocator/reserve.ts";
import type { Actor } from "./run.ts";

export const RELEASE: Retention = { whenDeleted: "Release", whenScaled: "Release", ttlMs: null };

export function keyOf(name: string): ClaimKey {
  return { namespace: "shop", name };
}

/** What an identity asks for: exactly these addresses, or any of the pools in this order. */
export type Wish = { readonly exact: readonly Address[] } | { readonly pools: readonly string[] };

/** The intent of a StatefulSet's only pod. */
export function intentOf(name: string, wish: Wish, more: Partial<Intent> = {}): Intent {
  const asked = "exact" in wish ? { entry: wish.exact } : { pools: wish.pools };
  return {
    key: keyOf(name),
    identity: { kind: "StatefulSet", apiVersion: "apps/v1", name, ordinal: 0 },
    request: {},
    retention: RELEASE,
    ask: { namespace: "shop", name, namespaceLabels: {}, podLabels: {}, ...asked },
    ...more,
  };
}

type Extra = Omit<Partial<Actor>, "act">;

/** Admission of a pod of the identity. */
export function reserver(intent: Intent, extra: Extra = {}): Actor {
  return {
    name: `reserve ${intent.key.name}`,
    forgets: true,
    ...extra,
    async act({ name, context, harbour }) {
      const got = await reserve(context, intent);
      if (!isRefusal(got)) harbour.answered(name, got.claim);
    },
  };
}

/** Admission of a pod of a set. */
export function lender(slots: readonly Intent[], inventory: Inventory, extra: Extra = {}): Actor {
  return {
    name: "lend",
    forgets: slots.length === 1,
    ...extra,
    async act({ name, context, harbour }) {
      const got = await lendSlot(context, inventory, slots);
      if (!isRefusal(got)) harbour.promised(name, got.claim, got.claim.record.binding?.token ?? "");
    },
  };
}

export interface Pod {
  readonly node?: string;
  readonly uid?: string;
  readonly token?: string;
}

/** CNI ADD of a pod of the identity: it is bound, and its sandbox goes up. */
export function binder(name: string, pod: Pod = {}, extra: Extra = {}): Actor {
  const { node = "n1", uid = `u-${name}`, token = "" } = pod;
  const facts: BindFacts = { fenced: false, promiseOver: false };
  return {
    name: `bind ${name}`,
    ...extra,
    async act({ context, harbour }) {
      const bindee = { name, uid, node, token };
      const bound = await bind(context, claimKey(keyOf(name)), bindee, async () => facts);
      if (!isRefusal(bound)) harbour.moor(`${name}/${uid}`, bound);
    },
  };
}

/** The identity is not needed any more: its claim is released, unless it is bound. */
export function releaser(name: string, extra: Extra = {}): Actor {
  return {
    name: `release ${name}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("claim", claimKey(keyOf(name)));
      if (seen !== undefined && !isBound(seen.record)) await release(context, seen);
    },
  };
}

/** The reaper's step on one address, at any moment: it needs no grace to be safe. */
export function reapOf(address: Address, extra: Extra = {}): Actor {
  return {
    name: `reap ${address}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("reservation", address);
      if (seen !== undefined && seen.record.releasedAt === undefined) await reapReservation(context, seen);
    },
  };
}

/** The whole reaper: two passes, with the grace of an orphan in between. */
export function reaper(inventory: Inventory, extra: Extra = {}): Actor {
  return {
    name: "reaper",
    ...extra,
    async act({ context, wait }) {
      const reaper = new Reaper(context, inventory);
      await reaper.pass();
      await wait(ORPHAN_GRACE_MS);
      await reaper.pass();
    },
  };
}

export type { Binding, Claim };
