// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { replaySpool } from "../agent/background/spool.ts";
import type { Answer, Handler, Outcome } from "../agent/rpc/connection.ts";
import { type Call, NOT_ACCEPTED, STDIN_LIMIT } from "../agent/rpc/frame.ts";
import { type SocketServer, serveSocket } from "../agent/rpc/server.ts";
import { BINARY, buildClient, follow, runClient, startClient } from "./testing/client-process.ts";

const RESULT = '{"cniVersion":"1.0.0","ips":[{"address":"10.1.2.3/24"}]}\n';
const granted: Answer = { exitStatus: 0, stdout: RESULT, stderr: "" };

async function until(holds: () => boolean): Promise<void> {
  for (const giveUp = Date.now() + 20_000; Date.now() < giveUp; await pause(1)) if (holds()) return;
  assert.fail(`never came true: ${holds}`);
}

describe("CNI binary with an agent", () => {
  let folder: string;
  let path: string;
  let server: SocketServer | undefined;
  let outcomes: Outcome[];
  before(buildClient);
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-client-"));
    path = join(folder, "agent.sock");
    outcomes = [];
  });
  afterEach(async () => {
    await server?.close();
    server = undefined;
    await rm(folder, { recursive: true, force: true });
  });

  async function serve(handle: Handler): Promise<void> {
    server = await serveSocket({ path, handle, log: noopLogger, clock: createClock() });
  }
  const settling = (answer: Answer): Answer => ({
    ...answer,
    settle: (outcome) => void outcomes.push(outcome),
  });
  function env(command: string, more: Record<string, string> = {}): Record<string, string> {
    return {
      CNI_COMMAND: command,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: "/run/netns/x",
      CNI_IFNAME: "eth0",
      CNI_ARGS: "",
      BERTH_SOCKET: path,
      ...more,
    };
  }
  /** Answers when it is told to; the signals show that calls have come. */
  function waiting() {
    const begun: AbortSignal[] = [];
    const { promise, resolve: release } = Promise.withResolvers<void>();
    const handle: Handler = async (_call, signal) => {
      begun.push(signal);
      await promise;
      return settling(granted);
    };
    return { handle, begun, release };
  }

  for (const command of ["ADD", "DEL", "CHECK", "STATUS", "GC"]) {
    it(`carries ${command} to the agent and its answer back`, async () => {
      const calls: Call[] = [];
      await serve(async (call) => {
        calls.push(call);
        return { exitStatus: 7, stdout: `out of ${command} ü`, stderr: `err of ${command}` };
      });
      const earliest = process.hrtime.bigint();
      const finished = await runClient(
        env(command, { PATH: "/bin", CNIX: "no", XCNI_A: "no" }),
        '{"name":"n"}',
      );
      assert.deepEqual(finished, { exit: 7, stdout: `out of ${command} ü`, stderr: `err of ${command}` });
      const [call] = calls;
      assert.ok(call !== undefined && calls.length === 1);
      const { BERTH_SOCKET: _, ...sent } = env(command);
      assert.deepEqual(Object.fromEntries(call.env), sent);
      assert.equal(call.stdin.toString(), '{"name":"n"}');
      assert.ok(call.startNs > earliest && call.startNs < process.hrtime.bigint());
    });
  }

  it("acknowledges an ADD that it has printed", async () => {
    await serve(async () => settling(granted));
    assert.deepEqual(await runClient(env("ADD")), { exit: 0, stdout: RESULT, stderr: "" });
    await server?.close();
    assert.deepEqual(outcomes, ["delivered"]);
  });

  it("acknowledges nothing but an ADD that succeeded", async () => {
    let exitStatus = 1;
    await serve(async () => settling({ ...granted, exitStatus }));
    assert.equal((await runClient(env("ADD"))).exit, 1);
    exitStatus = 0;
    assert.equal((await runClient(env("DEL"))).exit, 0);
    await server?.close();
    assert.deepEqual(outcomes, ["lost", "lost"]);
  });

  it("carries every byte, up to 4 MiB of configuration and of answer", async () => {
    let seen: Call | undefined;
    const long = "ß".repeat(2 * 1024 * 1024);
    await serve(async (call) => {
      seen = call;
      return { exitStatus: 0, stdout: long, stderr: "" };
    });
    const stdin = Buffer.alloc(STDIN_LIMIT, Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)));
    const args = 'A=b=c;\n"\\\x01;ü\u{1f6a2};';
    const finished = await runClient(env("DEL", { CNI_ARGS: args }), stdin);
    assert.equal(finished.exit, 0);
    assert.ok(finished.stdout === long);
    assert.ok(seen?.stdin.equals(stdin));
    assert.equal(seen?.env.get("CNI_ARGS"), args);
  });

  it("serves 200 calls at once, each with its own answer", async () => {
    await serve(async (call) => settling({ ...granted, stdout: `for ${call.env.get("CNI_CONTAINERID")}` }));
    const ids = Array.from({ length: 200 }, (_, i) => `c${i}`);
    const finished = await Promise.all(ids.map((id) => runClient(env("ADD", { CNI_CONTAINERID: id }))));
    assert.deepEqual(
      finished,
      ids.map((id) => ({ exit: 0, stdout: `for ${id}`, stderr: "" })),
    );
    await server?.close();
    assert.deepEqual(outcomes, Array(200).fill("delivered"));
  });

  it("leaves an ADD unacknowledged that nobody reads any more", async () => {
    const { handle, begun, release } = waiting();
    await serve(handle);
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    const reader = await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(pipe, constants.O_WRONLY);
    const started = follow(spawn(BINARY, { env: env("ADD"), stdio: ["pipe", writer, "pipe"] }), "{}");
    closeSync(writer);
    await until(() => begun.length === 1);
    await reader.close();
    release();
    assert.deepEqual(await started.finished, { exit: 1, stdout: "", stderr: "" });
    await server?.close();
    assert.deepEqual(outcomes, ["lost"]);
  });

  it("does not wait for ever for a reader that does not read", async () => {
    await serve(async () => settling({ ...granted, stdout: "x".repeat(1_000_000) }));
    const pipe = join(folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    const reader = await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(pipe, constants.O_WRONLY);
    const spawned = spawn(BINARY, {
      env: env("ADD", { BERTH_TIMEOUT_MS: "300" }),
      stdio: ["pipe", writer, "pipe"],
    });
    closeSync(writer);
    assert.equal((await follow(spawned, "{}").finished).exit, 1);
    await reader.close();
    await server?.close();
    assert.deepEqual(outcomes, ["lost"]);
  });

  it("never writes an answer into its own socket when stdin and stdout are closed", async () => {
    const calls: Call[] = [];
    await serve(async (call) => {
      calls.push(call);
      return settling(granted);
    });
    const closed = (redirection: string) =>
      follow(spawn("/bin/sh", ["-c", `exec "$0" ${redirection}`, BINARY], { env: env("ADD") }), "{}")
        .finished;
    assert.deepEqual(await closed(">&- 2>&-"), { exit: 1, stdout: "", stderr: "" });
    const { exit, stdout } = await closed("<&-");
    assert.equal(exit, 1);
    assert.equal(JSON.parse(stdout).msg, "the network configuration cannot be read from stdin");
    await server?.close();
    assert.equal(calls.length, 1);
    assert.deepEqual(outcomes, ["lost"]);
  });

  it("leaves an ADD unacknowledged when its caller is gone", async () => {
    const { handle, begun, release } = waiting();
    await serve(handle);
    const input = join(folder, "stdin");
    const output = join(folder, "stdout");
    await writeFile(input, "{}");
    const script = '"$0" <"$1" >"$2" & wait';
    const caller = follow(spawn("/bin/sh", ["-c", script, BINARY, input, output], { env: env("ADD") }));
    await until(() => begun.length === 1);
    caller.process.kill("SIGKILL");
    await new Promise((resolve) => caller.process.once("exit", resolve));
    release();
    await until(() => outcomes.length > 0);
    await caller.finished;
    assert.deepEqual(outcomes, ["lost"]);
    assert.equal(await readFile(output, "utf8"), "");
  });

  it("aborts the agent's work when it is killed", async () => {
    const { handle, begun, release } = waiting();
    await serve(handle);
    const started = startClient(env("ADD"));
    await until(() => begun.length === 1);
    started.process.kill("SIGKILL");
    assert.equal((await started.finished).exit, "SIGKILL");
    await until(() => begun[0]?.aborted === true);
    release();
    await until(() => outcomes.length > 0);
    assert.deepEqual(outcomes, ["lost"]);
  });

  it("takes no notice of being stopped and continued", async () => {
    const { handle, begun, release } = waiting();
    await serve(handle);
    const started = startClient(env("ADD"));
    await until(() => begun.length === 1);
    for (let i = 0; i < 3; i++) {
      started.process.kill("SIGSTOP");
      await pause(5);
      started.process.kill("SIGCONT");
    }
    release();
    assert.deepEqual(await started.finished, { exit: 0, stdout: RESULT, stderr: "" });
    await until(() => outcomes.length > 0);
    assert.deepEqual(outcomes, ["delivered"]);
  });

  it("gives up an agent that takes too long, which then knows", async () => {
    const { handle, begun, release } = waiting();
    await serve(handle);
    const { exit, stdout } = await runClient(env("ADD", { BERTH_TIMEOUT_MS: "300" }));
    assert.equal(exit, 1);
    assert.deepEqual(JSON.parse(stdout), {
      cniVersion: "1.1.0",
      code: 11,
      msg: "berth agent did not answer within 300 ms; kubelet tries again by itself, another runtime is to be asked again",
    });
    await until(() => begun[0]?.aborted === true);
    release();
    await until(() => outcomes.length > 0);
    assert.deepEqual(outcomes, ["lost"]);
  });

  it("spools a DEL that a busy agent does not take, lets STATUS pass and fails the rest", async () => {
    await serve(async () => ({ exitStatus: NOT_ACCEPTED, stdout: '{"code":11}', stderr: "" }));
    assert.deepEqual(await runClient(env("DEL")), { exit: 0, stdout: "", stderr: "" });
    assert.deepEqual(await runClient(env("STATUS")), { exit: 0, stdout: "", stderr: "" });
    assert.deepEqual(await runClient(env("ADD")), { exit: 1, stdout: '{"code":11}', stderr: "" });
    const replayed: Call[] = [];
    const handle = async (call: Call) => {
      replayed.push(call);
      return { ...granted, stdout: "" };
    };
    await replaySpool(join(folder, "spool"), handle, noopLogger);
    assert.deepEqual(
      replayed.map((call) => call.env.get("CNI_COMMAND")),
      ["DEL"],
    );
    assert.deepEqual(await readdir(join(folder, "spool")), []);
  });
});
