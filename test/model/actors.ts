// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../../allocator/address.ts";
import { type BindFacts, bind, isAtRest } from "../../allocator/bind.ts";
import { claimKey, type Retention } from "../../allocator/claim.ts";
import { isRefusal } from "../../allocator/errors.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import { lendSlot } from "../../allocator/lend.ts";
import { mend } from "../../allocator/mend.ts";
import { reapReservation } from "../../allocator/reap.ts";
import { ORPHAN_GRACE_MS, Reaper } from "../../allocator/reaper.ts";
import { release } from "../../allocator/release.ts";
import { type Intent, reserve } from "../../allocator/reserve.ts";
import type { Actor } from "./run.ts";
import { keyOf } from "./seeds.ts";

const RELEASE: Retention = { whenDeleted: "Release", whenScaled: "Release", ttlMs: null };

/** What an identity asks for: exactly these addresses, or any of the pools in this order. */
export type Wish = { readonly exact: readonly Address[] } | { readonly pools: readonly string[] };

type Extra = Omit<Partial<Actor>, "act">;

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

/** Admission of a pod of the identity. */
export function reserver(intent: Intent, extra: Extra = {}): Actor {
  return {
    name: `reserve ${intent.key.name}`,
    forgets: true,
    ...extra,
    async act({ context, answered }) {
      const got = await reserve(context, intent);
      if (!isRefusal(got)) answered(got.claim);
    },
  };
}

/** Admission of a pod that asks for exactly these. */
export function admission(name: string, ...exact: readonly Address[]): Actor {
  const title = `${name} asks for ${exact.join(" and ")}`;
  return reserver(intentOf(name, { exact }, { request: { addresses: exact } }), { name: title });
}

/** Admission of a pod of a set; `token` finds its promise again. */
export function lender(slots: readonly Intent[], inventory: Inventory, extra: Extra = {}): Actor {
  return {
    name: "lend",
    forgets: slots.length === 1,
    ...extra,
    async act({ name, context, harbour, answered }) {
      const got = await lendSlot(context, inventory, slots);
      if (isRefusal(got)) return;
      answered(got.claim);
      harbour.promised(name, got.claim);
    },
  };
}

/** A pod that asks for its claim at ADD. */
export interface Pod {
  readonly claim: string;
  readonly node?: string;
  readonly uid?: string;
  readonly token?: string;
  readonly facts?: Partial<BindFacts>;
}

/** CNI ADD of a pod: the claim is bound, and a sandbox goes up with its addresses. */
export function binder(pod: Pod, extra: Extra = {}): Actor {
  const { claim, node = "n1", uid = `u-${claim}`, token = "" } = pod;
  const facts: BindFacts = { fenced: false, promiseOver: false, ...pod.facts };
  return {
    name: `bind ${claim}`,
    ...extra,
    async act({ name, context, harbour }) {
      const bindee = { name: claim, uid, node, token, containerID: `of ${name}` };
      const key = claimKey(keyOf(claim));
      // As the cluster's binder does: by what it knows of the claim, which may be old when it writes.
      const known = (await context.store.get("claim", key)) ?? key;
      const lent = await bind(context, known, bindee, async () => facts);
      if (!isRefusal(lent)) harbour.moor(name, lent);
    },
  };
}

/** A pod that asks for exactly these, from its admission to its ADD. */
export function visit(claim: string, exact: readonly Address[], extra: Extra = {}): Actor {
  const intent = intentOf(claim, { exact }, { request: { addresses: exact } });
  return {
    name: `pod ${claim} with ${exact.join(" and ")}`,
    ...extra,
    async act({ name, context, harbour, answered }) {
      const got = await reserve(context, intent);
      if (isRefusal(got)) return;
      answered(got.claim);
      const assigned = got.claim.record.addresses;
      const bindee = { name: claim, uid: name, node: "n1", token: "", containerID: `of ${name}`, assigned };
      const facts = async () => ({ fenced: false, promiseOver: false });
      const lent = await bind(context, got.claim.key, bindee, facts);
      if (isRefusal(lent)) return;
      harbour.moor(name, lent);
      harbour.mustHave(name, exact);
    },
  };
}

/** CNI DEL of the sandbox that the claim's status names, and the report of its end. */
export function detacher(claim: string, extra: Extra = {}): Actor {
  return {
    name: `detach ${claim}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("claim", claimKey(keyOf(claim)));
      const attachment = seen?.record.status.attachment;
      if (seen === undefined || attachment === undefined) return;
      await context.store.report(seen, { phase: "Detached", attachment: { ...attachment, detached: true } });
    },
  };
}

/** The identity is not needed any more: its claim is released, unless it is in use. */
export function releaser(claim: string, extra: Extra = {}): Actor {
  return {
    name: `release ${claim}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("claim", claimKey(keyOf(claim)));
      if (seen !== undefined && isAtRest(seen.record)) await release(context, seen);
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
      if (seen?.record.releasedAt === undefined && seen !== undefined) await reapReservation(context, seen);
    },
  };
}

/** The reaper's step on one claim that may lack a reservation. */
export function mender(claim: string, extra: Extra = {}): Actor {
  return {
    name: `mend ${claim}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("claim", claimKey(keyOf(claim)));
      if (seen !== undefined) await mend(context, seen);
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

/** A world in which no pod exists, and every workload, or none. */
export function inventoryOf(workloads: "all" | "none"): Inventory {
  return {
    pod: async () => undefined,
    workload: async (kind, namespace, name) =>
      workloads === "none" ? undefined : { kind, namespace, name, uid: "", replicas: 9, start: 0 },
    namespace: async () => undefined,
    fenced: async () => false,
  };
}
