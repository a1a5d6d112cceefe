// SPDX-License-Identifier: Apache-2.0
// An agent that comes up with another journal in the same boot, as after a change of `agent.dataDir`.
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { type Agent, startAgent } from "../../ipam-plugin/agent/agent.ts";
import { adopt } from "../../ipam-plugin/agent/journal/adopt.ts";
import { markFileOf } from "../../ipam-plugin/agent/journal/boot-mark.ts";
import { startWhenBound } from "../../ipam-plugin/agent/refuse-until-adopted.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { eventually } from "../support/eventually.ts";
import { Caller } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { unmoored } from "./testing-agent.ts";

const WORDS = /^50 the journal .* is not the one that has served this node since it booted/;

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
    const services = { clock: createClock(), random: createRandom(), log: noopLogger };
    const start = () => startAgent({ database, socketPath, mooring: unmoored, bootId, ...services });
    const mark = markFileOf(socketPath);
    const started = startWhenBound(start, { socketPath, mark, signal: stop.signal, ...services });
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
    await adopt({ ...call, confirmed: true });
    await adopted.started;
    await caller.silently("STATUS");
    await adopted.end();
  });

  it("serves after the next boot, when no sandbox is left that it could not know", async () => {
    const agent = agentOn("third.db", "boot-2");
    await agent.started;
    assert.deepEqual(await caller.add({ cid: "fresh" }), ["10.1.2.2/24"]);
  });
});
