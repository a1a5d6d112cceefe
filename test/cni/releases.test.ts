// SPDX-License-Identifier: Apache-2.0
// What ends attachments: DEL, whatever it looks like and whoever is there to take it, and GC; and STATUS beside them.
import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { eventually } from "../support/eventually.ts";
import { addressesOf, Caller, type Said } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { TestingAgent } from "./testing-agent.ts";

const FULL_DISK = new BerthError("STORE_FULL", "the disk is full");

/** What it is -> a DEL that has it. */
const ODD: readonly [what: string, said: Said][] = [
  ["ipam that is text", { ipam: "garbage" }],
  ["ipam that is a list", { ipam: [{}] }],
  ["ipam that is null", { ipam: null }],
  ["no ipam", { conf: { ipam: undefined } }],
  ["ranges that are none", { ipam: { subnet: 5, ranges: { a: [1] }, routes: "x" } }],
  ["another subnet", { ipam: { subnet: "192.168.0.0/24" } }],
  ["pools that nobody knows", { ipam: { pools: ["gone"], etcdConfig: { etcdURL: 1 } } }],
  ["an unknown version", { conf: { cniVersion: "9.9.9" } }],
  ["a version that is a number", { conf: { cniVersion: 1.1 } }],
  ["no version", { conf: { cniVersion: undefined } }],
  ["unknown arguments", { args: "FOO=BAR;IgnoreUnknown=0" }],
  ["arguments that are none", { args: "FOO;;=;IP=x;IgnoreUnknown=perhaps" }],
  ["a request for another's address", { args: "IP=10.1.2.99" }],
  ["prevResult of another", { conf: { prevResult: { ips: [{ address: "10.1.2.99/24" }] } } }],
  ["prevResult that is none", { conf: { prevResult: [0], runtimeConfig: 1, args: "x" } }],
];

let agent: TestingAgent;
let caller: Caller;

before(buildPlugin);
beforeEach(async () => {
  agent = await TestingAgent.start();
  caller = new Caller(agent.socket);
});
afterEach(() => agent.remove());

async function spooled(): Promise<number> {
  const names = await readdir(join(agent.folder, "run", "spool")).catch(() => []);
  return names.length;
}

describe("a DEL", () => {
  it("C0020 a DEL succeeds again and again: with a netns, with one that is gone, with none", async () => {
    const netns = join(agent.folder, "netns");
    await writeFile(netns, "");
    await caller.add({ netns });
    await caller.add({ netns, ifname: "eth1" });
    await caller.del({ netns });
    await rm(netns);
    for (const path of [netns, "", netns]) await caller.del({ netns: path });
    assert.deepEqual(agent.held, ["10.1.2.3"]);
    await caller.del({ cid: "never-seen", netns: "" });
  });

  it("C0021 a DEL needs neither ranges nor version, arguments or prevResult that make sense", async () => {
    await caller.add({ cid: "other", args: "IP=10.1.2.99" });
    for (const [what, said] of ODD) {
      await caller.add();
      for (const time of ["first", "second"]) {
        await caller.del(said);
        assert.deepEqual(agent.held, ["10.1.2.99"], `the ${time} DEL with ${what}`);
      }
    }
  });

  it("C0022 a DEL without an agent is spooled, and done before the next agent serves", async () => {
    const names = Array.from({ length: 61 }, (_, i) => `c${i}`);
    const last = ["c58", "c59", "c60"];
    const requests = new Map<string, string>(); // container -> its address, asked for
    caller.ipam = { subnet: "10.1.2.0/26" };
    for (const cid of names) requests.set(cid, `IP=${(await caller.add({ cid })).join()}`);
    await agent.stop();
    for (const cid of names) await caller.del({ cid, netns: "" });
    assert.equal(await spooled(), 61);
    const serving = agent.start().then(spooled);
    // They knock all the time, so that some come as soon as the door opens, for what is given back last.
    const knocking = last.map((cid) => untilServed({ cid: `${cid}-next`, args: requests.get(cid) ?? "" }));
    assert.deepEqual(await Promise.all(knocking), ["10.1.2.60/26", "10.1.2.61/26", "10.1.2.62/26"]);
    assert.equal(await serving, 0);
    assert.deepEqual(agent.held.toSorted(), ["10.1.2.60", "10.1.2.61", "10.1.2.62"]);
  });

  /** The answer of the first agent that serves an ADD. */
  async function untilServed(said: Said): Promise<string> {
    return eventually("an agent serves", async () => {
      const run = await caller.call("ADD", said);
      return run.stdout.includes("berth agent is not running") ? undefined : addressesOf(run)[0];
    });
  }

  it("C0023 a DEL that cannot be journalled is spooled, and done when it can", async () => {
    await caller.add();
    await caller.add({ cid: "c2" });
    agent.diskFault = FULL_DISK;
    await caller.del();
    assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.3"]);
    assert.equal(await spooled(), 1);
    const words = "51 the journal cannot be written: the disk is full";
    assert.equal(await caller.refused("STATUS"), words);
    agent.diskFault = undefined;
    await agent.untilHeld("10.1.2.3");
    await eventually("the spool is empty", async () => (await spooled()) === 0 || undefined);
  });

  it("C0024 a DEL that cannot be journalled outlives the agent", async () => {
    await caller.add();
    agent.diskFault = FULL_DISK;
    await caller.del();
    await agent.crash();
    agent.diskFault = undefined;
    await agent.start();
    assert.deepEqual(agent.held, []);
    assert.equal(await spooled(), 0);
  });

  it("C0025 a DEL that was spooled does not end what was attached after it", async () => {
    await caller.add();
    agent.diskFault = FULL_DISK;
    await caller.del();
    agent.diskFault = undefined;
    const given = await caller.add({ netns: "/nowhere/netns/next" });
    await eventually("the spool is empty", async () => (await spooled()) === 0 || undefined);
    assert.deepEqual(
      agent.held.map((address) => `${address}/24`),
      given,
    );
    await caller.del();
    assert.deepEqual(agent.held, []);
  });
});

