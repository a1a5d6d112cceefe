// SPDX-License-Identifier: Apache-2.0
import type { KubeItem, ObjectName, Resource } from "../../../kube/api/resource.ts";
import { BerthError, messageOf } from "../../base/errors.ts";
import type { BlockStatus } from "../../model/block.ts";
import { type ClaimStatus, isBound } from "../../model/claim.ts";
import { keyOf } from "../codec.ts";
import { readRecord, readStored } from "../record.ts";
import type { Kind, Records, Stored } from "../store.ts";
import { isSameAttachment, withUnknown } from "../unknown-fields.ts";
import { type Json, MAPPINGS, timeOf } from "./crd-mapping.ts";

/** The finalizer of what must not go while it is in use: pools that hold reservations, claims that are bound to a node. */
export const IN_USE = "berth.dev/in-use";
/** The finalizers of nearly every bound claim, shared by all of them. */
const BY_USE: readonly string[] = [IN_USE];

export function resourceOf(kind: Kind): Resource {
  return MAPPINGS[kind].resource;
}

/** Where the record of a key is; undefined for a key that no record can have. */
export function placeOf(kind: Kind, key: string): ObjectName | undefined {
  return MAPPINGS[kind].place(key);
}

/** The key of an object by its name; undefined for an object that is no record. */
export function keyOfPlace(kind: Kind, place: ObjectName): string | undefined {
  return MAPPINGS[kind].key(place);
}

/**
 * The `spec` to write, with what is not known here of what it replaces. Throws INTERNAL for a record that could not be
 * read again: nothing is stored that is lost.
 */
export function specOf<K extends Kind>(kind: K, record: Records[K], seen?: Stored<K>): Json {
  try {
    return MAPPINGS[kind].spec(withUnknown(kind, readRecord(kind, record), seen));
  } catch (error) {
    const key = keyOf(kind, record);
    const words = `${kind} ${key} cannot be stored: ${messageOf(error)}`;
    throw new BerthError("INTERNAL", words, { details: { kind, key }, cause: error });
  }
}

/** Earlier versions wrote one, and nobody keeps it up. */
const NO_PHASE = { phase: null };

/**
 * The status to merge: what it does not have is taken away, what is not Berth's stays, and what is not known here stays
 * with the attachment that it describes.
 */
export function statusPatch(status: ClaimStatus, seen?: Stored<"claim">): Json {
  const { attachment, message = null } = status;
  if (attachment === undefined) return { ...NO_PHASE, attachment: null, message };
  const isSame = isSameAttachment(seen?.record.status.attachment, attachment);
  const others = (seen?.unknown ?? []).filter(({ path }) => path.join(".") === "status.attachment");
  const over = isSame ? {} : Object.fromEntries(others.map(({ key }) => [key, null]));
  const optional = { netns: null, bootID: null };
  return { ...NO_PHASE, attachment: { ...over, ...optional, ...attachmentJson(attachment) }, message };
}

/** The status of a block to merge: as that of a claim. */
export function blockStatusPatch({ node, used, returnedAt, returnedAddresses }: BlockStatus): Json {
  const returned = returnedAddresses === undefined ? {} : { returnedAddresses };
  return { node, used, returnedAt: returnedAt === undefined ? null : timeOf(returnedAt), ...returned };
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

/** Whether it has what definitions of before may lack, as they do for a while when Helm rolls back, and what can be done without. */
export function mayBeUnknown(next: Records[Kind]): boolean {
  return "cooldownMs" in next;
}

/** The write that took the last finalizer of a deleted object is answered with the object, and it is gone all the same. */
export function isGone({ metadata: { deletionTimestamp, finalizers = [] } }: KubeItem): boolean {
  return deletionTimestamp !== undefined && finalizers.length === 0;
}

/** Whether it says more than no status does: the API server takes none at create, and a second write doubles the price. */
export function needsReport({ attachment, message }: ClaimStatus): boolean {
  return attachment !== undefined || message !== undefined;
}

/** An object as the store gives it. Throws STATE_CORRUPT naming kind and key for one that is no record. */
export function storedOf<K extends Kind>(kind: K, item: KubeItem): Stored<K> {
  const { uid, resourceVersion, creationTimestamp = "" } = item.metadata;
  const key = keyOfPlace(kind, item.metadata) ?? item.metadata.name;
  try {
    const read = readStored(kind, MAPPINGS[kind].json(item));
    const createdAt = Date.parse(creationTimestamp);
    return { key, ...read, uid, revision: resourceVersion, createdAt, ...finalizersOf(kind, item) };
  } catch (error) {
    const words = `the ${MAPPINGS[kind].resource.kind} ${key} cannot be read: ${messageOf(error)}; correct or delete it`;
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

function attachmentJson({ since, ...rest }: NonNullable<ClaimStatus["attachment"]>): Json {
  return { ...rest, since: timeOf(since) };
}
