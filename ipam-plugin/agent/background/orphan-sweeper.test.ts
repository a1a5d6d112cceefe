// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { createRandom } from "../../../system/random.ts";
import { claimIn } from "../claims/claim-place.ts";
import { linuxHost } from "../journal/host.ts";
import { BlocksBench } from "../testing/blocks-bench.ts";
import { claimResult, NodeBench, podArgs } from "../testing/node-bench.ts";
import { ifUnused, OrphanSweeper, releasePreviousBoot } from "./orphan-sweeper.ts";

let node: NodeBench;
let sweep: OrphanSweeper;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    sweep = new OrphanSweeper(node.parts);
    node.claimSource.answers.set("shop/db-0", claimResult("shop/db-0", "10.20.0.10/24"));
  });
  afterEach(async () => {
    await sweep.close();
    await node.close();
  });
}

const claimed = { cid: "claimed", args: podArgs("db-0", "u1") };
const states = () =>
  [...node.parts.attachments.all()].map(({ containerID, state }) => `${containerID} ${state}`).sort();

describe("after a reboot", () => {
  setUp();

  it("everything of the other boot is free, and claims are told of", async () => {
    await node.add({ cid: "a" });
    await node.add(claimed);
    node.reboot();
    await node.restart();
    await releasePreviousBoot(node.parts);
    assert.deepEqual(node.held, []);
    assert.deepEqual(
      node.parts.attachments.unreported().map(({ containerID }) => containerID),
      ["claimed"],
    );
    await node.restart();
    await releasePreviousBoot(node.parts);
    assert.deepEqual(node.held, []);
  });

  it("tombstones of the other boot refuse nobody: its clock began elsewhere", async () => {
    await node.del({ cid: "a" });
    node.reboot();
    await node.restart();
    await releasePreviousBoot(node.parts);
    assert.equal((await node.add({ cid: "a", startNs: 1n })).length, 1);
  });

  it("of the agent alone, everything stays", async () => {
    await node.add({ cid: "a" });
    await node.add(claimed);
    await node.restart();
    await releasePreviousBoot(node.parts);
    assert.deepEqual(node.held, ["10.1.2.2", "10.20.0.10"]);
  });
});

describe("a claim that another journal's sandbox has", () => {
  setUp();

  const attachment = { node: "n", containerID: "old", interface: "eth0", podUID: "u1", since: 0 };
  const reported = { ...attachment, detached: false, netns: "/run/netns/old", bootID: "boot-1" };

  it("is not absent before its network namespace is gone", async () => {
    node.claimSource.used = ["shop/db-0"];
    node.claimSource.sandboxes.set("shop/db-0", reported);
    node.host.present.add("/run/netns/old");
    await sweep.look();
    node.host.present.delete("/run/netns/old");
    node.host.unknown.add("/run/netns/old");
    await sweep.look();
    assert.deepEqual(node.claimSource.freed, []);
    node.host.unknown.delete("/run/netns/old");
    await sweep.look();
    assert.deepEqual(node.claimSource.freed, ["shop/db-0"]);
  });

  it("is not for an agent to give back whose journal another one has taken since", async () => {
    const before = node.parts;
    await before.journal.take(createRandom()); // the bench's processes have one token
    await node.restart();
    await node.add(claimed); // where nobody can see its namespace
    node.claimSource.used = ["shop/db-0"];
    const takenOver = { code: "NOT_READY", message: /taken over the journal/ };
    await assert.rejects(new OrphanSweeper(before).look(), takenOver);
    const giveBack = () => node.claimSource.absent("shop/db-0");
    await assert.rejects(ifUnused("shop/db-0", before, giveBack), takenOver);
    assert.deepEqual(node.claimSource.freed, []);
  });

  it("is not given back either where that befalls while the claim is read", async () => {
    const before = node.parts;
    await before.journal.take(createRandom());
    node.claimSource.used = ["shop/db-0"];
    node.claimSource.reading = () => node.restart();
    await new OrphanSweeper(before).look();
    assert.deepEqual([before.journal.isOurs, node.claimSource.freed], [false, []]);
  });

  it("is absent when it is of another boot, or when its DEL came", async () => {
    node.claimSource.used = ["shop/db-0"];
    node.host.present.add("/run/netns/old");
    node.claimSource.sandboxes.set("shop/db-0", { ...reported, bootID: "boot-0" });
    await sweep.look();
    node.claimSource.sandboxes.set("shop/db-0", reported);
    await sweep.look();
    await node.del({ cid: "old" });
    await sweep.look();
    assert.deepEqual(node.claimSource.freed, ["shop/db-0", "shop/db-0"]);
  });
});

