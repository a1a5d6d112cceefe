// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Stored } from "../../../../allocator/store/store.ts";
import { NodeWorld } from "../../testing/node-world.ts";
import type { StatusWriter } from "./status-writer.ts";

describe("what was written of a claim", () => {
  let node: NodeWorld;
  beforeEach(async () => {
    node = await NodeWorld.open();
  });
  afterEach(() => node.close());

  type Told = (reports: StatusWriter, written: Stored<"claim">) => void;
  /** Lets go a claim, of which the view shows the state before. `told`: what the watch tells before the write is answered. */
  const letGo = async (told: Told = () => {}) => {
    const reports = node.reportsBy(node.world.clock);
    await node.assign("a", "10.20.0.70");
    const seen = node.view.claim("shop/a");
    assert.ok(seen);
    node.reporting = async (real, ...of) => {
      const result = await real(...of);
      if (result.kind === "replaced") told(reports, result.stored);
      return result;
    };
    await reports.detached(seen);
    return { seen, latest: reports.latest(seen), reports };
  };

  it("is what is known of it until the watch has told of it", async () => {
    const { seen, latest, reports } = await letGo();
    assert.equal(latest.record.status.attachment?.detached, true);
    reports.told(seen);
    assert.equal(reports.latest(seen), latest, "of what was before it");
    reports.told(latest);
    assert.equal(reports.latest(seen), seen);
  });

  const early: readonly (readonly [string, Told])[] = [
    ["of it", (reports, written) => reports.told(written)],
    ["that the claim is gone", (reports, { key }) => reports.forget(key)],
  ];
  for (const [what, told] of early) {
    it(`is not remembered where the watch tells ${what} before the write is answered`, async () => {
      const { seen, latest } = await letGo(told);
      assert.equal(latest, seen);
    });
  }
});
