// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { attachment, database, open, setUp } from "../testing/opened-journal.ts";
import { AttachmentCache } from "./attachment-cache.ts";

describe("addresses of blocks in the journal", () => {
  setUp();
  const BLOCK = {
    cidr: "10.0.0.0/30",
    uid: "u1",
    pool: "db",
    holes: ["10.0.0.0/32"],
    bootId: "b",
    nodeUID: "node-1",
    returningAt: 0,
  };
  const DB = { name: "db", spec: { ranges: [{ cidr: "10.0.0.0/24" }] } };

  it("are one of the network's ranges to a version that knows of no blocks", async () => {
    const one = attachment("a", { source: "block", pool: "db" });
    await new AttachmentCache(open()).commit({ put: [one] });
    assert.deepEqual(
      database.read((sql) => sql.all("SELECT source FROM attachments")).map(({ source }) => source),
      ["ranges"],
    );
    database.close();
    assert.deepEqual(new AttachmentCache(open()).get(one), one);
  });

  it("come with the blocks and with the pools that there are, until their records are gone", async () => {
    const journal = open();
    const returning = { ...BLOCK, uid: "u0", returningAt: 5 };
    await journal.write({ blocks: { put: [BLOCK, returning], pools: [DB] } });
    assert.deepEqual(journal.load().blocks, [returning, BLOCK]);
    await journal.write({ blocks: { gone: [returning] } });
    assert.deepEqual([journal.load().blocks, journal.load().pools], [[BLOCK], [DB]]);
    await journal.write({ blocks: { gone: [BLOCK] } });
    assert.deepEqual([journal.load().blocks, journal.load().pools], [[], [DB]]);
    await journal.write({ blocks: { poolsGone: [DB.name] } });
    assert.deepEqual(journal.load().pools, []);
  });

  it("that cannot be read are not passed over", async () => {
    const journal = open();
    await journal.write({ blocks: { put: [{ ...BLOCK, holes: ["x"] }] } });
    const words = "the journal's block 10.0.0.0/30 cannot be read; restore it from a backup";
    assert.throws(() => journal.load(), { code: "STATE_CORRUPT", message: words });
  });
});