describe("a sandbox that went without a DEL", () => {
  setUp();

  it("is freed when its netns was missing twice", async () => {
    node.host.present.add("/run/netns/a").add("/run/netns/claimed");
    await node.add({ cid: "a" });
    await node.add(claimed);
    node.host.present.clear();
    await sweep.look();
    assert.deepEqual(node.held, ["10.1.2.2", "10.20.0.10"]);
    await sweep.look();
    assert.deepEqual(node.held, []);
    assert.deepEqual(
      node.parts.attachments.unreported().map(({ containerID }) => containerID),
      ["claimed"],
    );
  });

  it("is kept when the netns comes back, when its folder cannot be seen, or when it never was", async () => {
    node.host.present.add("/run/netns/back").add("/run/netns/unknown");
    for (const cid of ["back", "unknown", "never"]) await node.add({ cid });
    node.host.present.clear();
    node.host.unknown.add("/run/netns/unknown");
    await sweep.look();
    node.host.present.add("/run/netns/back");
    await sweep.look();
    node.host.present.clear();
    await sweep.look();
    assert.equal(node.held.length, 3);
  });

  it("is kept until its DEL or a reboot when it is named by a process that has ended", async () => {
    const [a, b] = ["/proc/4194998/ns/net", "/proc/4194999/ns/net"];
    node.host.look = async (path) => (node.host.present.has(path) ? "present" : await linuxHost.look(path));
    node.host.present.add(a).add(b);
    await node.add({ cid: "a", netns: a });
    await node.add({ cid: "b", netns: b });
    node.host.present.clear();
    for (const _ of [1, 2, 3]) await sweep.look();
    const listed = { cid: "", ifname: "", netns: "", conf: { "cni.dev/valid-attachments": [] } };
    assert.equal((await node.call("GC", listed)).exitStatus, 0);
    assert.equal(node.held.length, 2);
    await node.del({ cid: "a", netns: "" });
    assert.equal(node.held.length, 1);
    node.reboot();
    await node.restart();
    await releasePreviousBoot(node.parts);
    assert.deepEqual(node.held, []);
  });

  it("is kept when only the link has gone that led to a process's namespace", async () => {
    const folder = mkdtempSync(join(tmpdir(), "netns-"));
    const netns = join(folder, "web");
    symlinkSync(`/proc/${process.pid}/ns/net`, netns);
    node.host.look = (path, was) => linuxHost.look(path, was);
    node.host.identity = (path) => linuxHost.identity(path);
    await node.add({ cid: "web", netns });
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    for (const _ of [1, 2, 3]) await sweep.look();
    const listed = { cid: "", ifname: "", netns: "", conf: { "cni.dev/valid-attachments": [] } };
    assert.equal((await node.call("GC", listed)).exitStatus, 0);
    assert.equal(node.held.length, 1);
    rmSync(folder, { recursive: true });
  });

  it("is freed when another namespace was at its path twice, and one whose ADD was repeated there is not", async () => {
    node.host.present.add("/run/netns/web").add("/run/netns/same");
    await node.add({ cid: "first", netns: "/run/netns/web" });
    await node.add({ cid: "same" });
    for (const netns of ["/run/netns/web", "/run/netns/same"]) node.host.renewals.set(netns, 1);
    await node.add({ cid: "second", netns: "/run/netns/web" });
    await node.add({ cid: "same" });
    await sweep.look();
    assert.equal(node.held.length, 3);
    await node.restart();
    sweep = new OrphanSweeper(node.parts);
    for (const _ of [1, 2, 3]) await sweep.look();
    assert.deepEqual(states(), ["first detached", "same attached", "second attached"]);
  });

  it("is freed though its ADD was repeated when it was going already", async () => {
    node.host.present.add("/run/netns/a");
    await node.add({ cid: "a" });
    node.host.present.clear();
    await node.add({ cid: "a" });
    await sweep.look();
    await sweep.look();
    assert.deepEqual(node.held, []);
  });

  it("is not taken for the one that has its place now", async () => {
    node.host.present.add("/run/netns/a");
    await node.add({ cid: "a" });
    node.host.present.clear();
    await sweep.look();
    await node.del({ cid: "a" });
    node.host.present.add("/run/netns/a");
    const given = await node.add({ cid: "a" });
    node.host.present.clear();
    await sweep.look();
    assert.deepEqual(node.held, given);
  });

  it("is looked for every half minute", async () => {
    node.host.present.add("/run/netns/a");
    await node.add({ cid: "a" });
    node.host.present.clear();
    sweep.start();
    for (let i = 0; i < 1_000 && node.clock.sleeping === 0; i++) await new Promise(setImmediate);
    assert.equal(node.held.length, 1);
    node.clock.advance(30_000);
    for (let i = 0; i < 1_000 && node.held.length > 0; i++) await new Promise(setImmediate);
    assert.deepEqual(node.held, []);
  });
});

