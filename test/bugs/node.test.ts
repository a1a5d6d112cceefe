// SPDX-License-Identifier: Apache-2.0
// Bugs that other IPAM systems had on the node (docs/reliability.md), on the agent's verbs and its journal.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { isRefusal } from "../../allocator/base/errors.ts";
import { parsePool } from "../../allocator/pool/pool.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { releasePreviousBoot } from "../../ipam-plugin/agent/background/orphan-sweeper.ts";
import type { Answer } from "../../ipam-plugin/agent/rpc/connection.ts";
import {
  addressesOf,
  claimResult,
  errorOf,
  NodeBench,
  podArgs,
} from "../../ipam-plugin/agent/testing/node-bench.ts";

/** The answer, if there is one without any time passing. */
async function answeredAtOnce(answering: Promise<Answer>): Promise<Answer | undefined> {
  let answer: Answer | undefined;
  void answering.then((given) => {
    answer = given;
  });
  for (let i = 0; i < 200 && answer === undefined; i++) await turn();
  return answer;
}

describe("bugs of others, on the node", () => {
  let node: NodeBench;

  beforeEach(async () => {
    node = await NodeBench.open();
  });
  afterEach(() => node.close());

  function sandbox(cid: string, uid: string) {
    node.claimSource.answers.set("shop/mysql-0", claimResult("shop/mysql-0", "10.20.0.70/24"));
    return { cid, args: podArgs("mysql-0", uid), netns: `/run/netns/${cid}` };
  }

  it("B3 a pod of the same name and another UID waits for the sandbox of the first", async () => {
    node.host.present.add("/run/netns/old");
    await node.add(sandbox("old", "uid-1"));
    const adding = node.call("ADD", sandbox("new", "uid-2"));
    assert.equal(await answeredAtOnce(adding), undefined);
    node.clock.advance(5_000);
    assert.equal(errorOf(await adding).code, 11);
    await node.del(sandbox("old", "uid-1"));
    assert.deepEqual(await node.add(sandbox("new", "uid-2")), ["10.20.0.70"]);
  });

  it("B3 the late end of the first one's sandbox is nothing to the second", async () => {
    node.host.present.add("/run/netns/old");
    await node.add(sandbox("old", "uid-1"));
    node.host.present.delete("/run/netns/old");
    await node.add(sandbox("new", "uid-2"));
    await node.del(sandbox("old", "uid-1"));
    await node.del(sandbox("old", "uid-1"));
    assert.deepEqual(node.held, ["10.20.0.70"]);
    assert.deepEqual(node.parts.attachments.unreported(), []);
  });

  it("B4 a sandbox that is made again without a DEL has its pod's address, 32 times over", async () => {
    for (let i = 0; i < 32; i++) {
      node.host.present.add(`/run/netns/box-${i}`);
      const answer = await answeredAtOnce(node.call("ADD", sandbox(`box-${i}`, "uid-1")));
      assert.deepEqual(answer && addressesOf(answer), ["10.20.0.70"], `box-${i}`);
    }
    assert.deepEqual(node.held, ["10.20.0.70"]);
    assert.equal(node.parts.attachments.attached().length, 1);
  });

  it("B6 an agent that has just started knows what it gave away before", async () => {
    const given = [];
    for (const cid of ["a", "b", "c"]) given.push(...(await node.add({ cid })));
    await node.restart();
    for (const cid of ["d", "e"]) given.push(...(await node.add({ cid })));
    assert.equal(new Set(given).size, 5);
    assert.deepEqual(await node.add({ cid: "a" }), given.slice(0, 1));
  });

  it("B9 an ADD that cannot go on ends in its time, and keeps nobody waiting longer", async () => {
    node.claimSource.finding = new Promise(() => {});
    const adding = node.call("ADD", sandbox("a", "uid-1"));
    assert.equal(await answeredAtOnce(adding), undefined);
    node.clock.advance(25_000);
    assert.equal(errorOf((await answeredAtOnce(adding)) ?? assert.fail("it still waits")).code, 11);
  });

  it("B9 a DEL does not wait for the ADD of its sandbox", async () => {
    node.claimSource.finding = new Promise(() => {});
    const adding = node.call("ADD", sandbox("a", "uid-1"));
    assert.equal(await answeredAtOnce(adding), undefined);
    const deleting = node.call("DEL", sandbox("a", "uid-1"));
    assert.equal((await answeredAtOnce(deleting))?.exitStatus, 0);
    assert.equal(errorOf(await adding).code, 11);
    assert.deepEqual(node.held, []);
  });

  it("B11 what another boot attached is free again", async () => {
    await node.add({ cid: "a" });
    node.reboot();
    await node.restart();
    await releasePreviousBoot(node.parts);
    assert.deepEqual(node.held, []);
  });

  it("B11 every commit is on the disk before it is answered, and an empty file is no journal", async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-bugs-"));
    try {
      const database = openDatabase(join(folder, "berth.db"));
      const setting = (name: string) =>
        database.read((sql) => Object.values(sql.get(`PRAGMA ${name}`) ?? {})[0]);
      assert.deepEqual([setting("journal_mode"), setting("synchronous")], ["wal", 2]); // 2: FULL
      database.close();
      writeFileSync(join(folder, "empty.db"), "");
      assert.throws(() => openDatabase(join(folder, "empty.db")), { code: "CONFIG_INVALID" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("B13 what could not be written is not known either", async () => {
    node.diskFault = new Error("disk");
    assert.notEqual((await node.call("ADD", { cid: "a" })).exitStatus, 0);
    assert.deepEqual([node.held, node.parts.attachments.attached()], [[], []]);
    assert.equal(errorOf(await node.call("CHECK", { cid: "a" })).code, 151);
    node.diskFault = undefined;
    assert.equal((await node.add({ cid: "a" })).length, 1);
  });

  it("B16 an address of a pool that a range of this node has given away is not given again", async () => {
    const given = await node.add({ cid: "a", ipam: { ranges: [[{ subnet: "10.20.0.68/30" }]] } });
    assert.deepEqual(given, ["10.20.0.70"]);
    const answer = await node.call("ADD", sandbox("b", "uid-1"));
    assert.match(errorOf(answer).msg, /^10\.20\.0\.70 is in use on this node: container a \(eth0\) has it/);
  });

  it("B16 an address of a pool for the same network is not given from a range", async () => {
    const pool = parsePool({ name: "db", spec: { ranges: [{ cidr: "10.20.0.0/24", to: "10.20.0.70" }] } });
    assert.ok(!isRefusal(pool));
    node.blockSource.stored.set("db", pool);
    const ranges = [[{ subnet: "10.20.0.0/24", rangeStart: "10.20.0.70", rangeEnd: "10.20.0.71" }]];
    assert.deepEqual(await node.add({ cid: "a", ipam: { ranges } }), ["10.20.0.71"]);
  });

  it("B17 a range gives its last address, then says that it is full, and gives again what is let go", async () => {
    const ipam = { subnet: "10.1.2.0/29" }; // 6 addresses, one of them the gateway's
    const given: string[] = [];
    for (const cid of ["a", "b", "c", "d", "e"]) given.push(...(await node.add({ cid, ipam })));
    assert.equal(new Set(given).size, 5);
    assert.equal(errorOf(await node.call("ADD", { cid: "f", ipam })).code, 107);
    // The last one is where the next search begins, and ends.
    for (const [cid, next] of ["aA", "cC", "eE", "Ee"]) {
      await node.del({ cid: cid ?? "", ipam });
      const address = given["abcde".indexOf((cid ?? "").toLowerCase())];
      assert.deepEqual(await node.add({ cid: next ?? "", ipam }), [address]);
    }
  });

  it("B18 an id with the end of a line in it is refused, and one that holds a whole path", async () => {
    for (const cid of ["a\r\nb", "../a", "a/b", "a b", "-a"]) {
      assert.equal(errorOf(await node.call("ADD", { cid })).code, 4, cid);
    }
    assert.deepEqual(node.held, []);
  });

  it("B18 a DEL that fails can be sent again, and ADDs are served on", async () => {
    await node.add({ cid: "a" });
    node.diskFault = new Error("disk");
    assert.notEqual((await node.call("DEL", { cid: "a" })).exitStatus, 0);
    node.diskFault = undefined;
    assert.equal((await answeredAtOnce(node.call("DEL", { cid: "a" })))?.exitStatus, 0);
    assert.equal((await answeredAtOnce(node.call("ADD", { cid: "b" })))?.exitStatus, 0);
    assert.equal(node.held.length, 1);
  });
});
