// SPDX-License-Identifier: Apache-2.0
// Records put into a cache, and what may be picked of its pools by them.
import assert from "node:assert/strict";
import { storedAs } from "../../../test/support/fixtures.ts";
import { FAMILIES, fromNumber } from "../../ip/address.ts";
import { pickFree } from "../../ip/free-address.ts";
import { intervalsOf, type PoolRecord } from "../../pool/pool.ts";
import type { Kind, Records, Stored } from "../../store/store.ts";
import type { RecordCache } from "../cache.ts";
import type { RecordReader } from "../reader.ts";

export function put<K extends Kind>(
  cache: RecordCache,
  kind: K,
  ...records: readonly Records[K][]
): Stored<K>[] {
  const all = records.map((record) => storedAs(kind, record));
  for (const stored of all) cache.apply(kind, { type: "put", stored });
  return all;
}

/** Every address of the pool that may be picked, as long as pools are as small as they are here. */
export function pickable(view: RecordReader, name: string): string {
  const pool = view.pool(name);
  assert.ok(pool !== undefined, name);
  return FAMILIES.flatMap((family) =>
    [...pickFree(intervalsOf(pool, family), view.unpickable(pool, family), 0n)].map((n) =>
      fromNumber(n, family),
    ),
  ).join(" ");
}

export const TINY: PoolRecord = {
  name: "tiny",
  spec: {
    ranges: [{ cidr: "10.0.0.0/29", gateway: "10.0.0.1", exclude: ["10.0.0.2"] }],
    reserved: ["10.0.0.3"],
  },
};
