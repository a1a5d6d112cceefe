// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../base/errors.ts";
import type { Block, BlockStatus } from "../model/block.ts";
import type {
  Binding,
  Claim,
  ClaimAttachment,
  ClaimKey,
  ClaimRequest,
  ClaimStatus,
  Identity,
  Retention,
  RetentionChoice,
} from "../model/claim.ts";
import { type Interfaces, isInterfaceName } from "../model/interfaces.ts";
import type { Reservation } from "../model/reservation.ts";
import type { PoolRecord, PoolSpec } from "../pool/pool.ts";
import { readStoredPoolSpec } from "../pool/pool-spec.ts";
import {
  address,
  type Decoder,
  flag,
  index,
  list,
  malformed,
  milliseconds,
  name,
  network,
  object,
  oneOf,
  optional,
  orNull,
  placeOf,
  plainObject,
  someOf,
  text,
} from "./decode.ts";
import type { Kind, Records, Unknown } from "./store.ts";

const identity = object<Identity>({
  kind: text,
  apiVersion: text,
  name: text,
  uid: optional(text),
  ordinal: optional(index),
  slot: optional(index),
});

// As many as the schema of a claim allows.
const MOST_ADDRESSES = 16;
const MOST_INTERFACES = 8;
const MOST_POOLS = 256;

/** Its keys are names, so that none of them is unknown. */
function byInterface<T>(read: Decoder<T>): Decoder<Readonly<Record<string, T>>> {
  return (value, field) => {
    const most = MOST_INTERFACES;
    if (Object.keys(value ?? {}).length > most) throw malformed(field, `has more than ${most} interfaces`);
    return Object.fromEntries(
      Object.entries(plainObject(value, field)).map(([key, its]) => [
        interfaceName(key, field),
        read(its, `${field}.${key}`),
      ]),
    );
  };
}

const addresses = list(address, MOST_ADDRESSES);
const poolNames = list(text, MOST_POOLS);
const interfaces: Decoder<Interfaces> = byInterface(addresses);

function interfaceName(value: string, field: string): string {
  if (isInterfaceName(value)) return value;
  throw malformed(`${field}.${value.slice(0, 60)}`, "is not the name of an interface");
}

const request = object<ClaimRequest>({
  addresses: optional(addresses),
  interfaces: optional(interfaces),
  pools: optional(poolNames),
  interfacePools: optional(byInterface(poolNames)),
  families: optional(someOf("IPv4", "IPv6")),
  fallback: optional(oneOf(["any"], "any")),
});

const choice = oneOf<RetentionChoice>(["Release", "Retain"], "Retain");

const choices = object<Retention>({
  whenDeleted: choice,
  whenScaled: choice,
  ttlMs: orNull(milliseconds),
});

/** A choice that is not known here releases nothing, not even when the time is over that belongs to it. */
const retention: Decoder<Retention> = (value, field, unknown) => {
  const before = unknown?.length ?? 0;
  const found = choices(value, field, unknown);
  if (found.ttlMs === null || unknown?.slice(before).every((one) => !("takenFor" in one)) !== false)
    return found;
  unknown.push({ ...placeOf(`${field}.ttlMs`), value: found.ttlMs, takenFor: null });
  return { ...found, ttlMs: null };
};

const binding = object<Binding>({
  token: text,
  podName: text,
  podUID: text,
  node: text,
  interface: optional(text),
  since: milliseconds,
});

const attachment = object<ClaimAttachment>({
  node: text,
  containerID: text,
  interface: text,
  podUID: text,
  since: milliseconds,
  detached: flag,
  netns: optional(text),
  bootID: optional(text),
});

const reported = object<ClaimStatus>({
  attachment: optional(attachment),
  message: optional(text),
});

/** A stored phase is for versions that want one: `phaseOf` says where the claim stands. */
const status: Decoder<ClaimStatus> = (value, field, unknown) => {
  const { phase: _, ...said } = plainObject(value, field);
  return reported(said, field, unknown);
};

const claim = object<Claim>({
  namespace: name,
  name,
  identity,
  interface: optional(text),
  takesOver: optional(name),
  request,
  retention,
  addresses,
  interfaces: optional(interfaces),
  nonce: text,
  binding: optional(binding),
  retained: optional(object({ since: milliseconds, because: oneOf(["deleted", "scaled"], "scaled") })),
  admittedAt: optional(milliseconds),
  handMade: optional(flag),
  releasing: optional(flag),
  deleting: optional(flag),
  status,
});

const reservation = object<Reservation>({
  address,
  pool: name,
  claim: object<ClaimKey>({ namespace: name, name }),
  nonce: text,
  marked: optional(flag),
  releasedAt: optional(milliseconds),
  cooldownMs: optional(milliseconds),
});

const blockStatus = object<BlockStatus>({
  node: text,
  used: index,
  returnedAt: optional(milliseconds),
  returnedAddresses: optional(list(address)),
});

const block = object<Block>({
  cidr: network,
  pool: name,
  node: name,
  nodeUID: text,
  // one that is not known is somebody's: no agent gives addresses of it
  use: optional(oneOf(["PodCIDR", "Cilium", "unknown"], "unknown")),
  holes: list(network),
  granted: optional(flag),
  recalledAt: optional(milliseconds),
  releasedAt: optional(milliseconds),
  // one that is not known is taken for the strictest: no address of it becomes a block, and it is not deleted unasked
  division: optional(oneOf(["returned", "all", "closed"], "closed")),
  within: optional(network),
  recalledAddresses: optional(index),
  place: optional(index),
  status: optional(blockStatus),
});

/** The form only: a pool that is wrong in itself is for parsePool to refuse, in words for its author. */
function spec(value: unknown, field: string): PoolSpec {
  const found = readStoredPoolSpec(value);
  if (isRefusal(found)) throw malformed(field, `is not that of a pool: ${found.message}`);
  return found;
}

const READS: { readonly [K in Kind]: Decoder<Records[K]> } = {
  pool: object<PoolRecord>({ name, spec, deleting: optional(flag) }),
  claim,
  reservation,
  block,
};

/** Makes a record of parsed JSON, complete and with canonical addresses. Throws STATE_CORRUPT naming the field. */
export function readRecord<K extends Kind>(kind: K, value: unknown): Records[K] {
  return READS[kind](value, kind);
}

/** The same of what is stored, which a newer Berth may have written. */
export function readStored<K extends Kind>(
  kind: K,
  value: unknown,
): { readonly record: Records[K]; readonly unknown?: readonly Unknown[] } {
  const unknown: Unknown[] = [];
  const record = READS[kind](value, kind, unknown);
  return unknown.length === 0 ? { record } : { record, unknown };
}
