// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../../../allocator/base/ports.ts";
import { ManualClock } from "../../../../system/testing/manual-clock.ts";
import {
  bindingTo,
  claimRecord,
  parsed,
  poolRecord,
  storedAs,
  viewOf,
} from "../../../../test/support/fixtures.ts";
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
    const { blockSource } = node;
    strays = new StrayDetector({
      view: {
        get isSynced() {
          return view.isSynced;
        },
        claim: (key) => view.claim(key),
        get areBlocksSynced() {
          return blockSource.isSynced;
        },
        blocks: () => blockSource.blocks(),
      },
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

describe("a sandbox with an address of a block", () => {
  setUp();
  const CIDR = "10.0.0.4/31";
  beforeEach(async () => {
    bound("u1");
    const pool = parsed(poolRecord("plain", "10.0.0.0/24", { blockSize: { ipv4: 31 } }));
    node.blockSource.stored.set("plain", pool);
    node.blockSource.grant("plain", CIDR);
    await node.hearBlocks();
    await node.add({ cid: "blocked", ipam: { pools: ["plain"] } });
  });

  it("is stray once the block is not this node's any more", () => {
    assert.deepEqual(found(), []);
    node.blockSource.records.delete(CIDR);
    assert.deepEqual(found(), ["blocked"]);
    node.blockSource.grant("plain", "10.0.0.6/31");
    assert.deepEqual(found(), ["blocked"]);
    node.blockSource.grant("plain", CIDR, { releasedAt: 1 });
    assert.deepEqual(found(), ["blocked"], "whoever has it next may give it");
    node.blockSource.grant("plain", CIDR, { holes: [CIDR] });
    assert.deepEqual(found(), ["blocked"], "it was reserved meanwhile");
    node.blockSource.grant("plain", CIDR);
    assert.deepEqual(found(), []);
  });

  it("is told of at the second look", () => {
    node.blockSource.records.delete(CIDR);
    strays.look();
    strays.look();
    const words = "sandbox has addresses that are not bound to its pod; remove it";
    assert.deepEqual(reported, [[words, "blocked", "10.0.0.4"]]);
  });

  it("cannot be told before the blocks are loaded", () => {
    node.blockSource.records.delete(CIDR);
    node.blockSource.isSynced = false;
    assert.deepEqual(found(), []);
  });

  it("is none while it has ended", async () => {
    node.blockSource.records.delete(CIDR);
    await node.del({ cid: "blocked", ipam: { pools: ["plain"] } });
    assert.deepEqual(found(), []);
  });
});
