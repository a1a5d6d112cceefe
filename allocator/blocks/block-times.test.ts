// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Block } from "../model/block.ts";
import { BlockTimes } from "./block-times.ts";

const BLOCK: Block = { cidr: "10.0.0.4/30", pool: "web", node: "node-a", nodeUID: "u", holes: [] };

describe("the times of a block", () => {
  it("are what they are when they are past, and count from when they were met when they are not", () => {
    const times = new BlockTimes();
    const stored = (over: Partial<Block>, uid = "u1") => ({
      ...{ key: BLOCK.cidr, uid, revision: "1", createdAt: 0 },
      record: { ...BLOCK, ...over },
    });
    const none = stored({});
    assert.equal(times.of(none, 1_000), none);
    const past = stored({ recalledAt: 400, releasedAt: 900 });
    assert.deepEqual(times.of(past, 1_000), past);
    const ahead = stored({ recalledAt: 5_000, releasedAt: 6_000 });
    const met = { ...ahead, record: { ...ahead.record, recalledAt: 1_000, releasedAt: 1_000 } };
    assert.deepEqual(times.of(ahead, 1_000), met);
    assert.deepEqual(times.of(ahead, 7_000), met);
    assert.equal(times.of(stored({ releasedAt: 6_000 }, "u2"), 2_000).record.releasedAt, 2_000);
  });
});
