// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addrs, bindingTo, claimRecord, NOW } from "../test/support/fixtures.ts";
import { explainClaim } from "./explanation.ts";
import { facts, lent } from "./testing/facts.ts";

describe("explainClaim", () => {
  for (const [what, record, over, words, stuck] of [
    [
      "no addresses",
      claimRecord({ nonce: "", addresses: [], status: { phase: "Pending", message: "pool db is full" } }),
      {},
      "has no addresses yet: pool db is full",
      true,
    ],
    [
      "releasing",
      claimRecord({ releasing: true }),
      {},
      "is being given back; others get its addresses when they have cooled",
      false,
    ],
    [
      "retained for a time",
      claimRecord({
        retained: { since: NOW, because: "deleted" },
        retention: { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: 3_600_000 },
      }),
      {},
      "keeps its addresses for 1h0m0s; its owner is deleted since 2026-01-01T00:00:00Z",
      false,
    ],
    [
      "promised",
      claimRecord({ binding: bindingTo("", "", { podUID: "" }) }),
      {},
      "is promised to a pod that has no name yet",
      false,
    ],
    [
      "its pod is gone and nobody said so",
      lent,
      {},
      "is still lent to pod mysql-0 on node-a, which is gone; its sandbox was not seen to end",
      true,
    ],
    [
      "its node is fenced",
      lent,
      { fenced: true },
      "was lent to pod mysql-0 on node-a, whose sandbox is over",
      false,
    ],
    [
      "two families",
      claimRecord({ addresses: addrs("10.20.0.70", "fd00:20::70") }),
      {},
      "keeps its addresses; nobody has them now",
      false,
    ],
  ] as const) {
    it(`tells: ${what}`, () => {
      const told = explainClaim(record, facts(record, over));
      assert.deepEqual([told.text.split("\n")[0], told.stuck], [`ipclaim/shop/mysql-0 ${words}`, stuck]);
    });
  }

  it("tells what the reaper will do", () => {
    const verdict = { kind: "release", reason: "never-came" } as const;
    const { text } = explainClaim(claimRecord(), facts(claimRecord(), { verdict }));
    assert.match(text, /^ {2}next +Berth releases the claim at its next pass: its pod never came$/m);
  });
});
