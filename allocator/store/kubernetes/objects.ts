// SPDX-License-Identifier: Apache-2.0
import {
  BLOCKS,
  CLAIMS,
  type KubeItem,
  type ObjectName,
  POOLS,
  RESERVATIONS,
  type Resource,
} from "../../../kube/api/resource.ts";
import { BerthError, isRefusal, messageOf } from "../../base/errors.ts";
import { formatDuration, parseDuration } from "../../base/go-duration.ts";
import { parseAddress, parseCidr } from "../../ip/address.ts";
import { readClaimRequest } from "../../manifest/claim-spec.ts";
import { Fields, readObject } from "../../manifest/kubernetes-object.ts";
import type { Block, BlockStatus } from "../../model/block.ts";
import { type Claim, type ClaimStatus, isBound } from "../../model/claim.ts";
import type { Reservation } from "../../model/reservation.ts";
import type { PoolRecord } from "../../pool/pool.ts";
import { addressOfName, blockName, cidrOfName, keyOf, reservationName } from "../codec.ts";
import { malformed } from "../decode.ts";
import { readRecord, readStored } from "../record.ts";
import type { Kind, Records, Stored } from "../store.ts";
import { isSameAttachment, withUnknown } from "../unknown-fields.ts";

type Json = Readonly<Record<string, unknown>>;

