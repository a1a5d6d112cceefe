// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../base/errors.ts";
import { listed } from "../../base/listed.ts";
import type { Logger } from "../../base/ports.ts";
import type { EtcdClient } from "./client.ts";
import { isCompacted, isOverlong } from "./errors.ts";
import type { KeyValue, Range, RangeResult, Source } from "./messages.ts";

/** Some of the keys of a range, all as of one moment. */
export interface Page extends Source {
  readonly entries: readonly KeyValue[];
  readonly revision: number;
}

interface Paging {
  readonly client: Pick<EtcdClient, "range">;
  readonly log: Logger;
  /** Records in a page at most, 500 if absent. */
  readonly pageSize?: number | undefined;
}

const PAGE_SIZE = 500;
/** Of a page, by what the one before had for each key. */
const PAGE_LENGTH = 4 * 1024 * 1024;
/** No record of Berth's is that long; whoever may write there may write anything. */
const LONG = 512 * 1024;
/** Keys that are named in a message. */
const NAMED = 3;

/**
 * Pages of one moment, of fewer records where those are long. A key whose value is longer than any answer comes as `overlong`. Throws
 * STORE_UNAVAILABLE when the moment is compacted away before the last page.
 */
export async function* pagesOf(
  { client, log, pageSize = PAGE_SIZE }: Paging,
  range: Required<Pick<Range, "key" | "end">>,
): AsyncGenerator<Page, void, void> {
  const long: KeyValue[] = [];
  let revision: number | undefined;
  let limit = pageSize;
  for (let key = range.key; ; ) {
    const asked = { key, end: range.end, limit, ...(revision === undefined ? {} : { revision }) };
    const page = await pageOf(client, asked);
    revision ??= page.revision;
    long.push(...page.entries.filter(isLong).map((entry) => ({ ...entry, value: "" })));
    const { entries, cluster, term } = page;
    yield { entries, revision, cluster, term };
    const last = page.entries.at(-1);
    if (!page.more || last === undefined) break;
    key = `${last.key}\0`;
    limit = nextLimit(page.entries, pageSize);
  }
  if (long.length > 0)
    log.warn("etcd has values that are longer than any record, and slow to list", fieldsOf(long));
}

async function pageOf(client: Paging["client"], range: Range): Promise<RangeResult> {
  try {
    return await client.range(range);
  } catch (error) {
    if (isOverlong(error)) return await unreadOf(client, range);
    if (!isCompacted(error)) throw error;
    const words = "etcd was compacted while its records were listed; try again";
    throw new BerthError("STORE_UNAVAILABLE", words, { cause: error });
  }
}

/** The first key of the range, whose value no answer has room for. */
async function unreadOf(client: Paging["client"], range: Range): Promise<RangeResult> {
  const page = await client.range({ ...range, limit: 1, keysOnly: true });
  return { ...page, entries: page.entries.map((entry) => ({ ...entry, overlong: true })) };
}

/** No more than twice as many as came: perhaps they came late, and not for their length. */
function nextLimit(came: readonly KeyValue[], pageSize: number): number {
  const length = came.reduce((sum, { value }) => sum + value.length, 1);
  const fitting = Math.max(1, Math.floor((PAGE_LENGTH * came.length) / length));
  return Math.min(pageSize, 2 * came.length, fitting);
}

function isLong({ value, overlong }: KeyValue): boolean {
  return overlong === true || value.length > LONG;
}

function fieldsOf(long: readonly KeyValue[]) {
  const keys = long.map(({ key }) => key);
  const advice = "delete them, and find out who may write there";
  return { count: long.length, keys: listed(keys, NAMED), advice };
}
