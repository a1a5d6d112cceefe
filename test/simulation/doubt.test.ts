// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Block } from "../../allocator/model/block.ts";
import { MemoryRecords } from "../model/memory-records.ts";
import { claimRecord, reservationsOf } from "../support/fixtures.ts";
import { Doubt } from "./doubt.ts";

const CLAIM = claimRecord();
const [KEY, ADDRESSES] = ["shop/mysql-0", CLAIM.addresses];
const BLOCK: Block = {
  cidr: "10.20.0.64/26",
  pool: "db",
  node: "node-a",
  nodeUID: "uid-of-node-a",
  holes: [],
  granted: true,
};

/** Another one, of the same pool. */
const OTHER = "10.20.0.128/26";

/** A reserver has written its claim, and a node has the block that its address is in. */
function tried() {
  const records = new MemoryRecords();
  const doubt = new Doubt(records);
  records.listen((written) => doubt.note(written));
  const block = records.create("block", BLOCK, 0).stored;
  for (const reservation of reservationsOf(CLAIM)) records.create("reservation", reservation, 0);
  const claim = records.create("claim", CLAIM, 0).stored;
  const isSure = () => doubt.isSure(records.get("claim", KEY) ?? assert.fail());
  return { records, doubt, block, claim, isSure };
}

describe("a claim with an address in a node's block", () => {
  it("is a try, and nobody may be told of it", () => {
    const { doubt, isSure } = tried();
    assert.deepEqual([isSure(), doubt.wasSure(KEY, ADDRESSES)], [false, false]);
  });

  it("may be told of when the block is gone, and taken back until somebody writes it", () => {
    const { records, doubt, block, claim, isSure } = tried();
    records.remove("block", block);
    assert.deepEqual([isSure(), doubt.wasSure(KEY, ADDRESSES)], [false, true]);
    records.replace("claim", claim, { ...CLAIM, admittedAt: 1 });
    assert.equal(isSure(), true);
  });

  it("is not sure because of what becomes of another block", () => {
    const { records, block, isSure } = tried();
    records.remove("block", block);
    const other = records.create("block", { ...BLOCK, cidr: OTHER }, 0).stored;
    assert.equal(isSure(), false);
    assert.ok(other);
    records.replace("block", other, { ...BLOCK, cidr: OTHER, releasedAt: 1 });
    assert.equal(isSure(), false);
  });

  it("is sure at once when it becomes a hole of the block, which stays one", () => {
    const { records, block, isSure } = tried();
    const { granted: _, ...made } = BLOCK;
    const found = records.replace("block", block, made);
    assert.equal(isSure(), false);
    const holes = ADDRESSES.map((address) => `${address}/32`);
    assert.ok(found.kind === "replaced");
    records.replace("block", found.stored, { ...made, holes });
    assert.equal(isSure(), true);
  });

  it("is not sure because the grant of a block has found its reservation: its reserver may be about to take it back", () => {
    const { records, block, isSure } = tried();
    records.remove("block", block);
    records.create("block", { ...BLOCK, holes: ADDRESSES.map((address) => `${address}/32`) }, 0);
    assert.equal(isSure(), false);
  });
});