describe("STATUS", () => {
  it("C0026 STATUS says 50 without an agent, and nothing with one, be a range exhausted", async () => {
    await agent.stop();
    const words = `50 berth agent is not running (no socket at ${agent.socket})`;
    assert.equal(await caller.refused("STATUS"), words);
    await agent.start();
    caller.ipam = { subnet: "10.1.2.0/30" };
    await caller.add();
    assert.match(await caller.refused("ADD", { cid: "c2" }), /^107 /);
    await caller.silently("STATUS");
  });

  it("C0027 STATUS says 50 within a limit of its own when the agent hangs", async () => {
    await agent.stop();
    const sockets: Socket[] = [];
    const hanging = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => hanging.listen(agent.socket, resolve));
    try {
      assert.equal(await caller.refused("STATUS"), "50 berth agent did not answer within 1500 ms");
      assert.equal(sockets.length, 1);
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => hanging.close(resolve));
    }
  });
});

describe("GC", () => {
  const KEY = "cni.dev/valid-attachments";
  const OLD_KEY = "cni.dev/attachments";
  const c1 = { containerID: "c1", ifname: "eth0" };

  beforeEach(async () => {
    await caller.add();
    await caller.add({ ifname: "eth1" });
    await caller.add({ cid: "c2" });
  });

  function gc(fields: object, said: Said = {}): Promise<void> {
    return caller.silently("GC", { ...said, conf: { ...fields, ...said.conf } });
  }

  it("C0028 GC without a list frees nothing, and says so", async () => {
    const { rc, stdout, stderr } = await caller.call("GC");
    assert.deepEqual([rc, stdout], [0, ""]);
    assert.equal(stderr, "berth: GC without cni.dev/valid-attachments frees nothing\n");
    assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.3", "10.1.2.4"]);
  });

  it("C0029 GC frees what is not in the list, by container and interface", async () => {
    for (const _time of ["first", "second"]) {
      await gc({ [KEY]: [c1, { containerID: "unknown", ifname: "eth0" }] });
      assert.deepEqual(agent.held, ["10.1.2.2"]);
    }
    await agent.restart();
    assert.deepEqual(agent.held, ["10.1.2.2"]);
  });

  it("C0030 GC with an empty list frees all of this network and nothing of another", async () => {
    const others: readonly Said[] = [
      { conf: { name: "other" } },
      { ipam: { subnet: "10.1.2.0/29", dataDir: "/other" } },
    ];
    for (const said of others) await caller.add(said);
    for (const none of [[], null]) {
      await gc({ [KEY]: none });
      assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.2"]);
      for (const said of others) await caller.silently("CHECK", said);
      await caller.add({ cid: "c3" });
    }
  });

  it("C0031 GC reads the list under the name that it had first, if it is not there under the other", async () => {
    await gc({ [KEY]: [c1, { containerID: "c2", ifname: "eth0" }], [OLD_KEY]: [] });
    assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.4"]);
    await gc({ [OLD_KEY]: [c1] });
    assert.deepEqual(agent.held, ["10.1.2.2"]);
    await gc({ [KEY]: [], [OLD_KEY]: [c1] });
    assert.deepEqual(agent.held, []);
  });

  it("C0032 GC with a malformed list is refused and frees nothing", async () => {
    const lists: readonly [list: unknown, code: number][] = [
      ["c1", 6],
      [{ containerID: "c1", ifname: "eth0" }, 6],
      [[c1, "c2"], 6],
      [[c1, null], 6],
      [[{ ...c1, containerID: 5 }], 6],
      [[c1, {}], 7],
      [[{ containerID: "c1" }], 7],
      [[{ ifname: "eth0" }], 7],
    ];
    for (const key of [KEY, OLD_KEY]) {
      for (const [list, code] of lists) {
        const words = await caller.refused("GC", { conf: { [key]: list } });
        assert.ok(words.startsWith(`${code} `) && words.includes(key), words);
      }
    }
    assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.3", "10.1.2.4"]);
  });

  it("C0033 GC keeps a sandbox that can be seen, though it is not in the list", async () => {
    const netns = join(agent.folder, "netns");
    await writeFile(netns, "");
    await caller.add({ cid: "c3", netns });
    await gc({ [KEY]: [] });
    assert.deepEqual(agent.held, ["10.1.2.5"]);
    await rm(netns);
    await gc({ [KEY]: [] });
    assert.deepEqual(agent.held, []);
  });
});
