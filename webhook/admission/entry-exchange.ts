// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { sameSet } from "../../allocator/base/same-set.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Reading } from "../../allocator/cache/read-ahead.ts";
import { readClaim } from "../../allocator/cache/reader.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { AddressEntry } from "../../allocator/model/address-request.ts";
import { type Claim, claimKey, isReserved } from "../../allocator/model/claim.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import type { PodsThere } from "./pods-there.ts";
import { shareOf } from "./rollout.ts";

/** One pod of a workload whose claim is to have other addresses. */
interface Move {
  /** Of the claim, which is the pod's where pods have ordinals. */
  readonly name: string;
  /** Its place among the pods. `partition` counts by it, wherever ordinals begin. */
  readonly at: number;
  /** What its claim has. */
  readonly has: AddressEntry;
  /** By its claim alone. */
  readonly isDetached: boolean;
  readonly allocation: AllocationRequest;
}

/** Of pods whose claims the list before this change asked for and that are on their way: claim -> its addresses. */
export type EntriesBefore = ReadonlyMap<string, AddressEntry>;

/** An address that one waits for because another of the same workload has it. */
interface Wait {
  readonly move: Move;
  readonly address: Address;
  readonly holder: Move;
}

type Known = Pick<Context, "view"> & { readonly store: Reading };

interface KnownWithPods extends Known {
  readonly podsThere: PodsThere;
}

/** Whether its pod is there, which has to be deleted before another one of its name is made. */
type IsThere = (move: Move) => boolean;

/**
 * Why the workload's new list can never come true: a claim changes when its pod is created again, and then the address
 * must be free. Addresses that are exchanged wait for each other; one that is shifted waits for a pod whose turn is later.
 */
export async function neverEnds(
  context: KnownWithPods,
  object: KubeObject,
  allocations: readonly AllocationRequest[],
  before: EntriesBefore = new Map(),
): Promise<Refusal | undefined> {
  const moves = await movesOf(context, allocations, before);
  const ordered = object.kind === "StatefulSet" ? rolloutOrder(object, allocations.length) : undefined;
  const first = ordered?.first ?? 0;
  const waits = waitsOf(moves, first);
  const circle = circleIn(waits);
  if (circle !== undefined) return inCircle(circle);
  if (ordered === undefined)
    return waits[0] === undefined || recreates(object) ? undefined : inVain(waits[0]);
  const isThere = await knownBy(context, waits);
  const stuck = waits.find((wait) => !ordered.ends(wait, isThere));
  return stuck && inVain(stuck, isThere);
}

async function movesOf(
  context: Known,
  allocations: readonly AllocationRequest[],
  before: EntriesBefore,
): Promise<Move[]> {
  const moves: Move[] = [];
  for (const [at, allocation] of allocations.entries()) {
    const key = claimKey(allocation.key);
    const claim = (await readClaim(context, key))?.record;
    const has = claim === undefined ? before.get(key) : addressesOf(claim);
    const { addresses: entry, fallback } = allocation.constraints;
    // whoever takes any other address waits for none
    if (has === undefined || entry === undefined || fallback !== undefined || sameSet(entry, has)) continue;
    const isIdle = claim === undefined || isDetached(claim);
    moves.push({ name: allocation.key.name, at, has, isDetached: isIdle, allocation });
  }
  return moves;
}

/** Of those from that place on. */
function waitsOf(moves: readonly Move[], first: number): readonly Wait[] {
  const waits: Wait[] = [];
  for (const move of moves.filter(({ at }) => at >= first)) {
    for (const address of move.allocation.constraints.addresses ?? []) {
      const holder = move.has.includes(address) ? undefined : holderOf(moves, address);
      if (holder !== undefined) waits.push({ move, address, holder });
    }
  }
  return waits;
}

function addressesOf(claim: Claim): AddressEntry | undefined {
  return isReserved(claim) ? claim.addresses : undefined;
}

/**
 * A claim says whether a sandbox has its addresses: it has none while its pod waits for a node, or for a sandbox that is made again, and its
 * pod may be gone while it has one. It has the word where nobody knows of the pod, or too many are to be looked up.
 */
async function knownBy({ podsThere }: KnownWithPods, waits: readonly Wait[]): Promise<IsThere> {
  const moves = new Set(waits.flatMap(({ move, holder }) => [move, holder]));
  const there = await podsThere([...moves].map(({ allocation }) => allocation.key));
  return ({ allocation, isDetached }) => there.get(claimKey(allocation.key)) ?? !isDetached;
}

