// SPDX-License-Identifier: Apache-2.0
// What an agent knows after it was stopped, killed or rebooted, and whom it tells.
import assert from "node:assert/strict";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import type { SandboxNotice } from "../../ipam-plugin/agent/claims/claim-source.ts";
import { claimResult, podArgs, ScriptedClaims } from "../../ipam-plugin/agent/testing/node-bench.ts";
import { eventually } from "../support/eventually.ts";
import { addressesOf, Caller, type Said } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { TestingAgent } from "./testing-agent.ts";

let claimSource: ScriptedClaims;
let agent: TestingAgent;
let caller: Caller;

before(buildPlugin);
beforeEach(async () => {
  claimSource = new ScriptedClaims();
  agent = await TestingAgent.start(claimSource);
  caller = new Caller(agent.socket);
});
afterEach(() => agent.remove());

/** The n-th pod, whose claim gives 10.9.0.n, in its sandbox `s<n>`. */
function sandbox(n: number): Said & { readonly notice: SandboxNotice } {
  const name = `db-${n}`;
  claimSource.answers.set(`shop/${name}`, claimResult(`shop/${name}`, `10.9.0.${n}/24`));
  const notice = {
    claim: `shop/${name}`,
    pod: { namespace: "shop", name, uid: `u${n}` },
    attachment: { network: "net", containerID: `s${n}`, interface: "eth0" },
  };
  return { cid: `s${n}`, args: podArgs(name, `u${n}`), notice };
}

/** What was told at the start, whenever it was attached. */
function known() {
  return claimSource.known.map(({ attachedAt, ...notice }) => {
    assert.ok(attachedAt !== undefined);
    return notice;
  });
}

describe("the journal of an agent", () => {
  it("C0040 a restart keeps every attachment and its addresses, and where the ranges go on", async () => {
    caller.ipam = { ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "fd00::/64" }]] };
    const names = ["c1", "c2", "c3", "c4"];
    const given = new Map<string, readonly string[]>(); // container -> addresses
    for (const cid of names) given.set(cid, await caller.add({ cid }));
    await caller.add(sandbox(1));
    await caller.del({ cid: "c4" });
    const held = agent.held.toSorted();
    assert.equal(held.length, 7);
    await agent.restart();
    assert.deepEqual(agent.held.toSorted(), held);
    for (const cid of names.slice(0, 3)) {
      const addresses = given.get(cid) ?? [];
      const prevResult = { ips: addresses.map((address) => ({ address })) };
      await caller.silently("CHECK", { cid, conf: { prevResult } });
      assert.deepEqual(await caller.add({ cid }), addresses);
    }
    assert.deepEqual(await caller.add(sandbox(1)), ["10.9.0.1/24"]);
    assert.deepEqual(await caller.add({ cid: "c5" }), ["10.1.2.6/24", "fd00::6/64"]);
    await caller.del({ cid: "c2" });
    assert.deepEqual(
      agent.held.toSorted(),
      [...held, "10.1.2.6", "fd00::6"].filter((a) => !/[.:]3$/.test(a)).toSorted(),
    );
  });

  it("C0041 a reboot frees all of the other boot, and nothing of this one", async () => {
    await caller.add({ cid: "old" });
    await caller.add(sandbox(1));
    await agent.stop();
    agent.reboot();
    await agent.start();
    assert.deepEqual(agent.held, []);
    await eventually("the claim source is told", () => claimSource.reported.length > 0 || undefined);
    assert.deepEqual([claimSource.reported, known()], [[sandbox(1).notice], []]);
    await caller.add({ cid: "new" });
    await caller.add(sandbox(2));
    await caller.del({ cid: "old", netns: "" });
    await agent.restart();
    assert.deepEqual(agent.held.toSorted(), ["10.1.2.3", "10.9.0.2"]);
    assert.deepEqual([claimSource.reported, known()], [[sandbox(1).notice], [sandbox(2).notice]]);
    assert.deepEqual(await caller.add({ cid: "old" }), ["10.1.2.4/24"]);
  });

  it("C0042 a crash in the midst of ADDs and DELs loses nothing that was answered", async () => {
    const names = Array.from({ length: 40 }, (_, i) => `c${i}`);
    const leaving = names.slice(0, 20);
    for (const cid of leaving) await caller.add({ cid });
    const adds = names.slice(20).map((cid) => caller.call("ADD", { cid }));
    const dels = leaving.map((cid) => caller.call("DEL", { cid }));
    await Promise.race(adds);
    await agent.crash();
    const runs = await Promise.all(adds);
    const ends = await Promise.all(dels);
    await agent.start();
    const answered = runs.filter(({ rc }) => rc === 0).flatMap(addressesOf);
    assert.ok(answered.length > 0);
    assert.deepEqual(
      answered.filter((address) => !agent.held.includes(address.replace("/24", ""))),
      [],
    );
    // A DEL always succeeds: by the journal or by the spool.
    assert.ok(ends.every(({ rc, stdout }) => rc === 0 && stdout === ""));
    for (const cid of leaving) assert.match(await caller.refused("CHECK", { cid }), /^151 /);
  });
});

