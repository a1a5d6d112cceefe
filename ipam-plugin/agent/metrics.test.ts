// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { exposed } from "../../test/support/exposed.ts";
import { measureNode } from "./metrics.ts";
import { claimResult, NodeBench, podArgs } from "./testing/node-bench.ts";

let node: NodeBench;
let folder: string;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    folder = await mkdtemp(join(tmpdir(), "berth-measure-"));
  });
  afterEach(async () => {
    await node.close();
    await rm(folder, { recursive: true });
  });
}

function measured() {
  const { metrics, of } = exposed();
  measureNode({ ...node.parts, metrics }, join(folder, "spool"));
  return of;
}

describe("what is measured of a node", () => {
  setUp();

  it("is who has addresses, and whose end is not told yet", async () => {
    const of = measured();
    node.claimSource.answers.set("shop/db-0", claimResult("shop/db-0", "10.20.0.10/24"));
    const claimed = { cid: "claimed", args: podArgs("db-0", "u1") };
    await node.add({ cid: "a" });
    await node.add(claimed);
    assert.deepEqual(await of("berth_agent_attachments"), [
      '{source="claim"} 1',
      '{source="block"} 0',
      '{source="ranges"} 1',
      '{source="static"} 0',
    ]);
    await node.del(claimed);
    assert.deepEqual(await of("berth_agent_untold_detachments"), ["1"]);
  });

  it("is whether the journal can be written", async () => {
    const of = measured();
    assert.deepEqual(await of("berth_journal_failing"), ["0"]);
    node.diskFault = new Error("the disk is full");
    assert.equal((await node.call("ADD")).exitStatus, 1);
    assert.deepEqual(await of("berth_journal_failing"), ["1"]);
    node.diskFault = undefined;
  });

  it("is what waits in the spool, and for how long; a folder that is not there holds nothing", async () => {
    const of = measured();
    assert.deepEqual(await of("berth_agent_spooled_releases"), ['{state="waiting"} 0', '{state="bad"} 0']);
    assert.deepEqual(await of("berth_agent_spool_oldest_seconds"), ["0"]);
    const spool = join(folder, "spool");
    await mkdir(spool);
    for (const name of ["1.del", "2.del", "3.del.bad", ".4.del"]) await writeFile(join(spool, name), "");
    const then = (node.clock.now() - 90_000) / 1000;
    for (const name of ["1.del", "3.del.bad"]) await utimes(join(spool, name), then, then);
    assert.deepEqual(await of("berth_agent_spooled_releases"), ['{state="waiting"} 2', '{state="bad"} 1']);
    assert.deepEqual(await of("berth_agent_spool_oldest_seconds"), ["90"]);
  });
});
