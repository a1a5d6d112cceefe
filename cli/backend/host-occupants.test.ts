// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { addr, poolRecord, storedAs } from "../../test/support/fixtures.ts";
import { HostRecordCache } from "./host-occupants.ts";

describe("the records of a stack", () => {
  it("pass over what the host has itself, from a second after it has it", () => {
    const clock = new ManualClock();
    const has: { address: ReturnType<typeof addr>; interface: string }[] = [];
    const view = new HostRecordCache(noopLogger, clock, { read: () => has });
    view.apply("pool", { type: "put", stored: storedAs("pool", poolRecord("lan", "10.9.0.0/29")) });
    const [pool] = view.pools();
    assert.ok(pool);
    const isPickable = (n: bigint) => !view.unpickable(pool, "IPv4").has(168361984n + n);
    assert.equal(isPickable(1n), true);
    has.push({ address: addr("10.9.0.1"), interface: "cni0" });
    assert.equal(isPickable(1n), true, "it was looked at a moment ago");
    clock.advance(1_000);
    assert.equal(isPickable(1n), false);
    assert.deepEqual(view.occupant(addr("10.9.0.1")), { kind: "host", namespace: "", name: "cni0" });
    has.pop();
    clock.advance(1_000);
    assert.equal(isPickable(1n), true);
  });
});