describe("the claims of sandboxes", () => {
  it("C0043 a claim that went on to a new sandbox of its pod is not ended by late DELs of the old one", async () => {
    const { args = "" } = sandbox(1);
    for (const cid of ["old", "new"]) assert.deepEqual(await caller.add({ cid, args }), ["10.9.0.1/24"]);
    for (const netns of ["/nowhere/netns/old", "", ""]) await caller.del({ cid: "old", args, netns });
    await agent.stop();
    await caller.del({ cid: "old", args }); // by the spool
    await agent.start();
    assert.deepEqual(agent.held, ["10.9.0.1"]);
    assert.deepEqual(await caller.add({ cid: "new", args }), ["10.9.0.1/24"]);
    assert.equal(claimSource.reported.length, 0);
    await caller.del({ cid: "new", args });
    assert.deepEqual(agent.held, []);
    await eventually("the claim source is told", () => claimSource.reported.length > 0 || undefined);
    assert.deepEqual(
      claimSource.reported.map(({ attachment }) => attachment.containerID),
      ["new"],
    );
  });

  it("C0044 a detachment is told again and again, by the next agent too, until the claim source takes it", async () => {
    const { notice, ...said } = sandbox(1);
    claimSource.fault = new BerthError("STORE_UNAVAILABLE", "nobody answers");
    await caller.add(said);
    await caller.del(said);
    await eventually("the claim source does not understand", () => claimSource.attempts > 0 || undefined);
    await agent.crash();
    const before = claimSource.attempts;
    await agent.start();
    await eventually("the next agent tells", () => claimSource.attempts > before || undefined);
    assert.deepEqual(claimSource.reported, []);
    claimSource.fault = undefined;
    await eventually("the claim source understands", () => claimSource.reported.length > 0 || undefined);
    await agent.restart();
    await caller.silently("STATUS");
    assert.deepEqual(claimSource.reported, [notice]);
  });

  it("C0045 the claim of every live sandbox is told at the start, before the first call is served", async () => {
    for (const n of [1, 2, 3]) await caller.add(sandbox(n));
    await caller.add({ cid: "without-claim" });
    await caller.del({ cid: "s2" });
    await agent.stop();
    await caller.del({ cid: "s3" }); // by the spool: it counts before anything is told
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const listening = claimSource.attached.bind(claimSource);
    claimSource.attached = async (notice) => {
      await listening(notice);
      await gate;
    };
    const starting = agent.start();
    await eventually("the start waits for the claim source", () => claimSource.known.length > 0 || undefined);
    const order: string[] = [];
    const adding = caller.add({ cid: "c4" }).finally(() => order.push("served"));
    const words = `50 berth agent is not running (no socket at ${agent.socket})`;
    assert.equal(await caller.refused("STATUS"), words);
    order.push("told");
    open();
    await starting;
    assert.deepEqual(known(), [sandbox(1).notice]);
    assert.deepEqual(await adding, ["10.1.2.3/24"]);
    assert.deepEqual(order, ["told", "served"]);
  });
});
