// SPDX-License-Identifier: Apache-2.0
// An agent that comes up with another journal in the same boot, as after a change of `agent.dataDir`.
import assert from "node:assert/strict";
import { copyFile, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { type Agent, startAgent } from "../../ipam-plugin/agent/agent.ts";
import { adopt } from "../../ipam-plugin/agent/journal/adopt.ts";
import { markFileOf } from "../../ipam-plugin/agent/journal/boot-mark.ts";
import { linuxHost } from "../../ipam-plugin/agent/journal/host.ts";
import { recordsIn } from "../../ipam-plugin/agent/journal/runtime-records.ts";
import { startWhenBound } from "../../ipam-plugin/agent/refuse-until-adopted.ts";
import { eventually } from "../support/eventually.ts";
import { hostDeps } from "../support/host-deps.ts";
import { Caller } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { noClaims } from "./testing-agent.ts";

const WORDS = /^50 the journal .* is not the one that has served this node since it booted/;
const OLDER = /^50 the journal .* is an older copy of the one that has served this node since it booted/;

describe("another journal in the same boot", () => {
  let folder: string;
  let caller: Caller;
  const ends: (() => Promise<void>)[] = [];

  before(async () => {
    await buildPlugin();
    folder = await mkdtemp(join(tmpdir(), "berth-journals-"));
    caller = new Caller(join(folder, "run", "agent.sock"));
  });
  after(async () => {
    for (const end of ends) await end();
    await rm(folder, { recursive: true, force: true });
  });

  /** An agent on the journal of that name: serving, or refusing, until it is ended. */
  function agentOn(name: string, bootId = "boot-1"): { started: Promise<Agent>; end: () => Promise<void> } {
    const database = openDatabase(join(folder, name));
    const { socket: socketPath } = caller;
    const stop = new AbortController();
    const services = hostDeps();
    const runtimeRecords = recordsIn([join(folder, "results")], linuxHost);
    const start = () =>
      startAgent({ database, socketPath, claimSource: noClaims, bootId, runtimeRecords, ...services });
    const mark = markFileOf(socketPath);
    const started = startWhenBound(start, {
      ...{ socketPath, mark, runtimeRecords, signal: stop.signal },
      ...services,
    });
    started.catch(() => undefined);
    let ending: Promise<void> | undefined;
    const endAll = async () => {
      stop.abort();
      await started.then(
        (agent) => agent.close(),
        () => undefined,
      );
      database.close();
    };
    const end = () => {
      ending ??= endAll();
      return ending;
    };
    ends.push(end);
    return { started, end };
  }

  const refusal = async (verb: string, said = {}) => {
    const { stdout } = await caller.call(verb, said);
    const { code, msg }: { code?: number; msg?: string } = JSON.parse(stdout || "{}");
    return `${code} ${msg}`;
  };

  it("serves nothing until a person confirms it, and keeps what comes meanwhile", async () => {
    const first = agentOn("first.db");
    await first.started;
    assert.deepEqual(await caller.add({ cid: "up" }), ["10.1.2.2/24"]);
    await first.end();

    const other = agentOn("other.db");
    await eventually("it refuses in words", async () =>
      WORDS.test(await refusal("STATUS")) ? true : undefined,
    );
    assert.match(await refusal("ADD", { cid: "next" }), WORDS);
    assert.match(await refusal("CHECK", { cid: "up" }), WORDS);
    await caller.del({ cid: "gone" });
    assert.equal((await readdir(join(folder, "run/spool"))).filter((n) => n.endsWith(".del")).length, 1);
    await other.end();

    const again = agentOn("first.db");
    const back = await again.started;
    assert.deepEqual(back.held(), ["10.1.2.2"]);
    assert.deepEqual(await caller.add({ cid: "next" }), ["10.1.2.3/24"]);
    await again.end();

    const adopted = agentOn("other.db");
    await eventually("it refuses again", async () =>
      WORDS.test(await refusal("STATUS")) ? true : undefined,
    );
    const call = { database: join(folder, "other.db"), socketPath: caller.socket, bootId: "boot-1" };
    await adopt({ ...call, confirmed: true, runtimeRecords: async () => [] });
    await adopted.started;
    await caller.silently("STATUS");
    await adopted.end();
  });

  it("serves after the next boot, when no sandbox is left that it could not know", async () => {
    const agent = agentOn("third.db", "boot-2");
    await agent.started;
    assert.deepEqual(await caller.add({ cid: "fresh" }), ["10.1.2.2/24"]);
    await agent.end();
  });

  it("serves nothing with everything of its own lost, while the runtime knows of a sandbox that is up", async () => {
    const before = agentOn("fourth.db", "boot-3");
    await before.started;
    const netns = join(folder, "netns", "kept");
    assert.deepEqual(await caller.add({ cid: "kept", netns }), ["10.1.2.2/24"]);
    await keptByRuntime("kept", netns, "10.1.2.2/24");
    await keptByRuntime("rebooted", join(folder, "netns", "rebooted"), "10.1.2.9/24");
    await rm(join(folder, "netns", "rebooted"));
    await before.end();

    // Its own record is enough: nobody is asked when the journal knows them all.
    await rm(`${caller.socket}.journal`);
    const again = agentOn("fourth.db", "boot-3");
    assert.deepEqual((await again.started).held(), ["10.1.2.2"]);
    await again.end();

    await rm(`${caller.socket}.journal`);
    const empty = agentOn("fifth.db", "boot-3");
    await eventually("it refuses in words", async () =>
      WORDS.test(await refusal("STATUS")) ? true : undefined,
    );
    assert.match(await refusal("ADD", { cid: "next" }), /container kept, eth0, with 10.1.2.2 in network net/);
    await caller.del({ cid: "kept", netns });
    await rm(join(folder, "results", "net-kept-eth0"));
    await empty.started;
    assert.deepEqual(await caller.add({ cid: "next" }), ["10.1.2.2/24"], "nobody has it any more");
    await empty.end();
  });

  it("serves nothing from an older copy of its own journal, which does not know the address of a sandbox that is up", async () => {
    const [live, backup] = [join(folder, "sixth.db"), join(folder, "backup.db")];
    const begun = agentOn("sixth.db", "boot-4");
    await begun.started;
    assert.deepEqual(await caller.add({ cid: "before" }), ["10.1.2.2/24"]);
    await begun.end();
    await copyFile(live, backup);
    const later = agentOn("sixth.db", "boot-4");
    await later.started;
    assert.deepEqual(await caller.add({ cid: "after" }), ["10.1.2.3/24"]);
    await later.end();

    await copyFile(live, join(folder, "whole.db"));
    await copyFile(backup, live);
    const restored = agentOn("sixth.db", "boot-4");
    await eventually("it refuses in words", async () =>
      OLDER.test(await refusal("STATUS")) ? true : undefined,
    );
    assert.match(await refusal("ADD", { cid: "next" }), OLDER);
    await restored.end();

    await copyFile(join(folder, "whole.db"), live);
    const back = agentOn("sixth.db", "boot-4");
    assert.deepEqual((await back.started).held().toSorted(), ["10.1.2.2", "10.1.2.3"]);
    await back.end();

    await copyFile(backup, live);
    const adopted = agentOn("sixth.db", "boot-4");
    await eventually("it refuses again", async () =>
      OLDER.test(await refusal("STATUS")) ? true : undefined,
    );
    const call = { database: live, socketPath: caller.socket, bootId: "boot-4" };
    const reported = await adopt({ ...call, confirmed: true, runtimeRecords: async () => [] });
    assert.match(reported[0] ?? "", /it is older than what has served here$/);
    assert.deepEqual((await adopted.started).held(), ["10.1.2.2"]);
    await adopted.end();
    const known = agentOn("sixth.db", "boot-4");
    await known.started;
    await known.end();

    // what was left behind knows other sandboxes than the one that serves
    await copyFile(join(folder, "whole.db"), live);
    const behind = agentOn("sixth.db", "boot-4");
    await eventually("it refuses the other one", async () =>
      WORDS.test(await refusal("STATUS")) ? true : undefined,
    );
    await behind.end();
  });

  /** What libcni writes once an ADD has succeeded. */
  async function keptByRuntime(cid: string, sandbox: string, address: string): Promise<void> {
    for (const name of ["results", "netns"]) await mkdir(join(folder, name), { recursive: true });
    await writeFile(sandbox, "");
    const config = {
      cniVersion: "1.0.0",
      name: "net",
      plugins: [{ type: "bridge", ipam: { type: "berth" } }],
    };
    const record = {
      kind: "cniCacheV1",
      ...{ containerId: cid, ifName: "eth0", networkName: "net" },
      config: Buffer.from(JSON.stringify(config)).toString("base64"),
      result: { cniVersion: "1.0.0", interfaces: [{ name: "eth0", sandbox }], ips: [{ address }] },
    };
    await writeFile(join(folder, "results", `net-${cid}-eth0`), JSON.stringify(record));
  }
});
