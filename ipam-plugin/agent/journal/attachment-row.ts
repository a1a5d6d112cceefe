// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../../allocator/base/errors.ts";
import { parseAddress } from "../../../allocator/ip/address.ts";
import { integerOf, type Row, textColumn } from "../../../allocator/store/sqlite/sql.ts";
import type { IpamResult } from "../../cni/result.ts";
import { type Attachment, type AttachmentId, SOURCES } from "./attachment.ts";

/** A series of its own: a version that does not know of it reads the journal all the same, and writes rows without. */
export const NETNS_STEPS: readonly string[] = [
  "ALTER TABLE attachments ADD COLUMN netns_id TEXT NOT NULL DEFAULT ''",
];

/** With what `encode` gives. */
export const PUT = `INSERT OR REPLACE INTO attachments (network, data_dir, container_id, interface, state, source, addresses,
  routes, dns, netns, netns_seen, pod_namespace, pod_name, pod_uid, claim, start_ns, attached_at, boot_id,
  detached_at, deadline_ns, notice_pending, pool, netns_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

export function primaryKey({ scope, containerID, interface: name }: AttachmentId): readonly string[] {
  return [scope.network, scope.dataDir, containerID, name];
}

export function encode(attachment: Attachment): readonly (string | number)[] {
  const { state, source, result, netns, netnsSeen, pod, claim = "", pool = "" } = attachment;
  return [
    ...primaryKey(attachment),
    state,
    source === "block" ? "ranges" : source,
    JSON.stringify(result.addresses),
    JSON.stringify(result.routes),
    JSON.stringify(result.dns),
    netns,
    Number(netnsSeen !== false),
    pod?.namespace ?? "",
    pod?.name ?? "",
    pod?.uid ?? "",
    claim,
    String(attachment.startNs),
    attachment.attachedAt,
    attachment.bootId,
    attachment.detachedAt,
    String(attachment.deadlineNs),
    Number(attachment.noticePending),
    pool,
    typeof netnsSeen === "string" ? netnsSeen : "",
  ];
}

/** Throws STATE_CORRUPT, naming the attachment, for what does not decode. */
export function decode(row: Row): Attachment {
  const place = {
    scope: { network: textColumn(row, "network"), dataDir: textColumn(row, "data_dir") },
    containerID: textColumn(row, "container_id"),
    interface: textColumn(row, "interface"),
  };
  const pod = {
    namespace: textColumn(row, "pod_namespace"),
    name: textColumn(row, "pod_name"),
    uid: textColumn(row, "pod_uid"),
  };
  const claim = textColumn(row, "claim");
  const pool = textColumn(row, "pool");
  const source = pool === "" ? SOURCES.find((known) => known === textColumn(row, "source")) : "block";
  if (source === undefined) throw corrupt(place, "source");
  return {
    ...place,
    state: textColumn(row, "state") === "attached" ? "attached" : "detached",
    source,
    result: decodeResult(row, place),
    netns: textColumn(row, "netns"),
    netnsSeen: integerOf(row, "netns_seen") !== 0 && (textColumn(row, "netns_id") || true),
    ...(pod.name === "" ? {} : { pod }),
    ...(claim === "" ? {} : { claim }),
    ...(pool === "" ? {} : { pool }),
    startNs: decodeNs(row, "start_ns", place),
    attachedAt: integerOf(row, "attached_at"),
    bootId: textColumn(row, "boot_id"),
    detachedAt: integerOf(row, "detached_at"),
    deadlineNs: decodeNs(row, "deadline_ns", place),
    noticePending: integerOf(row, "notice_pending") !== 0,
  };
}

/** Written by this file alone, so only what would lead to a wrong address is looked at. */
function decodeResult(row: Row, place: AttachmentId): IpamResult {
  try {
    const result: IpamResult = {
      addresses: JSON.parse(textColumn(row, "addresses")),
      routes: JSON.parse(textColumn(row, "routes")),
      dns: JSON.parse(textColumn(row, "dns")),
    };
    if (result.addresses.every(({ address }) => parseAddress(address) === address)) return result;
  } catch {
    // reported below, like an address that is none
  }
  throw corrupt(place, "addresses");
}

function decodeNs(row: Row, column: string, place: AttachmentId): bigint {
  const text = textColumn(row, column);
  if (!/^\d+$/.test(text)) throw corrupt(place, column);
  return BigInt(text);
}

function corrupt({ scope, containerID, interface: name }: AttachmentId, column: string): BerthError {
  return new BerthError(
    "STATE_CORRUPT",
    `the journal's ${column} of container ${containerID}, interface ${name}, network ${scope.network} cannot be read; restore it from a backup`,
    { details: { containerID, interface: name, network: scope.network } },
  );
}
