// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import { describePhase } from "./phase.ts";

it("tells people where a claim stands", () => {
  assert.equal(describePhase(claimRecord()), "Reserved");
  assert.equal(describePhase(claimRecord({ binding: bindingTo("mysql-0", "node-a") })), "Bound");
});

it("tells people first that a claim is on its way out", () => {
  const deleted = claimRecord({ deleting: true, binding: bindingTo("mysql-0", "node-a") });
  assert.equal(describePhase(deleted), "Deleting");
  assert.equal(describePhase({ ...deleted, releasing: true }), "Releasing");
});
