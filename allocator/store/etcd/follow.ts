// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../base/errors.ts";
import type { Clock, Logger, Random } from "../../base/ports.ts";
import type { Change, Kind, Stored } from "../store.ts";
import type { EtcdClient } from "./client.ts";
import { readable } from "./entry.ts";
import { isOverlong } from "./errors.ts";
import { GrpcError } from "./grpc-frames.ts";
import type { KeyValue, Source, WatchNews } from "./messages.ts";
import type { Page } from "./pages.ts";

interface Following<K extends Kind> {
  readonly kind: K;
  readonly client: Pick<EtcdClient, "watch">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly range: { readonly key: string; readonly end: string };
  readonly pages: () => AsyncIterable<Page>;
  /** Throws STATE_CORRUPT. */
  readonly read: (entry: KeyValue) => Stored<K>;
  readonly signal: AbortSignal;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;

const NOBODY: Source = { cluster: "", term: 0 };

/** How far a watch has come. */
interface Cursor {
  /** Every change up to this revision was told; undefined: a full pass is needed. */
  at: number | undefined;
  /** Whose revision that is. */
  of: Source;
  /** Since a watch told something last: a pass after a pass would otherwise come without end where none goes on from it. */
  failures: number;
}

/** A full pass, and then the changes: resumed after what broke off, begun anew after a compaction. */
export async function* followKind<K extends Kind>(
  following: Following<K>,
): AsyncGenerator<Change<K>, void, void> {
  const { kind, clock, random, log, signal } = following;
  const cursor: Cursor = { at: undefined, of: NOBODY, failures: 0 };
  while (!signal.aborted) {
    const isPass = cursor.at === undefined;
    try {
      if (cursor.at === undefined) yield* pass(following, cursor);
      else yield* changes(following, cursor.at, cursor);
    } catch (error) {
      if (!(error instanceof GrpcError) && !(error instanceof BerthError)) throw error;
      log.warn("watch of etcd broke off and is resumed", { kind, error: messageOf(error) });
      if (isOverlong(error)) cursor.at = undefined; // a list brings the same in parts
    }
    if (signal.aborted) return;
    if (isPass && cursor.at !== undefined) continue;
    if (cursor.at !== undefined && cursor.failures === 0) {
      cursor.failures = 1;
      continue;
    }
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(cursor.failures++, 10));
    await clock.sleep(longest * (0.5 + 0.5 * random.fraction()), signal);
  }
}

async function* pass<K extends Kind>(
  following: Following<K>,
  cursor: Cursor,
): AsyncGenerator<Change<K>, void, void> {
  const { pages, signal } = following;
  yield { type: "relist" };
  let revision = 0;
  let of: Source | undefined;
  for await (const page of pages()) {
    ({ revision } = page);
    // whose first page it was: one that was restored in the midst of them is another
    of ??= { cluster: page.cluster, term: page.term };
    for (const entry of page.entries) {
      if (signal.aborted) return;
      const stored = known(following, entry);
      if (stored !== undefined) yield { type: "put", stored };
    }
  }
  if (signal.aborted) return;
  yield { type: "synced" };
  cursor.at = revision;
  cursor.of = of ?? NOBODY;
}

async function* changes<K extends Kind>(
  following: Following<K>,
  from: number,
  cursor: Cursor,
): AsyncGenerator<Change<K>, void, void> {
  const { client, range, signal, log, kind } = following;
  for await (const news of client.watch({ ...range, revision: from + 1 }, signal)) {
    if (signal.aborted) return;
    if (isPast(news, from, cursor.of)) {
      log.info("etcd was compacted past what a watch had seen, is behind it, or is another; it starts over", {
        kind,
      });
      cursor.at = undefined;
      return;
    }
    if (news.canceled) throw new BerthError("STORE_UNAVAILABLE", `etcd ended a watch (${news.reason})`);
    cursor.failures = 0;
    for (const event of news.events) {
      if (signal.aborted) return;
      yield changeOf(following, event);
    }
    cursor.at = Math.max(cursor.at ?? 0, knownUpTo(news));
    cursor.of = { ...cursor.of, term: Math.max(cursor.of.term, news.term) };
  }
}

/**
 * Whether the watch cannot go on from there. etcd is behind it where its data was lost or is of a backup, and it would be silent
 * until it has as many revisions again; or where this member lags, and then a second pass does no harm. Where it has as many again by
 * now, they are others: a restored cluster has another id, unless it was given the same name, and begins to count its elections anew. Nothing
 * tells it from one that was given the same name and had had no election but its first.
 */
function isPast({ compactRevision, created, ...news }: WatchNews, from: number, of: Source): boolean {
  if (compactRevision > 0) return true;
  if (!created) return false;
  const isAnother = news.cluster !== of.cluster && news.cluster !== "" && of.cluster !== "";
  return news.revision < from || isAnother || (news.term > 0 && news.term < of.term);
}

/** Complete revisions come in one message. Without events it says how far there is nothing to tell, but for the first one. */
function knownUpTo({ events, created, revision }: WatchNews): number {
  return events.at(-1)?.entry.modRevision ?? (created ? 0 : revision);
}

function changeOf<K extends Kind>(
  following: Following<K>,
  { gone, entry }: { readonly gone: boolean; readonly entry: KeyValue },
): Change<K> {
  const stored = gone ? undefined : known(following, entry);
  return stored === undefined
    ? { type: "gone", key: entry.key.slice(following.range.key.length) }
    : { type: "put", stored };
}

/**
 * Undefined for what is no record: it is logged, and is as if it were gone, since everybody who may write into etcd
 * may write anything, and that must not end what all hosts live by. Its key stays taken, for creates decide about that.
 */
function known<K extends Kind>({ kind, read, log }: Following<K>, entry: KeyValue): Stored<K> | undefined {
  return readable(
    () => read(entry),
    ({ message }) =>
      log.error("record cannot be read and is passed over", { kind, key: entry.key, error: message }),
  );
}
