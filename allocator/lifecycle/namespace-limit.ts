// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import type { Refusal } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { type Claim, isBound } from "../model/claim.ts";
import { isHeldBy } from "../model/reservation.ts";
import { countFamilies, limitReached } from "../planning/eligibility.ts";
import type { AddressConstraints } from "../planning/plan.ts";
import { partOf } from "../planning/pool-sources.ts";
import { type Bound, roomWithin, type Use } from "../pool/namespace-bounds.ts";
import { type Pool, poolOf } from "../pool/pool.ts";
import type { Stored } from "../store/store.ts";
import type { Acquired } from "./acquire.ts";
import { NamespaceUse } from "./namespace-use.ts";

/** With so little room, those who take addresses in one process take turns: else each sees the others, and all give up. */
const NEAR = 64;
/**
 * A share that is left to others by default is counted after the write from here on: before, it would have to be passed by
 * so many at once that the view has not heard of yet. What a pool's author says is always counted.
 */
const CLOSE = 128;

/** Runs the work alone among those of the namespace in this process, where a pool that may serve it is near its limit. */
export async function aloneNearLimit<T>(
  { view, serial }: Context,
  constraints: AddressConstraints,
  work: () => Promise<T>,
): Promise<T> {
  const { namespace } = constraints;
  const isNear = servers(view, constraints).some((pool) =>
    pool.bounds.some((bound) => {
      const left = room(view, pool, namespace, bound);
      return left > 0 && left <= NEAR;
    }),
  );
  return isNear ? await serial.run(`limits of ${namespace}`, work) : await work();
}

function servers(view: RecordReader, constraints: AddressConstraints): readonly Pool[] {
  const { addresses, fallback, pools = [], interfacePools } = constraints;
  if (addresses !== undefined && interfacePools === undefined) {
    const own = addresses.flatMap((address) => view.poolOf(address) ?? []);
    return fallback === undefined ? own : [...own, ...poolsNamed(view, pools)];
  }
  const lists = Object.values(interfacePools ?? { first: pools });
  if (addresses !== undefined || lists.some((list) => list.length === 0)) return view.pools();
  return poolsNamed(view, lists.flat());
}

function poolsNamed(view: RecordReader, names: readonly string[]): readonly Pool[] {
  return view.pools().filter((pool) => names.some((name) => partOf(pool, name) !== undefined));
}

/** How many more the bound allows, by the view. */
function room(view: RecordReader, pool: Pool, namespace: string, bound: Bound): number {
  return roomWithin(bound, useOf(view, pool, namespace));
}

function useOf(view: RecordReader, { name }: Pool, namespace: string): Use {
  return { held: view.held(name, namespace), cooling: view.cooling(name, namespace) };
}

function isCounted(view: RecordReader, pool: Pool, namespace: string): boolean {
  return pool.bounds.some((bound) => bound.kind === "said" || room(view, pool, namespace, bound) <= CLOSE);
}

/** A watch is behind by milliseconds; who would wait longer asks the store. */
const MAX_WAIT_MS = 250;
const POLL_MS = 5;

/**
 * Why the namespace must not keep a claim that was just written, with the reservations that were taken for it (ADR 0010).
 * Everybody writes first and counts then: of any that are together too many, the one that was written last sees all the
 * others. Counted in the view where it has come as far as these writes, which costs no call; the store alone refuses.
 */
export async function quotaExceededNow(
  context: Context,
  claim: Claim,
  took: readonly Acquired[],
): Promise<Refusal | undefined> {
  const { view } = context;
  const { namespace } = claim;
  const own = byPool(view, claim);
  const limited = [...own.keys()].filter((pool) => isCounted(view, pool, namespace));
  if (limited.length === 0 || (await isWithin(context, claim, { limited, took }))) return undefined;
  const all = await useInStore(context, namespace);
  for (const pool of limited) {
    const use = all.beside(claim, pool.name);
    const refusal = limitReached(pool, namespace, use, { more: countFamilies(own.get(pool) ?? []) });
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** By the view, once it shows what was taken and thereby all that was taken before. */
async function isWithin(
  { view, clock }: Context,
  { namespace, nonce }: Claim,
  { limited, took }: { readonly limited: readonly Pool[]; readonly took: readonly Acquired[] },
): Promise<boolean> {
  const isShown = ({ stored }: Acquired) => {
    const shown = view.reservation(stored.record.address)?.record;
    return shown !== undefined && isHeldBy(shown, nonce);
  };
  const hasCome = () => view.inOrder?.() === true && took.every(isShown);
  for (const until = clock.monotonic() + MAX_WAIT_MS; !hasCome(); ) {
    if (view.inOrder === undefined || clock.monotonic() >= until) return false;
    await clock.sleep(POLL_MS);
  }
  return limited.every((pool) => {
    const use = useOf(view, pool, namespace);
    return pool.bounds.every((bound) => roomWithin(bound, use) >= 0);
  });
}

/**
 * There may be 50,000 claims, of which a list takes seconds: one for all who ask before it begins, each after its own write.
 */
async function useInStore({ view, store, serial }: Context, namespace: string): Promise<NamespaceUse> {
  return await serial.together(`claims of ${namespace}`, async () => {
    const use = new NamespaceUse(view, namespace);
    for await (const { record } of store.list("claim", namespace)) {
      if (record.namespace === namespace && record.releasing !== true) use.enter(record);
    }
    return use;
  });
}

/**
 * Takes back what was just written, unless a pod was bound to it in the meantime: that one keeps it. What is being given back is
 * left to whoever began that. What was there before comes back only over what was written here: others may have gone on from it.
 */
export async function takenBack(
  { store }: Context,
  written: Stored<"claim">,
  before: Stored<"claim"> | undefined,
): Promise<"gone" | "kept"> {
  for (let seen: Stored<"claim"> | undefined = written; ; seen = await store.get("claim", written.key)) {
    if (seen === undefined || seen.uid !== written.uid || seen.record.releasing === true) return "gone";
    if (seen.record.nonce !== written.record.nonce || isBoundSince(seen.record, written.record))
      return "kept";
    if (before !== undefined && !isAsWritten(seen.record, written.record)) return "kept";
    const undone =
      before === undefined
        ? await store.remove("claim", seen)
        : await store.replace("claim", seen, before.record);
    if (undone.kind !== "conflict") return "gone";
  }
}

/** Another pod than then, or on another node. */
function isBoundSince(now: Claim, then: Claim): boolean {
  return isBound(now) && !isDeepStrictEqual(now.binding, then.binding);
}

/** Whatever is reported of it, and however often its pod was admitted. */
function isAsWritten(now: Claim, written: Claim): boolean {
  const { status, admittedAt } = written;
  return isDeepStrictEqual({ ...now, status, admittedAt }, { ...written, admittedAt });
}

/** The addresses of the claim, by the pools that they are in. */
function byPool(view: RecordReader, { addresses }: Claim): ReadonlyMap<Pool, readonly Address[]> {
  const pools = new Map<Pool, Address[]>();
  for (const address of addresses) {
    const pool = poolOf(view.pools(), address);
    if (pool !== undefined) pools.set(pool, [...(pools.get(pool) ?? []), address]);
  }
  return pools;
}
