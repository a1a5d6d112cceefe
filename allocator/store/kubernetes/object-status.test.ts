// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bareClaim, blockOf, fullClaim } from "../contract/samples.ts";
import { blockStatusPatch, needsReport, specOf, statusPatch, storedOf } from "./objects.ts";
import { type Fields, itemOf } from "./testing/items.ts";

describe("the status of a claim", () => {
  it("needs no write of its own at first, unless it says something", () => {
    assert.equal(needsReport({}), false);
    assert.equal(needsReport(fullClaim("a").status), true);
    assert.equal(needsReport({ message: "" }), true);
  });

  it("says nothing until something is reported, nor of a phase that an earlier version wrote", () => {
    const record = bareClaim("mysql-0");
    const read = (status: Fields | undefined) =>
      storedOf("claim", itemOf("claim", record, { status })).record.status;
    for (const status of [undefined, { conditions: [] }, { phase: "Held" }])
      assert.deepEqual(read(status), {});
  });

  it("takes away what it does not have, and leaves alone what is not its own", () => {
    assert.deepEqual(statusPatch({}), { phase: null, attachment: null, message: null });
    const status = { message: "it waits", conditions: [{ type: "Ready" }], repeat: "x" };
    const item = itemOf("claim", bareClaim("mysql-0"), { status });
    assert.deepEqual(storedOf("claim", item).record.status, { message: "it waits" });
  });
});

describe("the status of a block", () => {
  const record = blockOf("10.30.4.0/26", { granted: true });
  const stored = (status: Fields) => storedOf("block", itemOf("block", record, { status })).record.status;

  it("is none until its agent has written", () => {
    assert.equal(stored({}), undefined);
    assert.equal(stored({ conditions: [] }), undefined);
    assert.deepEqual(stored({ node: "node-a", used: 0, repeat: "x" }), { node: "node-a", used: 0 });
    assert.throws(() => stored({ node: "node-a" }), { code: "STATE_CORRUPT" });
  });

  it("takes away a word that was not given", () => {
    assert.deepEqual(blockStatusPatch({ node: "node-a", used: 2 }), {
      node: "node-a",
      used: 2,
      returnedAt: null,
    });
    const returned = { node: "node-a", used: 0, returnedAt: 1_700_000_000_000 };
    const patch = blockStatusPatch(returned);
    assert.equal(patch["returnedAt"], "2023-11-14T22:13:20.000Z");
    assert.deepEqual(stored(patch), returned);
  });

  it("is no part of what is written of the block", () => {
    assert.equal("status" in specOf("block", { ...record, status: { node: "node-a", used: 1 } }), false);
  });
});
