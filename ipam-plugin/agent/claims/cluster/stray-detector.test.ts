// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../../../allocator/base/ports.ts";
import { ManualClock } from "../../../../system/testing/manual-clock.ts";
import { bindingTo, claimRecord, storedAs, viewOf } from "../../../../test/support/fixtures.ts";
import { claimResult, NodeBench, podArgs } from "../../testing/node-bench.ts";
import { PlainView } from "../../testing/plain-view.ts";
import { StrayDetector } from "./stray-detector.ts";

let node: NodeBench;
let view: PlainView;
let strays: StrayDetector;
let reported: unknown[];

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    view = new PlainView(viewOf({}));
    reported = [];
    strays = new StrayDetector({
      view,
      attached: () => node.parts.attachments.attached(),
      clock: new ManualClock(),
      log: {
        ...noopLogger,
        error: (message, fields) => reported.push([message, fields?.containerID, fields?.address]),
      },
    });
    node.claimSource.answers.set("shop/db-0", claimResult("shop/db-0", "10.20.0.10/24"));
    await node.add({ cid: "claimed", args: podArgs("db-0", "u1") });
    await node.add({ cid: "plain" });
  });
  afterEach(() => node.close());
}

/** The claim is bound to a pod of that UID. */
function bound(podUID: string): void {
  const record = claimRecord({ name: "db-0", binding: bindingTo("db-0", "node-a", { podUID }) });
  view.seeClaim("shop/db-0", storedAs("claim", record));
}

const found = () => strays.find().map(({ containerID }) => containerID);

describe("a stray sandbox", () => {
  setUp();

  it("is one whose claim is bound to another pod, or not to this node, and nobody's without a claim", () => {
    assert.deepEqual(found(), ["claimed"]);
    bound("u1");
    assert.deepEqual(found(), []);
    bound("u2");
    assert.deepEqual(found(), ["claimed"]);
  });

  it("cannot be told before the claims are loaded", () => {
    view.isSynced = false;
    assert.deepEqual(found(), []);
  });

  it("is told of at the second look, once, and again when it comes back", () => {
    const line = ["sandbox has addresses that are not bound to its pod; remove it", "claimed", "10.20.0.10"];
    strays.look();
    assert.deepEqual(reported, []);
    strays.look();
    strays.look();
    assert.deepEqual(reported, [line]);
    bound("u1");
    strays.look();
    bound("u2");
    strays.look();
    strays.look();
    assert.deepEqual(reported, [line, line]);
  });

  it("is not told of when it was the watch that was behind", () => {
    strays.look();
    bound("u1");
    strays.look();
    strays.look();
    assert.deepEqual(reported, []);
  });
});
