// SPDX-License-Identifier: Apache-2.0
// The messages of etcd's API v3 that are used here, with the numbers that their fields have in etcd's api/etcdserverpb/rpc.proto
// and api/mvccpb/kv.proto (https://github.com/etcd-io/etcd, Apache-2.0). Those numbers never change.
import { MessageWriter, readMessage } from "./protobuf.ts";

/** The calls, as paths of gRPC. */
export const METHODS = {
  range: "/etcdserverpb.KV/Range",
  txn: "/etcdserverpb.KV/Txn",
  watch: "/etcdserverpb.Watch/Watch",
  authenticate: "/etcdserverpb.Auth/Authenticate",
} as const;

/** A key as it is stored. */
export interface KeyValue {
  readonly key: string;
  readonly value: string;
  /** At which it was created, since it was last deleted. */
  readonly createRevision: number;
  /** At which it was written last. */
  readonly modRevision: number;
  /** Its value is longer than any answer that is taken, and was not read. */
  readonly overlong?: true;
}

/** Which keys. */
export interface Range {
  readonly key: string;
  /** The first key that is not of it; absent: `key` alone. */
  readonly end?: string;
  /** How many at most; absent: all. */
  readonly limit?: number;
  /** As of this revision; absent: now, as a majority has it. */
  readonly revision?: number;
  /** Their values are empty in the answer. */
  readonly keysOnly?: boolean;
}

/** Which etcd answered, as each answer says. */
export interface Source {
  /** The id of the cluster, in hexadecimal digits; empty where a proxy does not say. */
  readonly cluster: string;
  /** Of its elections, as the member knows it: it never falls, but where data was restored. 0 where a proxy does not say. */
  readonly term: number;
}

export interface RangeResult extends Source {
  /** Of the cluster, when it was read. */
  readonly revision: number;
  readonly entries: readonly KeyValue[];
  /** There are more than the limit, or than the answer has room for. */
  readonly more: boolean;
}

/** A write of one key that is done only if the key is as it was seen: at `modRevision`, or absent for 0. */
export interface Change {
  readonly key: string;
  readonly modRevision: number;
  /** Absent: it is deleted. */
  readonly value?: string;
}

/** A key that is not written, and must be at this revision for the write to be done. */
export type Condition = Pick<KeyValue, "key" | "modRevision">;

/** `revision` is that of the write, and otherwise when the key was found to be other than it was seen. */
export interface ChangeResult {
  readonly done: boolean;
  readonly revision: number;
  /** If it was not done: what is there. */
  readonly there: KeyValue | undefined;
  /** Its condition did not hold. */
  readonly unmet: boolean;
}

/** A key and its value, for a key that is not there. */
export type Creation = Pick<KeyValue, "key" | "value">;

/** `revision` as of a change. */
export interface CreationsResult {
  readonly done: boolean;
  readonly revision: number;
  /** If it was not done: what is there of each key, in their order. */
  readonly there: readonly (KeyValue | undefined)[];
  /** Its condition did not hold. */
  readonly unmet: boolean;
}

/** What a watch is told. */
export interface WatchNews extends Source {
  readonly revision: number;
  readonly created: boolean;
  readonly canceled: boolean;
  /** Revisions below this one are compacted away: what the watch was to start with; 0: it is not that. */
  readonly compactRevision: number;
  readonly reason: string;
  /** Complete revisions, in their order. A key that is gone has no value, and the revision of its deletion. */
  readonly events: readonly { readonly gone: boolean; readonly entry: KeyValue }[];
}

const MOD_REVISION = 2; // of enum CompareTarget
const DELETED = 1; // of enum EventType

export function rangeRequest({ key, end, limit, revision, keysOnly }: Range): MessageWriter {
  const request = new MessageWriter().text(1, key);
  if (end !== undefined) request.text(2, end);
  if (limit !== undefined) request.int(3, limit);
  if (revision !== undefined) request.int(4, revision);
  if (keysOnly === true) request.flag(8, true);
  return request;
}

/** Every transaction reads in the same moment what is there when it does not write. */
export function changeRequest(change: Change, condition?: Condition): MessageWriter {
  return transaction([change], condition);
}

/** All of them, if none of the keys is there. */
export function creationsRequest(creations: readonly Creation[], condition?: Condition): MessageWriter {
  return transaction(
    creations.map(({ key, value }) => ({ key, value, modRevision: 0 })),
    condition,
  );
}