function holderOf(moves: readonly Move[], address: Address): Move | undefined {
  return moves.find(({ has }) => has.includes(address));
}

interface RolloutOrder {
  /** Places below it keep what they have. */
  readonly first: number;
  readonly ends: (wait: Wait, isThere: IsThere) => boolean;
}

/**
 * A StatefulSet creates what is missing first, from the lowest ordinal on, and then updates from the highest one down: it deletes as many as
 * may be unavailable, mostly one, and the next ones after these are ready again; with `Parallel` the next one as soon as any of these is, so
 * that only the first are surely deleted together. OpenKruise's creates nothing after one that is refused. With OnDelete a person chooses
 * the order, and with OpenKruise's `priorityStrategy` the labels of the pods do, also of those that a partition keeps.
 */
function rolloutOrder({ apiVersion, spec }: KubeObject, replicas: number): RolloutOrder {
  const strategy = spec.at("updateStrategy");
  const rolling = strategy.at("rollingUpdate");
  const onDelete = strategy.text("type") === "OnDelete";
  const parallel = spec.text("podManagementPolicy") === "Parallel";
  const byPriority = rolling.at("unorderedUpdate").get("priorityStrategy") !== undefined;
  const partition = onDelete ? 0 : rolling.count("partition", 0);
  const first = byPriority && partition > 0 ? replicas : partition;
  const atOnce = Math.max(1, shareOf(rolling.get("maxUnavailable") ?? 1, replicas, Math.floor));
  const turnOf = ({ at }: Move) => Math.floor((replicas - 1 - at) / atOnce);
  const hasBatches = parallel && isSameGroup(apiVersion, "apps/v1");
  const isTriedNoLater = (one: Move, other: Move) =>
    one.at < other.at || (hasBatches && batchOf(one) === batchOf(other));
  const ends = ({ move, holder }: Wait, isThere: IsThere) => {
    const holderIsThere = isThere(holder);
    if ((onDelete || byPriority) && isThere(move)) return true;
    if (holder.at < first) return false;
    if (!isThere(move)) return (onDelete || !holderIsThere) && isTriedNoLater(holder, move);
    const [own, its] = [turnOf(move), turnOf(holder)];
    const areDeletedTogether = its === own && (!parallel || own === 0);
    return !holderIsThere || its < own || (areDeletedTogether && holder.at < move.at);
  };
  return { first, ends };
}

/** With `Parallel` it creates one pod, then two at once, then four and so on, and no more after a batch of which one was refused. */
function batchOf({ at }: Move): number {
  return Math.floor(Math.log2(at + 1));
}

/** Old pods end before new ones begin, so that any slot is free for whoever comes. */
function recreates({ kind, spec }: KubeObject): boolean {
  return kind === "Deployment" && spec.at("strategy").text("type") === "Recreate";
}

/** Those that wait for each other in a circle: what is left when all have gone that wait for nobody. */
function circleIn(waits: readonly Wait[]): readonly Wait[] | undefined {
  let left = waits;
  for (let before = left.length + 1; left.length < before; ) {
    before = left.length;
    const waiting = new Set(left.map(({ move }) => move));
    left = left.filter(({ holder }) => waiting.has(holder));
  }
  const path: Wait[] = [];
  for (let wait = left[0]; wait !== undefined; ) {
    const { holder } = wait;
    if (path.includes(wait)) return path.slice(path.indexOf(wait));
    path.push(wait);
    wait = left.find(({ move }) => move === holder);
  }
  return undefined;
}

function inCircle(circle: readonly Wait[]): Refusal {
  const described = circle.slice(0, 4).map(saidOf).join(", and ");
  return refuse(
    "ADDRESS_TAKEN",
    `these wait for each other for ever: ${described}; give one of them an address that is free first, and exchange them in two steps`,
    detailsOf(circle[0]),
  );
}

function inVain(wait: Wait, isThere: IsThere = () => true): Refusal {
  const { move, holder } = wait;
  const when = isThere(move) ? "is running again" : "is there, whose pod is missing now";
  return refuse(
    "ADDRESS_TAKEN",
    `${saidOf(wait)}, and ${holder.name} gives it up only after ${move.name} ${when}: such a rollout does not end; leave the addresses where they are and give new ones to those that change`,
    detailsOf(wait),
  );
}

function saidOf({ move, address, holder }: Wait): string {
  return `${move.name} waits for ${address}, which ${holder.name} has`;
}

function detailsOf(wait: Wait | undefined): Readonly<Record<string, string>> {
  return wait === undefined ? {} : { address: wait.address, holder: claimKey(wait.holder.allocation.key) };
}