/** What is written of a record: `spec`, `status` where it is written apart, annotations of the create. */
interface Form<R> {
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

/** The finalizer of what must not go while it is in use: pools that hold reservations, claims that are bound to a node. */
export const IN_USE = "berth.dev/in-use";
/** That of nearly every bound claim, once for all of them. */
const BY_USE: readonly string[] = [IN_USE];

const pools: Form<PoolRecord> = {
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

const reservations: Form<Reservation> = {
  resource: RESERVATIONS,
  place: (key) => {
    const address = parseAddress(key);
    return address === undefined ? undefined : { name: reservationName(address) };
  },
  key: ({ name }) => addressOfName(name),
  spec: ({ releasedAt, ...rest }) => ({
    ...rest,
    ...(releasedAt === undefined ? {} : { releasedAt: timeOf(releasedAt) }),
  }),
  json: (item) => {
    const spec = fieldsOf(item).at("spec").value;
    if (spec["address"] !== addressOfName(item.metadata.name)) {
      throw malformed("its name", `is not that of the address ${String(spec["address"])}`);
    }
    return withTimes(spec, ["releasedAt"]);
  },
};

const blocks: Form<Block> = {
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

const claims: Form<Claim> = {
  resource: CLAIMS,
  place: (key) => {
    const [namespace = "", name = "", ...rest] = key.split("/");
    return rest.length === 0 && isName(namespace) && isName(name) ? { namespace, name } : undefined;
  },
  key: ({ namespace, name }) => (namespace === undefined ? undefined : `${namespace}/${name}`),
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
    return spec.get("nonce") === undefined ? byHand(item) : byBerth(item, spec);
  },
};

const FORMS: { readonly [K in Kind]: Form<Records[K]> } = {
  pool: pools,
  claim: claims,
  reservation: reservations,
  block: blocks,
};

export function resourceOf(kind: Kind): Resource {
  return FORMS[kind].resource;
}

/** Where the record of a key is; undefined for a key that no record can have. */
export function placeOf(kind: Kind, key: string): ObjectName | undefined {
  return FORMS[kind].place(key);
}

/** The key of an object by its name; undefined for an object that is no record. */
export function keyOfPlace(kind: Kind, place: ObjectName): string | undefined {
  return FORMS[kind].key(place);
}

/**
 * The `spec` to write, with what is not known here of what it replaces. Throws INTERNAL for a record that could not be
 * read again: nothing is stored that is lost.
 */
export function specOf<K extends Kind>(kind: K, record: Records[K], seen?: Stored<K>): Json {
  try {
    return FORMS[kind].spec(withUnknown(kind, readRecord(kind, record), seen));
  } catch (error) {
    const key = keyOf(kind, record);
    const words = `${kind} ${key} cannot be stored: ${messageOf(error)}`;
    throw new BerthError("INTERNAL", words, { details: { kind, key }, cause: error });
  }
}

/**
 * The status to merge: what it does not have is taken away, what is not Berth's stays, and what is not known here stays
 * with the attachment that it describes.
 */
export function statusPatch(status: ClaimStatus, seen?: Stored<"claim">): Json {
  const { phase, attachment, message = null } = status;
  if (attachment === undefined) return { phase, attachment: null, message };
  const isSame = isSameAttachment(seen?.record.status.attachment, attachment);
  const others = (seen?.unknown ?? []).filter(({ path }) => path.join(".") === "status.attachment");
  const over = isSame ? {} : Object.fromEntries(others.map(({ key }) => [key, null]));
  const optional = { netns: null, bootID: null };
  return { phase, attachment: { ...over, ...optional, ...attachmentJson(attachment) }, message };
}

/** The status of a block to merge: as that of a claim. */
export function blockStatusPatch({ node, used, returnedAt }: BlockStatus): Json {
  return { node, used, returnedAt: returnedAt === undefined ? null : timeOf(returnedAt) };
}

/**
 * The finalizers that the object is to have from this write on, or undefined when they stay as they are: for all but
 * claims, and for a deleted one, which gets no new ones, too. `seen` is undefined for a create.
 */
export function finalizersFor(
  seen: Stored<Kind> | undefined,
  next: Records[Kind],
): readonly string[] | undefined {
  if (!("request" in next)) return undefined;
  const finalizers = seen?.finalizers ?? [];
  const wanted = isBound(next) && next.releasing !== true;
  if (wanted === finalizers.includes(IN_USE) || (wanted && isDeleting(seen))) return undefined;
  return wanted ? [...finalizers, IN_USE] : finalizers.filter((finalizer) => finalizer !== IN_USE);
}

/** The write that took the last finalizer of a deleted object is answered with the object, and it is gone all the same. */
export function isGone({ metadata: { deletionTimestamp, finalizers = [] } }: KubeItem): boolean {
  return deletionTimestamp !== undefined && finalizers.length === 0;
}

/** Whether it says more than no status does: the API server takes none at create, and a second write doubles the price. */
export function needsReport({ phase, attachment, message }: ClaimStatus): boolean {
  return phase !== "Pending" || attachment !== undefined || message !== undefined;
}

/** An object as the store gives it. Throws STATE_CORRUPT naming kind and key for one that is no record. */
export function storedOf<K extends Kind>(kind: K, item: KubeItem): Stored<K> {
  const { uid, resourceVersion, creationTimestamp = "" } = item.metadata;
  const key = keyOfPlace(kind, item.metadata) ?? item.metadata.name;
  try {
    const read = readStored(kind, FORMS[kind].json(item));
    const createdAt = Date.parse(creationTimestamp);
    return { key, ...read, uid, revision: resourceVersion, createdAt, ...finalizersOf(kind, item) };
  } catch (error) {
    const words = `the ${FORMS[kind].resource.kind} ${key} cannot be read: ${messageOf(error)}; correct or delete it`;
    throw new BerthError("STATE_CORRUPT", words, { details: { kind, key }, cause: error });
  }
}

function isDeleting(seen: Stored<Kind> | undefined): boolean {
  return seen !== undefined && "deleting" in seen.record && seen.record.deleting === true;
}

function finalizersOf(
  kind: Kind,
  { metadata: { finalizers = [] } }: KubeItem,
): { finalizers?: readonly string[] } {
  if (kind !== "claim" || finalizers.length === 0) return {};
  return { finalizers: finalizers.length === 1 && finalizers[0] === IN_USE ? BY_USE : finalizers };
}

function deletion({ metadata }: KubeItem): { deleting?: true } {
  return metadata.deletionTimestamp === undefined ? {} : { deleting: true };
}

function byBerth(item: KubeItem, spec: Fields): unknown {
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
function byHand(item: KubeItem): unknown {
  const object = readObject({ ...item, kind: CLAIMS.kind });
  const claim = isRefusal(object) ? object : readClaimRequest(object);
  if (isRefusal(claim)) throw malformed("what was written by hand", claim.message);
  return { ...claim, ...deletion(item), status: statusJson(item) };
}

/** Of the status, what is Berth's own: conditions are for people. */
function statusJson(item: KubeItem): unknown {
  const status = fieldsOf(item).at("status");
  const { phase = "Pending", message } = status.value;
  return { phase, ...timed(status, "attachment"), ...(message === undefined ? {} : { message }) };
}

/** Of the status what its owner's agent writes; nothing before it has written. */
function blockStatusJson(item: KubeItem): Json {
  const { node, used, returnedAt } = fieldsOf(item).at("status").value;
  if (node === undefined) return {};
  const returned = returnedAt === undefined ? {} : withTimes({ returnedAt }, ["returnedAt"]);
  return { status: { node, used, ...returned } };
}

function attachmentJson({ since, ...rest }: NonNullable<ClaimStatus["attachment"]>): Json {
  return { ...rest, since: timeOf(since) };
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
function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function isName(text: string): boolean {
  return text.length <= 253 && NAME.test(text);
}
