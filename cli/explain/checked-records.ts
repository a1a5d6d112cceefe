// SPDX-License-Identifier: Apache-2.0
// The records that `check` compares: all of them, and once more those that looked wrong.

import { RecordInterner } from "../../allocator/cache/interning.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import { parseAddress } from "../../allocator/ip/address.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import type { AttachmentUse } from "../backend/attachment-report.ts";
import type { Backend } from "../backend/backend.ts";
import { allOf } from "../backend/embedded-backend.ts";

/** Records as they were read, or those of them that a second look is about. */
export interface Reading {
  readonly pools: readonly Stored<"pool">[];
  readonly claims: readonly Stored<"claim">[];
  readonly reservations: readonly Stored<"reservation">[];
  readonly blocks: readonly Stored<"block">[];
  readonly uses: readonly AttachmentUse[];
}

export async function readAll(backend: Backend): Promise<Reading> {
  // Claims first: a reservation is made before its claim, and outlives it.
  const claims = await backend.claims();
  const reservations = await reservationsOf(backend, claims);
  const pools = await allOf(backend.store, "pool");
  const blocks = await allOf(backend.store, "block");
  return {
    pools,
    claims,
    reservations,
    blocks,
    uses: await backend.uses(claims.map(({ record }) => record)),
  };
}

/** As many as claims, with which they have most of their text in common. */
async function reservationsOf(
  { store }: Backend,
  claims: readonly Stored<"claim">[],
): Promise<readonly Stored<"reservation">[]> {
  const interner = new RecordInterner();
  const byKey = new Map(claims.map(({ key, record }) => [key, record]));
  const reservations: Stored<"reservation">[] = [];
  for await (const stored of store.list("reservation"))
    reservations.push(interner.reservation(stored, byKey.get(claimKey(stored.record.claim))));
  return reservations;
}

/** The records that findings are about: claims by key, and addresses. */
interface Keys {
  readonly claims: ReadonlySet<string>;
  readonly addresses: ReadonlySet<string>;
}

export function keysOf({ claims, reservations, blocks, uses }: Reading, findings: readonly Finding[]): Keys {
  const subjects = new Set(findings.map(({ subject }) => subject));
  const keys = new Set<string>();
  const addresses = new Set<string>();
  const cidrs = new Set(blocks.map(({ key }) => key));
  for (const subject of subjects) {
    if (parseAddress(subject) !== undefined) addresses.add(subject);
    else if (!cidrs.has(subject)) keys.add(subject);
  }
  for (const { key, record } of claims) {
    if (record.addresses.some((address) => subjects.has(address))) keys.add(key);
  }
  for (const { record } of reservations) {
    if (subjects.has(record.address)) keys.add(claimKey(record.claim));
  }
  for (const { claim, result } of uses) {
    if (claim !== undefined && result.addresses.some(({ address }) => subjects.has(address))) keys.add(claim);
  }
  return { claims: keys, addresses };
}

export function partOf({ pools, claims, reservations, blocks, uses }: Reading, keys: Keys): Reading {
  return {
    pools,
    claims: claims.filter(({ key }) => keys.claims.has(key)),
    reservations: reservations.filter(({ key }) => keys.addresses.has(key)),
    blocks,
    uses,
  };
}

/** Only what is suspected: a cluster may have 100000 records. */
export async function readAgain({ store, uses, unread }: Backend, keys: Keys): Promise<Reading> {
  const read = async <K extends Kind>(kind: K, key: string) => {
    const get = () => store.get(kind, key);
    return unread === undefined ? await get() : await unread.read(kind, key, get);
  };
  const claims: Stored<"claim">[] = [];
  for (const key of keys.claims) {
    const claim = await read("claim", key);
    if (claim !== undefined) claims.push(claim);
  }
  const reservations: Stored<"reservation">[] = [];
  for (const address of keys.addresses) {
    const reservation = await read("reservation", address);
    if (reservation !== undefined) reservations.push(reservation);
  }
  const pools = await allOf(store, "pool");
  const blocks = await allOf(store, "block"); // far fewer than addresses
  return { pools, claims, reservations, blocks, uses: await uses(claims.map(({ record }) => record)) };
}

/** Nobody wrote to what the finding is about between two looks. */
export function isUntouched(suspect: Finding, before: Reading, now: Reading): boolean {
  const keys = keysOf(before, [suspect]);
  const about = ({ blocks, ...rest }: Reading) =>
    revisionsOf({ ...partOf({ ...rest, blocks }, keys), blocks: blocksAbout(blocks, suspect) });
  return about(before) === about(now);
}

/** A finding names the blocks that it is about. */
function blocksAbout(blocks: Reading["blocks"], { subject, message }: Finding): Reading["blocks"] {
  return blocks.filter(({ key }) => key === subject || message.includes(key));
}

function revisionsOf({ claims, reservations, blocks }: Reading): string {
  return [...claims, ...reservations, ...blocks]
    .map(({ key, uid, revision }) => `${key} ${uid} ${revision}`)
    .sort()
    .join("\n");
}
