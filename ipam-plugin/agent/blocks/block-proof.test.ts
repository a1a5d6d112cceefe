// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { giveBack } from "../../../allocator/blocks/give-back.ts";
import { NODE_GRACE_MS } from "../../../allocator/model/cluster-state.ts";
import type { NodeBench } from "../testing/node-bench.ts";
import { ONE, ReporterBench } from "../testing/reporter-bench.ts";

let bench: ReporterBench;
let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    bench = await ReporterBench.open();
    node = bench.node;
  });
  afterEach(() => bench.close());
}

describe("a block that the journal does not know", () => {
  setUp();
  beforeEach(() => {
    bench.isProving = true;
    bench.reporter = bench.reporterOfNode();
  });

  it("is given from when its status is written, and by the next process without that", async () => {
    await bench.grant(ONE);
    assert.equal(bench.given(), "unproven");
    await bench.reporter.look();
    assert.deepEqual([bench.given(), bench.written], ["giving", 1]);
    await bench.restart();
    await bench.hear();
    assert.equal(bench.given(), "giving");
  });

  it("is never given from when an agent with a journal that is lost has given it back, whenever its word arrives", async () => {
    await bench.grant(ONE);
    const seen = (await bench.realStore.get("block", ONE)) ?? assert.fail();
    const word = { node: "node-a", used: 0, returnedAt: 1 };
    bench.around = async (write) => {
      assert.equal((await bench.realStore.reportBlock(seen, word)).kind, "replaced");
      return await write();
    };
    await bench.reporter.look();
    assert.notEqual(bench.given(), "giving");
    await bench.grant("10.0.0.6/31");
    const other = (await bench.realStore.get("block", "10.0.0.6/31")) ?? assert.fail();
    bench.around = (write) => write();
    await bench.reporter.look();
    assert.equal(node.parts.blocks.get("10.0.0.6/31")?.state, "giving");
    assert.equal((await bench.realStore.reportBlock(other, word)).kind, "conflict", "it comes too late");
  });

  it("waits until the Node object that it was made for counts as fenced, if it is another one than this node's", async () => {
    node.blockSource.own = { uid: "made again", seenForMs: NODE_GRACE_MS - 1, fenced: false };
    await bench.grant(ONE);
    await bench.reporter.look();
    assert.deepEqual([bench.given(), bench.written], ["unproven", 0]);
    node.blockSource.own = { uid: "made again", seenForMs: NODE_GRACE_MS, fenced: false };
    await bench.reporter.look();
    assert.equal(bench.given(), "giving");
    node.blockSource.own = undefined;
    await bench.grant("10.0.0.6/31");
    await bench.reporter.look();
    assert.equal(
      node.parts.blocks.get("10.0.0.6/31")?.state,
      "unproven",
      "it is not known which this node's is",
    );
  });
});

describe("a block of a node that was fenced", () => {
  setUp();
  beforeEach(async () => {
    bench.isProving = true;
    bench.reporter = bench.reporterOfNode();
    await bench.grant(ONE);
    await bench.reporter.look();
    assert.deepEqual([bench.given(), bench.written], ["giving", 1]);
  });

  const fence = async (fenced: boolean) => {
    node.blockSource.own = { uid: "u", seenForMs: 0, fenced };
    await bench.hear();
  };

  /** A controller that has seen the node fenced takes the block, as it was then. */
  const fencer = async () => {
    const seen = (await bench.realStore.get("block", ONE)) ?? assert.fail();
    return () =>
      giveBack({ store: bench.realStore, clock: node.clock }, seen, { kind: "fenced", node: "node-a" });
  };

  it("is proven anew in each boot, so that a controller which saw the node fenced while it was off comes too late", async () => {
    const takes = await fencer();
    node.reboot();
    await bench.restart();
    await bench.hear();
    assert.equal(bench.given(), "unproven");
    await bench.reporter.look();
    assert.deepEqual([bench.given(), bench.written], ["giving", 2]);
    assert.equal(await takes(), "changed");
  });

  it("is not given from when that controller was first", async () => {
    const takes = await fencer();
    node.reboot();
    await bench.restart();
    await bench.hear();
    bench.around = async (write) => {
      assert.equal(await takes(), "cooling");
      return await write();
    };
    await bench.reporter.look();
    await bench.hear();
    assert.equal(bench.given(), undefined);
  });

  it("is not given from while it is fenced, and proven anew after that, also by the next process", async () => {
    await fence(true);
    await bench.reporter.look();
    assert.deepEqual([bench.given(), bench.written], ["unproven", 1]);
    await fence(false);
    await bench.restart();
    await bench.hear();
    assert.equal(bench.given(), "unproven", "the journal says so");
    const takes = await fencer();
    await bench.reporter.look();
    assert.deepEqual([bench.given(), bench.written], ["giving", 2]);
    assert.equal(await takes(), "changed");
    await bench.restart();
    await bench.hear();
    assert.equal(bench.given(), "giving");
  });

  const madeAgain = { uid: "made again", seenForMs: 0, fenced: false };

  /** The Node object is there again, and a controller that goes on only now comes too late. */
  const assertProvenAnew = async (takes: Awaited<ReturnType<typeof fencer>>) => {
    node.blockSource.own = madeAgain;
    await bench.hear();
    assert.equal(bench.given(), "unproven");
    await bench.reporter.look();
    assert.equal(bench.given(), "giving");
    assert.equal(await takes(), "changed");
  };

  it("is proven anew when the Node object is gone: it counts as fenced meanwhile", async () => {
    const takes = await fencer();
    node.blockSource.own = undefined;
    await bench.hear();
    assert.equal(bench.given(), "unproven");
    await assertProvenAnew(takes);
  });

  it("is proven anew when only another Node object is seen, also by a process that knew no other", async () => {
    const takes = await fencer();
    await bench.restart();
    assert.equal(bench.given(), "giving", "without an API server the journal counts");
    await assertProvenAnew(takes);
    await bench.restart();
    await bench.hear();
    assert.equal(bench.given(), "giving", "the journal has it of this Node object");
  });

  it("is proven anew when its record is listed before the Node object, which is another one", async () => {
    node.blockSource.own = undefined;
    await bench.restart();
    await bench.hear();
    assert.equal(bench.given(), "giving", "the Node object is not known yet");
    node.blockSource.own = madeAgain;
    await bench.hear();
    assert.equal(bench.given(), "unproven");
  });

  it("is not proven by a write that the fence overtook", async () => {
    await fence(true);
    await fence(false);
    bench.around = async (write) => {
      const result = await write();
      await fence(true);
      return result;
    };
    await bench.reporter.look();
    assert.equal(bench.given(), "unproven");
  });

  it("goes on when the kubelet has registered again after the boot: the journal says that it is this machine's", async () => {
    node.reboot();
    await bench.restart();
    node.blockSource.own = { uid: "made again", seenForMs: 0, fenced: false };
    await bench.hear();
    await bench.reporter.look();
    assert.equal(bench.given(), "giving");
  });
});
