// SPDX-License-Identifier: Apache-2.0
import { BerthError, isCorrupt, messageOf } from "../../base/errors.ts";
import { decodeRecord, encodeRecord } from "../codec.ts";
import type { Kind, Records, Stored } from "../store.ts";
import { LONGEST_MESSAGE } from "./grpc-frames.ts";
import type { KeyValue } from "./messages.ts";

/** Before the keys of all records. The number changes when older versions must not read what is under it. */
export const PREFIX = "/berth/v1";

/** What is stored with a record, in a line of its own before it. */
interface Head {
  /** Of the incarnation. */
  readonly uid: string;
  /** Milliseconds since 1970, by the clock of whoever created it. */
  readonly createdAt: number;
  /** Of the write: by it a writer knows its own again whose answer was lost. */
  readonly write: string;
}

/** /berth/v1/claim/shop/mysql-0 */
export function etcdKey(kind: Kind, key: string, prefix: string = PREFIX): string {
  return `${prefix}/${kind}/${key}`;
}

/** All keys of a kind, or those of a namespace. */
export function rangeOf(
  kind: Kind,
  prefix: string,
  namespace?: string,
): { readonly key: string; readonly end: string } {
  const within = kind === "claim" && namespace !== undefined ? `${namespace}/` : "";
  const key = etcdKey(kind, within, prefix);
  return { key, end: `${key.slice(0, -1)}0` }; // "0" comes after "/"
}

/** The key of a record, of a key in etcd that is in the range of its kind. */
export function recordKey(kind: Kind, key: string, prefix: string): string {
  return key.slice(etcdKey(kind, "", prefix).length);
}

/** Two lines of JSON: the head, and the record as every store has it. */
export function textOf<K extends Kind>(
  kind: K,
  head: Head,
  record: Records[K],
  seen?: Pick<Stored<K>, "record" | "unknown">,
): string {
  return `${JSON.stringify(head)}\n${encodeRecord(kind, record, seen)}`;
}

/** What is stored under a key. Throws STATE_CORRUPT naming it. */
export function storedOf<K extends Kind>(kind: K, entry: KeyValue, prefix: string): Stored<K> {
  const key = recordKey(kind, entry.key, prefix);
  const { uid, createdAt } = headOf(entry);
  const body = entry.value.slice(entry.value.indexOf("\n") + 1);
  return { key, ...decodeRecord(kind, key, body), uid, revision: String(entry.modRevision), createdAt };
}

/** Throws STATE_CORRUPT naming the key. */
export function headOf(entry: KeyValue): Head {
  const { key } = entry;
  try {
    const value = valueIn(entry);
    const line = value.indexOf("\n");
    const head: unknown = JSON.parse(value.slice(0, Math.max(line, 0)));
    if (isHead(head)) return head;
    throw new TypeError("its first line names no uid, createdAt and write");
  } catch (error) {
    const words = `${key} in etcd is no record (${messageOf(error)}); delete it, or restore it from a backup`;
    throw new BerthError("STATE_CORRUPT", words, { details: { key }, cause: error });
  }
}

/** Undefined for what is none, which is told. */
export function readable<T>(read: () => T, report: (fault: BerthError) => void): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    report(error);
    return undefined;
  }
}

/** Throws what there is to say of one that was not read. */
export function valueIn({ value, overlong }: KeyValue): string {
  if (overlong !== true) return value;
  throw new TypeError(`its value is longer than ${LONGEST_MESSAGE} bytes`);
}

function isHead(value: unknown): value is Head {
  if (typeof value !== "object" || value === null) return false;
  const { uid, createdAt, write } = value as Partial<Record<keyof Head, unknown>>;
  return typeof uid === "string" && typeof createdAt === "number" && typeof write === "string";
}