function transaction(changes: readonly Change[], condition: Condition | undefined): MessageWriter {
  const request = new MessageWriter();
  const compared = condition === undefined ? changes : [...changes, condition];
  for (const { key, modRevision } of compared) {
    request.message(1, new MessageWriter().int(2, MOD_REVISION).text(3, key).int(6, modRevision));
  }
  for (const { key, value } of changes) {
    const put = () => new MessageWriter().text(1, key).text(2, value ?? "");
    const write =
      value === undefined
        ? new MessageWriter().message(3, new MessageWriter().text(1, key))
        : new MessageWriter().message(2, put());
    request.message(2, write);
  }
  for (const { key } of compared) {
    request.message(3, new MessageWriter().message(1, rangeRequest({ key })));
  }
  return request;
}

/** `revision`: the first that is told. */
export function watchRequest(range: Required<Pick<Range, "key" | "end" | "revision">>): MessageWriter {
  const create = new MessageWriter()
    .text(1, range.key)
    .text(2, range.end)
    .int(3, range.revision)
    .flag(4, true); // progress is told: it moves the revision to resume from
  return new MessageWriter().message(1, create);
}

export function authenticateRequest(name: string, password: string): MessageWriter {
  return new MessageWriter().text(1, name).text(2, password);
}

export function readRange(bytes: Uint8Array): RangeResult {
  let [header, more] = [NO_HEADER, false];
  const entries: KeyValue[] = [];
  readMessage(bytes, {
    1: (part) => (header = readHeader(part.bytes())),
    2: (entry) => entries.push(readKeyValue(entry.bytes())),
    3: (flag) => (more = flag.flag()),
  });
  return { ...header, entries, more };
}

export function readChange(bytes: Uint8Array, condition?: Condition): ChangeResult {
  const { there, ...result } = readCreations(bytes, condition);
  return { ...result, there: there[0] };
}

export function readCreations(bytes: Uint8Array, condition?: Condition): CreationsResult {
  let [revision, done] = [0, false];
  const there: (KeyValue | undefined)[] = [];
  readMessage(bytes, {
    1: (header) => ({ revision } = readHeader(header.bytes())),
    2: (flag) => (done = flag.flag()),
    3: (response) =>
      readMessage(response.bytes(), {
        1: (range) => there.push(readRange(range.bytes()).entries[0]),
      }),
  });
  const unmet = !done && condition !== undefined && there.pop()?.modRevision !== condition.modRevision;
  return { done, revision, there, unmet };
}

export function readWatch(bytes: Uint8Array): WatchNews {
  let [header, created, canceled, compactRevision, reason] = [NO_HEADER, false, false, 0, ""];
  const events: { gone: boolean; entry: KeyValue }[] = [];
  readMessage(bytes, {
    1: (part) => (header = readHeader(part.bytes())),
    3: (flag) => (created = flag.flag()),
    4: (flag) => (canceled = flag.flag()),
    5: (number) => (compactRevision = number.int()),
    6: (text) => (reason = text.text()),
    11: (event) => events.push(readEvent(event.bytes())),
  });
  return { ...header, created, canceled, compactRevision, reason, events };
}

export function readToken(bytes: Uint8Array): string {
  let token = "";
  readMessage(bytes, { 2: (text) => (token = text.text()) });
  return token;
}

type Header = Source & { readonly revision: number };

const NO_HEADER: Header = { cluster: "", term: 0, revision: 0 };

function readHeader(bytes: Uint8Array): Header {
  let { cluster, term, revision } = NO_HEADER;
  readMessage(bytes, {
    1: (number) => (cluster = number.hex()),
    3: (number) => (revision = number.int()),
    4: (number) => (term = number.int()),
  });
  return { cluster, term, revision };
}

function readKeyValue(bytes: Uint8Array): KeyValue {
  let [key, value, createRevision, modRevision] = ["", "", 0, 0];
  readMessage(bytes, {
    1: (text) => (key = text.text()),
    2: (number) => (createRevision = number.int()),
    3: (number) => (modRevision = number.int()),
    5: (text) => (value = text.text()),
  });
  return { key, value, createRevision, modRevision };
}

function readEvent(bytes: Uint8Array): { gone: boolean; entry: KeyValue } {
  let [type, entry] = [0, readKeyValue(new Uint8Array())];
  readMessage(bytes, {
    1: (number) => (type = number.int()),
    2: (kv) => (entry = readKeyValue(kv.bytes())),
  });
  return { gone: type === DELETED, entry };
}
