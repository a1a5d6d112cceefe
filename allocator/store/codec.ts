// SPDX-License-Identifier: Apache-2.0

import { BerthError, messageOf } from "../base/errors.ts";
import {
  type Address,
  type Cidr,
  familyOf,
  fromNumber,
  parseAddress,
  parseCidr,
  toNumber,
} from "../ip/address.ts";
import { claimKey } from "../model/claim.ts";
import { phaseOf } from "../model/phase.ts";
import { malformed, plainObject } from "./decode.ts";
import { readRecord, readStored } from "./record.ts";
import type { Kind, Records, Stored } from "./store.ts";
import { withUnknown } from "./unknown-fields.ts";

/** Of the stored text. It changes when older versions must not read it; a new field or value does not change it. */
const VERSION = 1;

const KEYS: { readonly [K in Kind]: (record: Records[K]) => string } = {
  pool: (pool) => pool.name,
  claim: claimKey,
  reservation: (reservation) => reservation.address,
  block: (block) => block.cidr,
};

/** What a record is stored under: a pool's name, a claim's namespace/name, a reservation's address, a block's CIDR. */
export function keyOf<K extends Kind>(kind: K, record: Records[K]): string {
  return KEYS[kind](record);
}

/** A stored text, read. */
type Decoded<K extends Kind> = Pick<Stored<K>, "record" | "unknown">;

/**
 * The text to store, with what is not known here of what it replaces. Throws INTERNAL for a record that decodeRecord
 * would refuse: nothing is stored that is lost.
 */
export function encodeRecord<K extends Kind>(kind: K, record: Records[K], seen?: Decoded<K>): string {
  try {
    const written = withPhase(kind, readRecord(kind, record));
    return JSON.stringify({ v: VERSION, record: withUnknown(kind, written, seen) });
  } catch (error) {
    const key = keyOf(kind, record);
    const words = `${kind} ${key} cannot be stored: ${messageOf(error)}`;
    throw new BerthError("INTERNAL", words, { details: { kind, key }, cause: error });
  }
}

/** Hosts of an earlier version may share the etcd, and read no claim without its phase. */
function withPhase<K extends Kind>(kind: K, record: Records[K]): Records[K] {
  if (kind !== "claim") return record;
  const claim = record as Records["claim"];
  return { ...record, status: { phase: phaseOf(claim), ...claim.status } };
}

/** The record in a stored text, or STATE_CORRUPT naming kind and key: never half of one. */
export function decodeRecord<K extends Kind>(kind: K, key: string, text: string): Decoded<K> {
  try {
    const { v, record } = plainObject(JSON.parse(text), "its text");
    if (v !== VERSION) throw malformed("its version", `must be ${VERSION}, not ${String(v)}`);
    const found = readStored(kind, record);
    const own = keyOf(kind, found.record);
    if (own !== key) throw malformed("its text", `is that of ${own}`);
    return found;
  } catch (error) {
    const words = `the stored ${kind} ${key} cannot be decoded: ${messageOf(error)}; restore it from a backup`;
    throw new BerthError("STATE_CORRUPT", words, { details: { kind, key }, cause: error });
  }
}

/**
 * The name of an address's object in Kubernetes, a DNS subdomain: IPv4 as it is, IPv6 in full with `-` for `:`
 * (2001-0db8-0000-0000-0000-0000-0000-0001).
 */
export function reservationName(address: Address): string {
  if (familyOf(address) === "IPv4") return address;
  const digits = toNumber(address).toString(16).padStart(32, "0");
  return Array.from({ length: 8 }, (_, i) => digits.slice(4 * i, 4 * i + 4)).join("-");
}

/** The address that an object's name stands for; undefined for any name that reservationName does not give. */
export function addressOfName(name: string): Address | undefined {
  const address = parseAddress(name.replaceAll("-", ":"));
  return address !== undefined && reservationName(address) === name ? address : undefined;
}

/** The name of a block's object in Kubernetes: that of its first address, and the prefix length (10.30.4.0-26). */
export function blockName({ family, base, prefixLength }: Cidr): string {
  return `${reservationName(fromNumber(base, family))}-${prefixLength}`;
}

/** The CIDR that a block's name stands for; undefined for any name that blockName does not give. */
export function cidrOfName(name: string): Cidr | undefined {
  const dash = name.lastIndexOf("-");
  const first = addressOfName(name.slice(0, dash));
  const cidr = first === undefined ? undefined : parseCidr(`${first}/${name.slice(dash + 1)}`);
  return cidr !== undefined && blockName(cidr) === name ? cidr : undefined;
}
