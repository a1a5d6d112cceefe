// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { attachmentOf, bindingTo, claimRecord, NOW } from "../../test/support/fixtures.ts";
import type { Claim } from "./claim.ts";
import { phaseOf } from "./phase.ts";

const reported = (detached: boolean): Claim["status"] => ({
  attachment: attachmentOf("mysql-0", { detached }),
});
const bound = bindingTo("mysql-0", "node-a");
const retained = { since: NOW, because: "deleted" } as const;

const CASES: readonly (readonly [string, Partial<Claim>])[] = [
  ["Pending", { nonce: "", addresses: [] }],
  ["Reserved", {}],
  ["Held", { binding: bindingTo("mysql-0", "") }],
  ["Bound", { binding: bound }],
  ["Bound", { binding: bindingTo("mysql-0", "node-b", { podUID: "another" }), status: reported(true) }],
  ["Attached", { binding: bound, status: reported(false) }],
  ["Detached", { binding: bound, status: reported(true) }],
  ["Retained", { binding: bound, status: reported(true), retained }],
  ["Attached", { status: reported(false), retained }],
];

for (const [phase, over] of CASES) {
  it(`calls ${JSON.stringify(over)} ${phase}`, () => {
    assert.equal(phaseOf(claimRecord(over)), phase);
  });
}
