// SPDX-License-Identifier: Apache-2.0
// How the record of each kind is written as a custom resource, and read from it.

import {
  BLOCKS,
  CLAIMS,
  type KubeItem,
  type ObjectName,
  POOLS,
  RESERVATIONS,
  type Resource,
} from "../../../kube/api/resource.ts";
import { isRefusal } from "../../base/errors.ts";
import { formatDuration, parseDuration } from "../../base/go-duration.ts";
import { parseAddress, parseCidr } from "../../ip/address.ts";
import { readClaimRequest } from "../../manifest/claim-spec.ts";
import { Fields, readObject } from "../../manifest/kubernetes-object.ts";
import type { Block } from "../../model/block.ts";
import type { Claim } from "../../model/claim.ts";
import type { Reservation } from "../../model/reservation.ts";
import type { PoolRecord } from "../../pool/pool.ts";
import { addressOfName, blockName, cidrOfName, reservationName } from "../codec.ts";
import { malformed } from "../decode.ts";
import type { Kind, Records } from "../store.ts";

export type Json = Readonly<Record<string, unknown>>;

/** What is written of a record: `spec`, `status` where it is written apart, annotations of the create. */
interface CrdMapping<R> {
  readonly resource: Resource;
  /** Where the record of a key is; undefined for a key that no record can have. */
  place(key: string): ObjectName | undefined;
  /** The key of an object that is gone, by its name. */
  key(place: ObjectName): string | undefined;
  spec(record: R): Json;
  /** The object's fields as JSON of the record, which readStored checks; or the record. */
  json(item: KubeItem): unknown;
}

/** RFC 1123: what the API server asks of names, and what is safe in a path. */
const NAME = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

const pools: CrdMapping<PoolRecord> = {
  resource: POOLS,
  place: (key) => (isName(key) ? { name: key } : undefined),
  key: ({ name }) => name,
  spec: (pool) => ({ ...pool.spec }),
  json: (item) => ({
    name: item.metadata.name,
    spec: fieldsOf(item).get("spec"),
    ...deletion(item),
  }),
};

const reservations: CrdMapping<Reservation> = {
  resource: RESERVATIONS,
  place: (key) => {
    const address = parseAddress(key);
    return address === undefined ? undefined : { name: reservationName(address) };
  },
  key: ({ name }) => addressOfName(name),
  spec: ({ releasedAt, cooldownMs, ...rest }) => ({
    ...rest,
    ...(releasedAt === undefined ? {} : { releasedAt: timeOf(releasedAt) }),
    ...(cooldownMs === undefined ? {} : { cooldown: formatDuration(cooldownMs) }),
  }),
  json: (item) => {
    const { cooldown, ...spec } = fieldsOf(item).at("spec").value;
    if (spec["address"] !== addressOfName(item.metadata.name)) {
      throw malformed("its name", `is not that of the address ${String(spec["address"])}`);
    }
    const said = typeof cooldown === "string" ? parseDuration(cooldown) : cooldown;
    return { ...withTimes(spec, ["releasedAt"]), ...(said === undefined ? {} : { cooldownMs: said }) };
  },
};

const blocks: CrdMapping<Block> = {
  resource: BLOCKS,
  place: (key) => {
    const cidr = parseCidr(key);
    return cidr === undefined || cidr.text !== key ? undefined : { name: blockName(cidr) };
  },
  key: ({ name }) => cidrOfName(name)?.text,
  spec: ({ recalledAt, releasedAt, status: _, ...rest }) => ({
    ...rest,
    ...(recalledAt === undefined ? {} : { recalledAt: timeOf(recalledAt) }),
    ...(releasedAt === undefined ? {} : { releasedAt: timeOf(releasedAt) }),
  }),
  json: (item) => {
    const spec = fieldsOf(item).at("spec").value;
    if (spec["cidr"] !== cidrOfName(item.metadata.name)?.text) {
      throw malformed("its name", `is not that of the CIDR ${String(spec["cidr"])}`);
    }
    return { ...withTimes(spec, ["recalledAt", "releasedAt"]), ...blockStatusJson(item) };
  },
};

