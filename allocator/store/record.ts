// SPDX-License-Identifier: Apache-2.0
import type {
  Binding,
  Claim,
  ClaimAttachment,
  ClaimKey,
  ClaimRequest,
  ClaimStatus,
  Identity,
  Retention,
} from "../claim.ts";
import { isRefusal } from "../errors.ts";
import type { PoolRecord, PoolSpec } from "../pool.ts";
import { readPoolSpec } from "../pool-spec.ts";
import type { Reservation } from "../reservation.ts";
import {
  address,
  flag,
  index,
  list,
  malformed,
  milliseconds,
  name,
  object,
  oneOf,
  optional,
  orNull,
  type Read,
  text,
} from "./read.ts";
import type { Kind, Records } from "./store.ts";

const identity = object<Identity>({
  kind: text,
  apiVersion: text,
  name: text,
  uid: optional(text),
  ordinal: optional(index),
  slot: optional(index),
});

const request = object<ClaimRequest>({
  addresses: optional(list(address)),
  pools: optional(list(text)),
  families: optional(list(oneOf("IPv4", "IPv6"))),
});

const retention = object<Retention>({
  whenDeleted: oneOf("Release", "Retain"),
  whenScaled: oneOf("Release", "Retain"),
  ttlMs: orNull(milliseconds),
});

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
});

const status = object<ClaimStatus>({
  phase: oneOf("Pending", "Reserved", "Held", "Bound", "Attached", "Detached", "Retained"),
  attachment: optional(attachment),
  message: optional(text),
});

const claim = object<Claim>({
  namespace: name,
  name,
  identity,
  interface: optional(text),
  request,
  retention,
  addresses: list(address),
  nonce: text,
  binding: optional(binding),
  retained: optional(object({ since: milliseconds, because: oneOf("deleted", "scaled") })),
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
});

/** The form only: a pool that is wrong in itself is for parsePool to refuse, in words for its author. */
function spec(value: unknown, field: string): PoolSpec {
  const found = readPoolSpec(value);
  if (isRefusal(found)) throw malformed(field, `is not that of a pool: ${found.message}`);
  return found;
}

const READS: { readonly [K in Kind]: Read<Records[K]> } = {
  pool: object<PoolRecord>({ name, spec, deleting: optional(flag) }),
  claim,
  reservation,
};

/** Makes a record of parsed JSON, complete and with canonical addresses. Throws STATE_CORRUPT naming the field. */
export function readRecord<K extends Kind>(kind: K, value: unknown): Records[K] {
  return READS[kind](value, kind);
}
