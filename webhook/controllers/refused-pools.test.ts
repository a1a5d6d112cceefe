// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Collect } from "../../allocator/base/ports.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import { RefusedPools } from "./refused-pools.ts";

describe("pools whose blocks are refused", () => {
  it("are told by an event, once for each reason, and in the metrics while they are refused", async () => {
    await using world = await openWorld({ pools: [poolRecord("a", "10.1.0.0/24")] });
    const told: EventInput[] = [];
    let collect: Collect = () => [];
    const refused = new RefusedPools(
      {
        cache: world.cache,
        events: { record: (one) => void told.push(one) },
        metrics: {
          increment() {},
          observe() {},
          gauge: (name, how) => {
            assert.equal(name, "berth_blocks_refused_pools");
            collect = how;
          },
        },
      },
      "CIDRs",
    );
    const measured = async () => [...(await collect())];
    assert.deepEqual(await measured(), []);
    for (let pass = 0; pass < 2; pass++) refused.publish(new Map([["a", "a policy refuses it"]]));
    assert.deepEqual(await measured(), [{ labels: { pool: "a" }, value: 1 }]);
    assert.deepEqual(
      told.map(({ reason, note, regarding: { kind, name } }) => [reason, note, kind, name]),
      [["BlocksRefused", "CIDRs of the pool cannot be given to nodes: a policy refuses it", "IPPool", "a"]],
    );
    refused.publish(new Map());
    assert.deepEqual(await measured(), []);
    refused.publish(new Map([["a", "a policy refuses it"]]));
    refused.forget();
    assert.deepEqual([await measured(), told.length], [[], 2]);
  });
});