describe("what counts as in use on this node", () => {
  setUp();

  it("is said to be absent when no sandbox has it, and not while one is being given it", async () => {
    await node.add(claimed);
    const busy = Promise.withResolvers<void>();
    const turn = node.parts.locks.run("claim\0shop/coming", () => busy.promise);
    node.claimSource.used = ["shop/db-0", "shop/lost", "shop/coming"];
    const look = sweep.look();
    for (let i = 0; i < 100; i++) await new Promise(setImmediate);
    assert.deepEqual(node.claimSource.freed, ["shop/lost"]);
    node.claimSource.answers.set("shop/coming", claimResult("shop/coming", "10.20.0.11/24"));
    busy.resolve();
    await turn;
    await look;
    assert.deepEqual(node.claimSource.freed, ["shop/lost", "shop/coming"]);
  });

  it("is said to be absent though others cannot be looked at, and asked of no etcd again that is away", async () => {
    const faults = new Map([
      ["shop/corrupt", new BerthError("STATE_CORRUPT", "claim shop/corrupt cannot be decoded")],
      [claimIn("etcd-away", "lan/one"), new BerthError("STORE_UNAVAILABLE", "etcd cannot be reached")],
    ]);
    const asked: string[] = [];
    node.claimSource.lastSandboxes = async (claim) => {
      asked.push(claim);
      const fault = faults.get(claim);
      if (fault !== undefined) throw fault;
      return [];
    };
    const [one, two, other] = [
      claimIn("etcd-away", "lan/one"),
      claimIn("etcd-away", "lan/two"),
      claimIn("etcd-up", "lan/one"),
    ];
    node.claimSource.used = ["shop/corrupt", "shop/lost", one, two, other];
    await sweep.look();
    assert.deepEqual(node.claimSource.freed, ["shop/lost", other]);
    assert.ok(!asked.includes(two));
  });

  it("is said to be absent also while a sandbox that is gone cannot be journalled, whose disk is full", async () => {
    node.host.present.add("/run/netns/a");
    await node.add({ cid: "a" });
    node.host.present.clear();
    await sweep.look();
    node.claimSource.used = ["shop/lost"];
    node.diskFault = new BerthError("STORE_FULL", "the disk is full");
    await assert.rejects(sweep.look(), { code: "STORE_FULL" });
    assert.deepEqual(node.claimSource.freed, ["shop/lost"]);
    node.diskFault = undefined;
    await sweep.look();
    assert.deepEqual(node.held, []);
  });
});

describe("tombstones", () => {
  setUp();

  it("are forgotten after ten minutes, once whoever has to know was told", async () => {
    await node.add({ cid: "a" });
    await node.add(claimed);
    await node.add({ cid: "stays" });
    await node.del({ cid: "a" });
    await node.del(claimed);
    await node.del({ cid: "never" });
    node.clock.advance(600_000);
    await sweep.look();
    assert.deepEqual(states(), ["a detached", "claimed detached", "never detached", "stays attached"]);
    node.clock.advance(1);
    await sweep.look();
    assert.deepEqual(states(), ["claimed detached", "stays attached"]);
    node.parts.detachReporter.start();
    for (let i = 0; i < 1_000 && node.parts.attachments.unreported().length > 0; i++)
      await new Promise(setImmediate);
    await sweep.look();
    assert.deepEqual(states(), ["stays attached"]);
    await node.restart();
    assert.deepEqual(states(), ["stays attached"]);
  });

  it("of a block's address are kept for as long as its pool has it cool, by the next process, too", async () => {
    const bench = await BlocksBench.open();
    bench.pool("db", "10.0.0.0/24", { ipv4: 32 }, { cooldown: "1h" });
    await bench.grant("10.0.0.4/32");
    const look = () => new OrphanSweeper(bench.parts).look();
    const freed = () => [...bench.parts.attachments.all()].map(({ containerID }) => containerID);
    try {
      await bench.add({ cid: "c1" });
      await bench.del({ cid: "c1" });
      bench.clock.advance(1_800_000);
      await look();
      await bench.restart();
      await bench.hearBlocks();
      await bench.del({ cid: "another" }); // whatever is freed
      assert.match(await bench.refusal({ cid: "c2" }), /cool/);
      bench.clock.advance(1_800_001);
      await look();
      assert.deepEqual(freed(), []);
      assert.deepEqual(await bench.add({ cid: "c3" }), ["10.0.0.4"]);
    } finally {
      await bench.close();
    }
  });
});
