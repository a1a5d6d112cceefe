// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { claimResult, NodeBench, podArgs } from "../testing/node-bench.ts";

let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    for (let i = 0; i < 20; i++)
      node.claimSource.answers.set(`shop/db-${i}`, claimResult(`shop/db-${i}`, `10.20.0.${i + 10}/24`));
  });
  afterEach(() => node.close());
}

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !holds(); i++) await new Promise(setImmediate);
  assert.ok(holds(), `${holds}`);
}

const sandbox = (i: number) => ({ cid: `c${i}`, args: podArgs(`db-${i}`, `u${i}`) });
const reportedContainers = () =>
  node.claimSource.reported.map(({ attachment }) => attachment.containerID).sort();

async function attachAndDetach(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await node.add(sandbox(i));
    await node.del(sandbox(i));
  }
}

describe("reports of detachments", () => {
  setUp();

  it("are sent for every one, and journalled as sent", async () => {
    await attachAndDetach(20);
    node.parts.detachReporter.start();
    await until(() => node.parts.attachments.unreported().length === 0);
    assert.equal(new Set(reportedContainers()).size, 20);
    await node.restart();
    assert.deepEqual(node.parts.attachments.unreported(), []);
  });

  it("say which sandbox of the pod remains, where another one was given up with its claim", async () => {
    const [up, next] = [sandbox(0), { ...sandbox(0), cid: "next" }];
    await node.add(up);
    const given = new AbortController();
    node.claimSource.onAttach = () => given.abort();
    await node.call("ADD", { ...next, signal: given.signal });
    node.claimSource.onAttach = undefined;
    node.parts.detachReporter.start();
    await until(() => node.claimSource.reported.length > 0);
    const [notice, ...more] = node.claimSource.reported;
    assert.deepEqual(more, []);
    assert.deepEqual(
      [notice?.attachment.containerID, notice?.remaining?.attachment.containerID],
      ["next", "c0"],
    );
    await node.del(up);
    await until(() => node.claimSource.reported.length === 2);
    assert.equal(node.claimSource.reported[1]?.remaining, undefined);
  });

  it("do not keep a DEL waiting", async () => {
    node.claimSource.fault = new Error("the API server is down");
    node.parts.detachReporter.start();
    await attachAndDetach(1);
    assert.deepEqual(node.held, []);
  });

  it("are tried again, later each time, until they are understood", async () => {
    node.claimSource.fault = new Error("the API server is down");
    node.parts.detachReporter.start();
    await attachAndDetach(1);
    // Three quarters of 1, 2 and 4 s: the test's randomness takes the middle.
    for (const pause of [750, 1_500, 3_000]) {
      await until(() => node.clock.sleeping === 1);
      node.clock.advance(pause - 1);
      await new Promise(setImmediate);
      assert.equal(node.clock.sleeping, 1, `not before ${pause} ms`);
      node.clock.advance(1);
      await until(() => node.clock.sleeping === 0);
    }
    await until(() => node.clock.sleeping === 1);
    node.claimSource.fault = undefined;
    node.clock.advance(60_000);
    await until(() => node.claimSource.reported.length === 1);
  });

  it("go out by themselves when another fails", async () => {
    node.parts.detachReporter.start();
    node.claimSource.fault = new Error("down");
    await attachAndDetach(1);
    await until(() => node.clock.sleeping === 1);
    node.claimSource.fault = undefined;
    await node.add(sandbox(1));
    await node.del(sandbox(1));
    await until(() => node.claimSource.reported.length === 1);
    assert.deepEqual(reportedContainers(), ["c1"], "the one that failed waits for its time");
  });

  it("survive a restart", async () => {
    node.claimSource.fault = new Error("down");
    node.parts.detachReporter.start();
    await attachAndDetach(2);
    await node.restart();
    node.claimSource.fault = undefined;
    node.parts.detachReporter.start();
    await until(() => node.parts.attachments.unreported().length === 0);
    assert.deepEqual(reportedContainers(), ["c0", "c1"]);
  });

  it("go out before their place is used again, so that none is about the new sandbox", async () => {
    await attachAndDetach(1);
    await node.add(sandbox(0));
    assert.deepEqual(reportedContainers(), ["c0"]);
    assert.equal(node.claimSource.asked.length, 2);
    assert.deepEqual(node.parts.attachments.unreported(), []);
    await node.del(sandbox(0));
    node.claimSource.fault = new Error("down");
    const answer = await node.call("ADD", sandbox(0));
    assert.equal(answer.exitStatus, 1);
    assert.equal(node.claimSource.asked.length, 2, "nothing is asked for a place that is not cleared");
    assert.deepEqual(node.held, []);
  });

  it("under way are waited for by an ADD of their place, and not sent twice", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    node.claimSource.telling = promise;
    await attachAndDetach(1);
    node.parts.detachReporter.start();
    await until(() => node.claimSource.attempts === 1);
    const adding = node.add(sandbox(0));
    await new Promise(setImmediate);
    assert.equal(node.claimSource.asked.length, 1);
    resolve();
    assert.equal((await adding).length, 1);
    assert.equal(node.claimSource.attempts, 1);
  });

  it("are of a sandbox: they go out when the last interface that has the claim is gone", async () => {
    const claim = "shop/db-0";
    node.claimSource.interfaces = ["eth0", "net1"];
    node.claimSource.answers.set(`${claim}@net1`, claimResult(claim, "10.30.0.10/24"));
    node.parts.detachReporter.start();
    const net1 = { ...sandbox(0), ifname: "net1" };
    for (const [first, last] of [
      [sandbox(0), net1],
      [net1, sandbox(0)],
    ] as const) {
      const before = node.claimSource.reported.length;
      await node.add(sandbox(0));
      await node.add(net1);
      await node.del(first);
      await until(() => node.parts.attachments.unreported().length === 0);
      assert.equal(node.claimSource.reported.length, before, "the other interface has the claim");
      assert.equal(node.parts.attachments.ofClaim(claim).length, 1);
      await node.del(last);
      await until(() => node.parts.attachments.unreported().length === 0);
      assert.equal(node.claimSource.reported.length, before + 1);
    }
  });

  it("stop when the agent closes, also while one is under way", async () => {
    await attachAndDetach(1);
    node.claimSource.telling = new Promise(() => {});
    node.parts.detachReporter.start();
    await new Promise(setImmediate);
    await node.parts.detachReporter.close();
    await node.parts.detachReporter.close();
    assert.equal(node.parts.attachments.unreported().length, 1);
  });
});
