// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import type { JournalContents } from "../journal/journal.ts";
import { PlainBlocks } from "../testing/plain-blocks.ts";
import { KnownPools } from "./known-pools.ts";

/** What the journal has after it was told, as the next process reads it. */
function journalled(source: PlainBlocks, before: JournalContents["pools"] = []): JournalContents["pools"] {
  const { pools, poolsGone } = new KnownPools(source, before).change();
  const names = new Set([...pools.map(({ name }) => name), ...poolsGone]);
  return [...before.filter(({ name }) => !names.has(name)), ...pools];
}

function sourceOf(...names: readonly string[]): PlainBlocks {
  const source = new PlainBlocks();
  for (const [n, name] of names.entries())
    source.stored.set(name, parsed(poolRecord(name, `10.${n}.0.0/24`)));
  return source;
}

/** An API server that has not answered. */
function silent(): PlainBlocks {
  return Object.assign(new PlainBlocks(), { isSynced: false });
}

describe("the pools that a node knows", () => {
  it("are all that there were when they were listed last, also where there were none", () => {
    for (const names of [["lan", "db"], []]) {
      const known = new KnownPools(silent(), journalled(sourceOf(...names)));
      assert.equal(known.areAllKnown, true);
      assert.deepEqual(
        known.everything().map(({ name }) => name),
        names,
      );
    }
    assert.equal(new KnownPools(silent(), []).areAllKnown, false, "it never heard of any");
  });

  it("are written anew when one comes or goes, and not otherwise", () => {
    const first = journalled(sourceOf("lan"));
    assert.deepEqual(new KnownPools(sourceOf("lan"), first).change(), { pools: [], poolsGone: [] });
    const second = journalled(sourceOf("db"), first);
    const known = new KnownPools(silent(), second);
    assert.deepEqual([known.areAllKnown, known.everything().map(({ name }) => name)], [true, ["db"]]);
  });

  it("are not all where an earlier version has taken some out of the journal", () => {
    const left = journalled(sourceOf("lan", "db")).filter(({ name }) => name !== "lan");
    const known = new KnownPools(silent(), left);
    assert.equal(known.areAllKnown, false);
    assert.deepEqual(known.all(), [], "those that have blocks");
  });
});
