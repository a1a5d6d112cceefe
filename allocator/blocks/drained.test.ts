// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { isDrained } from "./drained.ts";

describe("a pool", () => {
  it("gives nothing any more when it is disabled or gone, and not when it cannot be read", async () => {
    const pools = [
      poolRecord("gives", "10.0.0.0/24"),
      poolRecord("disabled", "10.1.0.0/24", { disabled: true }),
      poolRecord("newer", "10.2.0.0/24", { cooldown: "a newer word" }),
    ];
    await using world = await openWorld({ pools });
    await world.settle();
    const drained = ["gives", "disabled", "newer", "gone"].filter((name) => isDrained(world.cache, name));
    assert.deepEqual(drained, ["disabled", "gone"]);
  });
});
