// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import type { Block } from "../model/block.ts";
import type { Claim } from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import type { Kind, Records, Unknown } from "./store.ts";

/** A record, and what was read with it. */
interface Seen<R> {
  readonly record: R;
  readonly unknown?: readonly Unknown[];
}

/** `next` with what is not known of what it replaces: to be written, never to be worked with. */
export function withUnknown<K extends Kind>(
  kind: K,
  next: Records[K],
  seen: Seen<Records[K]> | undefined,
): Records[K] {
  let written: object = next;
  // an object with all of its fields at once: who writes to the store itself may have left thousands in it
  const places = Map.groupBy(seen?.unknown ?? [], ({ path }) => path.join("."));
  for (const fields of places.values()) {
    const path = fields[0]?.path ?? [];
    if (seen !== undefined && describesSame(kind, path, seen.record, next))
      written = put(written, path, fields);
  }
  return written as Records[K]; // what readers here know of it is unchanged
}

function put(into: object, [part, ...path]: readonly string[], fields: readonly Unknown[]): object {
  if (part !== undefined) {
    const inner = ownOf(into, part);
    return typeof inner === "object" && inner !== null ? { ...into, [part]: put(inner, path, fields) } : into;
  }
  const kept = fields.filter(
    (one) => !("takenFor" in one) || isDeepStrictEqual(ownOf(into, one.key), one.takenFor),
  );
  return { ...into, ...Object.fromEntries(kept.map(({ key, value }) => [key, value])) };
}

function ownOf(into: object, key: string): unknown {
  return Object.getOwnPropertyDescriptor(into, key)?.value;
}

/**
 * What is not known goes with what it describes: that of one pod's binding would be a lie about the next pod's, that of an
 * address's last holder about the next holder, and that of a block's last owner about the next one.
 */
function describesSame(kind: Kind, path: readonly string[], before: object, next: object): boolean {
  if (kind === "reservation") return (before as Reservation).nonce === (next as Reservation).nonce;
  if (kind === "block") return (before as Block).nodeUID === (next as Block).nodeUID;
  if (kind === "pool") return true;
  const [old, now] = [before as Claim, next as Claim];
  switch (path.join(".")) {
    case "binding":
      return isSameBinding(old.binding, now.binding);
    case "retained":
      return old.retained?.since === now.retained?.since;
    case "status.attachment":
      return isSameAttachment(old.status.attachment, now.status.attachment);
    default:
      return true;
  }
}

function isSameBinding(old: Claim["binding"], now: Claim["binding"]): boolean {
  if (old === undefined || now === undefined) return false;
  const samePod = old.podUID === now.podUID || old.podUID === "" || now.podUID === "";
  return samePod && old.token === now.token && old.podName === now.podName;
}

type Attachment = Claim["status"]["attachment"];

export function isSameAttachment(old: Attachment, now: Attachment): boolean {
  return (
    old?.containerID === now?.containerID && old?.interface === now?.interface && old?.node === now?.node
  );
}
