// SPDX-License-Identifier: Apache-2.0
// Calls that fail, come too late or are cut off: what is held afterwards.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { claimResult, podArgs, ScriptedClaims } from "../../ipam-plugin/agent/testing/node-bench.ts";
import { BINARY, follow } from "../../ipam-plugin/client/testing/client-process.ts";
import { eventually } from "../support/eventually.ts";
import { addressesOf, Caller, errorOf, type Said } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { TestingAgent } from "./testing-agent.ts";

/** Room for one address beside the gateway. */
const LAST_ONE = { subnet: "10.1.2.0/30" };

let claimSource: ScriptedClaims;
let agent: TestingAgent;
let caller: Caller;

before(buildPlugin);
beforeEach(async () => {
  claimSource = new ScriptedClaims();
  agent = await TestingAgent.start(claimSource);
  caller = new Caller(agent.socket);
});
afterEach(async () => {
  caller.close();
  await agent.remove();
});

describe("an ADD that fails", () => {
  it("C0001 an ADD of which one range set is full holds nothing of the others", async () => {
    const [wide, full] = [[{ subnet: "10.1.3.0/24" }], [LAST_ONE]];
    await caller.add({ cid: "c0", ipam: { ranges: [full] } });
    const words =
      "107 failed to allocate for range 1: no IP addresses available in range set: 10.1.2.1-10.1.2.2";
    for (const cid of ["c1", "c1", "c2"])
      assert.equal(await caller.refused("ADD", { cid, ipam: { ranges: [wide, full] } }), words);
    assert.deepEqual(agent.held, ["10.1.2.2"]);
    await agent.restart();
    assert.deepEqual(agent.held, ["10.1.2.2"]);
    // Nothing was skipped either.
    assert.deepEqual(await caller.add({ ipam: { ranges: [wide] } }), ["10.1.3.2/24"]);
  });

  it("C0002 an ADD that began before the DEL of its sandbox is refused and holds nothing", async () => {
    const late = await caller.begin("ADD");
    await caller.del();
    assert.equal(errorOf(await late.finish()), "150 the sandbox was deleted while this ADD was under way");
    assert.deepEqual(agent.held, []);
  });

  it("C0003 a repeated ADD that began before the DEL is refused and holds nothing", async () => {
    await caller.add();
    const late = await caller.begin("ADD");
    await caller.del();
    await caller.del({ netns: "" });
    assert.match(errorOf(await late.finish()), /^150 /);
    assert.deepEqual(agent.held, []);
  });

  it("C0004 a new ADD after the DEL is served", async () => {
    assert.deepEqual(await caller.add(), ["10.1.2.2/24"]);
    await caller.del();
    assert.deepEqual(await caller.add(), ["10.1.2.3/24"]);
    await caller.del({ netns: "" });
    await agent.restart();
    assert.deepEqual(await caller.add(), ["10.1.2.4/24"]);
  });
});

describe("an ADD that is cut off", () => {
  const pod: Said = { cid: "c2", args: podArgs("db-0", "u1") };

  beforeEach(async () => {
    await caller.add();
    await caller.add({ ifname: "eth1" });
    agent.atGate = 0;
  });

  /** The agent works on it, until it is let go on. */
  async function beginAtGate(said: Said = { cid: "c2" }) {
    const { promise, resolve: open } = Promise.withResolvers<void>();
    agent.gate = promise;
    const { child, finish } = await caller.begin("ADD", said);
    const ended = finish();
    await eventually("the agent works on it", () => agent.atGate > 0 || undefined);
    return { child, ended, open };
  }

  it("C0005 an ADD that is killed before it was answered gives back what is its own", async () => {
    const { child, ended, open } = await beginAtGate();
    child.kill("SIGKILL");
    await ended;
    await caller.silently("STATUS"); // the agent has seen that it is gone, too
    open();
    await agent.restart(); // it ends what is under way first
    assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.3"]);
  });

  it("C0006 an ADD that is killed before it was answered gives its claim back", async () => {
    claimSource.answers.set("shop/db-0", claimResult("shop/db-0", "10.9.0.1/24"));
    const { promise, resolve: open } = Promise.withResolvers<void>();
    claimSource.gate = promise;
    const { child, finish } = await caller.begin("ADD", pod);
    const ended = finish();
    await eventually("the claim source works on it", () => claimSource.asked.length > 0 || undefined);
    child.kill("SIGKILL");
    await ended;
    await caller.silently("STATUS"); // the agent has seen that it is gone, too
    open();
    await eventually("the claim source is told", () => claimSource.reported.length > 0 || undefined);
    const attachment = { network: "net", containerID: "c2", interface: "eth0" };
    const ref = { namespace: "shop", name: "db-0", uid: "u1" };
    assert.deepEqual(claimSource.reported, [{ claim: "shop/db-0", pod: ref, attachment }]);
    assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.3"]);
    assert.deepEqual(await caller.add({ ...pod, cid: "c3" }), ["10.9.0.1/24"]);
  });

  it("C0007 an ADD that is killed when its answer was on the way gives back what is its own", async () => {
    const { child, ended, open } = await beginAtGate();
    child.kill("SIGSTOP");
    open();
    await agent.untilHeld("10.1.2.2", "10.1.2.3", "10.1.2.4");
    child.kill("SIGKILL");
    await ended;
    await agent.untilHeld("10.1.2.2", "10.1.2.3");
    await agent.restart();
    assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.3"]);
  });

  it("C0008 an ADD whose answer nobody reads gives back what is its own", async () => {
    const { child, finish } = await caller.begin("ADD", { cid: "c2" });
    child.stdout?.destroy();
    assert.deepEqual(await finish(), { rc: 1, stdout: "", stderr: "" });
    await agent.untilHeld("10.1.2.2", "10.1.2.3");
  });

  it("C0009 an ADD that outlives whoever started it gives back what is its own", async () => {
    const { promise, resolve: open } = Promise.withResolvers<void>();
    agent.gate = promise;
    const said = { cid: "c2" };
    const [input, output] = [join(agent.folder, "stdin"), join(agent.folder, "stdout")];
    await writeFile(input, caller.stdin(said));
    const env = { ...caller.environment("ADD", said), BERTH_SOCKET: agent.socket };
    const script = '"$0" <"$1" >"$2" & wait';
    const parent = follow(spawn("/bin/sh", ["-c", script, BINARY, input, output], { env }));
    await eventually("the agent works on it", () => agent.atGate > 0 || undefined);
    parent.process.kill("SIGKILL");
    await once(parent.process, "exit");
    open();
    await parent.finished; // its pipes are those of the plugin
    await agent.untilHeld("10.1.2.2", "10.1.2.3");
  });

  it("C0010 a repeated ADD whose answer nobody reads leaves what the first one was given", async () => {
    for (const _time of ["by one agent", "and by the next"]) {
      const { child, finish } = await caller.begin("ADD");
      child.stdout?.destroy();
      assert.equal((await finish()).rc, 1);
      await agent.restart();
      assert.deepEqual(agent.held, ["10.1.2.2", "10.1.2.3"]);
    }
  });
});

