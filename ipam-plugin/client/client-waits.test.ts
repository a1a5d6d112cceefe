// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type Call, CallDecoder, encodeReply } from "../agent/rpc/frame.ts";
import { ClientBench, errorOf, SILENCE } from "./testing/client-bench.ts";
import { BINARY, type Finished, follow, runClient, startClient } from "./testing/client-process.ts";

const RESULT: Finished = { exit: 0, stdout: "result", stderr: "" };

describe("CNI binary while one agent follows another", () => {
  const bench = new ClientBench();
  const { env, misbehave } = bench;

  /** An agent that answers, but for the first few, on whom it hangs up when it has their requests. */
  async function answer(calls: Call[], hangUps = 0): Promise<void> {
    await misbehave((socket) => {
      const decoder = new CallDecoder();
      socket.on("data", (chunk: Buffer) => {
        const decoded = calls.length > hangUps ? undefined : decoder.push(chunk);
        if (decoded?.kind !== "complete") return;
        calls.push(decoded.frame);
        if (calls.length <= hangUps) socket.destroy();
        else socket.write(encodeReply({ exitStatus: 0, stdout: RESULT.stdout, stderr: "" }));
      });
    });
  }
  /** An agent that ends with the first who comes. */
  async function endWithTheFirst(): Promise<void> {
    await misbehave((socket) => socket.destroy());
  }
  async function ended(): Promise<void> {
    assert.ok(bench.agent.server !== undefined);
    await once(bench.agent.server, "connection");
    await bench.agent.close();
  }

  it("waits with an ADD for an agent that is away, and asks as of its own start", async () => {
    await endWithTheFirst();
    const add = startClient(env("ADD"), "later");
    await ended();
    const status = errorOf(await runClient(env("STATUS")));
    assert.deepEqual(status, { code: 50, msg: `berth agent is not running (no socket at ${bench.path})` });
    const before = process.hrtime.bigint();
    const calls: Call[] = [];
    await answer(calls);
    assert.deepEqual(await add.finished, RESULT);
    assert.deepEqual(
      calls.map(({ stdin, startNs }) => [stdin.toString(), startNs < before]),
      [["later", true]],
    );
  });

  it("asks the next agent with an ADD that the one before has left unanswered", async () => {
    const calls: Call[] = [];
    await answer(calls, 2);
    assert.deepEqual(await runClient(env("ADD")), RESULT);
    const [first, second, third, ...rest] = calls;
    assert.ok(first !== undefined);
    assert.deepEqual([second, third, rest], [first, first, []]);
  });

  it("asks once with a DEL, and spools it", async () => {
    const calls: Call[] = [];
    await answer(calls, 2);
    assert.deepEqual(await runClient(env("DEL")), SILENCE);
    assert.equal(calls.length, 1);
    assert.equal((await readdir(join(bench.folder, "spool"))).length, 1);
  });

  it("does not wait for long where no agent can have been", async () => {
    bench.path = join(bench.folder, "elsewhere", "agent.sock");
    const { code, msg } = errorOf(await runClient(env("ADD", { BERTH_TIMEOUT_MS: "500" })));
    const why = `berth agent is not running (no socket at ${bench.path})`;
    // where it was 33 ms old when it had looked for the first time, it does not look again
    const all = ["", ", tried for 33 ms"].map(
      (tried) => `${why}${tried}; kubelet tries again by itself, another runtime is to be asked again`,
    );
    assert.ok(code === 11 && all.includes(msg), `${code} ${msg}`);
  });

  it("asks no agent any more for a caller that is gone", async () => {
    await endWithTheFirst();
    const shell = spawn("/bin/sh", ["-c", '"$0" </dev/null & wait', BINARY], { env: env("ADD") });
    const orphan = follow(shell);
    await ended();
    shell.kill("SIGKILL");
    await once(shell, "exit");
    const calls: Call[] = [];
    await answer(calls);
    const { stdout } = await orphan.finished; // that is when the orphan has closed it, too
    assert.match(stdout, /"msg":"berth agent /);
    assert.deepEqual(calls, []);
  });
});