const claims: CrdMapping<Claim> = {
  resource: CLAIMS,
  place: (key) => {
    const [namespace = "", name = "", ...rest] = key.split("/");
    return rest.length === 0 && isName(namespace) && isName(name) ? { namespace, name } : undefined;
  },
  // joined: a text that is put together in place keeps 32 bytes for that, and there may be 100,000
  key: ({ namespace, name }) => (namespace === undefined ? undefined : [namespace, name].join("/")),
  spec: ({ namespace: _, name: __, status: ___, deleting: ____, ...written }) => {
    const { retention, binding, retained, admittedAt, ...rest } = written;
    const { ttlMs, ...choices } = retention;
    return {
      ...rest,
      retention: { ...choices, ttl: ttlMs === null ? null : formatDuration(ttlMs) },
      ...(binding === undefined ? {} : { binding: { ...binding, since: timeOf(binding.since) } }),
      ...(retained === undefined ? {} : { retained: { ...retained, since: timeOf(retained.since) } }),
      ...(admittedAt === undefined ? {} : { admittedAt: timeOf(admittedAt) }),
    };
  },
  json: (item) => {
    const spec = fieldsOf(item).at("spec");
    // Berth always writes a nonce, be it empty: without one, a person has made the claim
    return spec.get("nonce") === undefined ? fromUser(item) : fromBerth(item, spec);
  },
};

export const MAPPINGS: { readonly [K in Kind]: CrdMapping<Records[K]> } = {
  pool: pools,
  claim: claims,
  reservation: reservations,
  block: blocks,
};

function deletion({ metadata }: KubeItem): { deleting?: true } {
  return metadata.deletionTimestamp === undefined ? {} : { deleting: true };
}

function fromBerth(item: KubeItem, spec: Fields): unknown {
  const { ttl = null, ...choices } = spec.at("retention").value;
  return {
    ...withTimes(spec.value, ["admittedAt"]),
    namespace: item.metadata.namespace,
    name: item.metadata.name,
    retention: { ...choices, ttlMs: typeof ttl === "string" ? parseDuration(ttl) : ttl },
    ...timed(spec, "binding"),
    ...timed(spec, "retained"),
    ...deletion(item),
    status: statusJson(item),
  };
}

/** What a person leaves out is filled in, as at admission. */
function fromUser(item: KubeItem): unknown {
  const object = readObject({ ...item, kind: CLAIMS.kind });
  const claim = isRefusal(object) ? object : readClaimRequest(object);
  if (isRefusal(claim)) throw malformed("what was written by hand", claim.message);
  return { ...claim, ...deletion(item), status: statusJson(item) };
}

/** Of the status, what is Berth's own: conditions are for people. */
function statusJson(item: KubeItem): unknown {
  const status = fieldsOf(item).at("status");
  const { message } = status.value;
  return { ...timed(status, "attachment"), ...(message === undefined ? {} : { message }) };
}

/** Of the status what its owner's agent writes; nothing before it has written. */
function blockStatusJson(item: KubeItem): Json {
  const { node, used, returnedAt, returnedAddresses } = fieldsOf(item).at("status").value;
  if (node === undefined) return {};
  const returned = returnedAt === undefined ? {} : withTimes({ returnedAt }, ["returnedAt"]);
  const one = returnedAddresses === undefined ? {} : { returnedAddresses };
  return { status: { node, used, ...returned, ...one } };
}

function fieldsOf(item: KubeItem): Fields {
  return new Fields(item);
}

/** A part with a `since`, if it is there. */
function timed(parent: Fields, key: string): Json {
  return parent.get(key) === undefined ? {} : { [key]: withTimes(parent.at(key).value, ["since"]) };
}

/** Times as records have them. One that cannot be read stays as it is, for the record's reader to refuse. */
function withTimes(json: Json, fields: readonly string[]): Json {
  const read = { ...json };
  for (const field of fields) {
    const value = json[field];
    const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
    if (!Number.isNaN(ms)) read[field] = ms;
  }
  return read;
}

/** RFC 3339 with milliseconds: times must come back as they were. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function isName(text: string): boolean {
  return text.length <= 253 && NAME.test(text);
}