describe("ADDs", () => {
  it("C0011 of 115 ADDs at once right after the start as many are served as there are addresses, 110", async () => {
    const { promise, resolve: open } = Promise.withResolvers<void>();
    agent.gate = promise;
    caller.ipam = { subnet: "10.1.2.0/24", rangeStart: "10.1.2.101", rangeEnd: "10.1.2.210" };
    await agent.restart();
    const names = Array.from({ length: 115 }, (_, i) => `c${i}`);
    const env = { BERTH_TIMEOUT_MS: "600000" }; // so many at once take as long as they take
    const adding = names.map((cid) => caller.call("ADD", { cid, env }));
    await eventually("all are under way", () => agent.atGate === 115 || undefined);
    open(); // and all choose in the same moment
    const runs = await Promise.all(adding);
    const given = runs.map((run) => (run.rc === 0 ? addressesOf(run).join() : undefined));
    const range = Array.from({ length: 110 }, (_, i) => `10.1.2.${101 + i}`);
    assert.deepEqual(
      given.filter((address) => address !== undefined).toSorted(),
      range.map((a) => `${a}/24`),
    );
    assert.deepEqual(agent.held.toSorted(), range);
    const checks = names.map((cid, i) => ({
      ...{ cid, env },
      conf: { prevResult: { ips: [{ address: given[i] }] } },
    }));
    const attached = checks.filter((_, i) => given[i] !== undefined);
    await Promise.all(attached.map((said) => caller.silently("CHECK", said)));
  });

  it("C0012 an address that is asked for in several ways and notations is given once", async () => {
    const ipam = { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "2001:db8::/64" }]] };
    const conf = {
      runtimeConfig: { ips: ["10.1.2.77/24", "2001:db8:0:0::77"] },
      args: { cni: { ips: ["10.1.2.77", "2001:DB8::0077/64"] } },
    };
    const args = "IP=10.1.2.77,::ffff:10.1.2.77,2001:db8::77/64";
    assert.deepEqual(await caller.add({ ipam, conf, args }), ["10.1.2.77/24", "2001:db8::77/64"]);
    assert.deepEqual(agent.held, ["10.1.2.77", "2001:db8::77"]);
    assert.deepEqual(await caller.add({ ipam, args }), ["10.1.2.77/24", "2001:db8::77/64"]);
    const two = { cid: "c2", ipam, conf, args: "IP=10.1.2.78" };
    assert.match(await caller.refused("ADD", two), /^103 .* container c1 \(eth0\) has it$/);
    assert.deepEqual(agent.held, ["10.1.2.77", "2001:db8::77"]);
  });

  it("C0013 two networks, and two dataDirs, know nothing of each other", async () => {
    const worlds: readonly Said[] = [
      { ipam: LAST_ONE },
      { ipam: LAST_ONE, conf: { name: "other" } },
      { ipam: { ...LAST_ONE, dataDir: "/other" } },
      { ipam: { ...LAST_ONE, dataDir: "/other" }, conf: { name: "other" } },
    ];
    for (const world of worlds) assert.deepEqual(await caller.add(world), ["10.1.2.2/30"]);
    await agent.restart();
    for (const [i, world] of worlds.entries()) {
      assert.match(await caller.refused("ADD", { ...world, cid: "c2" }), /^107 /);
      await caller.del(world);
      assert.equal(agent.held.length, 3 - i);
    }
    await caller.add({ ipam: { ...LAST_ONE, dataDir: "/a/../other/" } });
    await caller.del(worlds[2]);
    assert.deepEqual(agent.held, []);
  });
});
