// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, slotsFor } from "../../test/support/allocation-requests.ts";
import { granted, refusalOf } from "../../test/support/fixtures.ts";
import { isRefusal } from "../base/errors.ts";
import { describeDryRun } from "./allocation-dry-run.ts";
import { dryRunSlot } from "./slots.ts";
import { FOUR, opened, slotOf } from "./testing/slots.ts";

describe("dryRunSlot", () => {
  it("stops where the allocation would", async () => {
    await using world = await opened();
    const list = entries("10.99.0.1;10.20.0.70");
    const would = await dryRunSlot(world.context, world.objects, slotsFor(world, list));
    assert.equal(refusalOf(would), await slotOf(world, list));
  });

  it("says which slot it would be, or why none, and writes nothing", async () => {
    await using world = await opened();
    for (let n = 0; n <= 4; n++) {
      const before = world.dump();
      const would = await dryRunSlot(world.context, world.objects, slotsFor(world, FOUR));
      assert.equal(world.dump(), before);
      if (n < 4)
        assert.equal(describeDryRun("pod", granted(would)), `pod would get 10.20.0.7${n} from pool db`);
      const said = isRefusal(would) ? refusalOf(would) : "";
      const got = await slotOf(world);
      assert.equal(said, n < 4 ? "" : got);
    }
  });
});
