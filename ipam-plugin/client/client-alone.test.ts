// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, readdir, readFile, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { describe, it } from "node:test";
import { encodeReply } from "../agent/rpc/frame.ts";
import { ClientBench, errorOf, SILENCE } from "./testing/client-bench.ts";
import { BINARY, follow, runClient, startClient } from "./testing/client-process.ts";

const NOBODY = 65_534;
const IF_ROOT = { skip: process.getuid?.() === 0 ? false : "becoming another user needs root" };

describe("CNI binary without a proper agent", () => {
  const bench = new ClientBench();
  const { env, misbehave } = bench;

  /** What each verb does when it gets no answer for this reason. An agent that is away is waited for by an ADD. */
  async function expectNoAnswer(reason: string, isAway = false, timeoutMs = 500): Promise<void> {
    const more = { BERTH_TIMEOUT_MS: String(timeoutMs) };
    const tried = isAway ? `, tried for ${Math.floor((timeoutMs * 2) / 3)} ms` : "";
    const expected = {
      ADD: {
        code: 11,
        msg: `${reason}${tried}; kubelet tries again by itself, another runtime is to be asked again`,
      },
      CHECK: { code: 11, msg: `${reason}; check again later` },
      GC: { code: 11, msg: `${reason}; collect again later` },
      STATUS: { code: 50, msg: reason },
    };
    for (const [command, error] of Object.entries(expected)) {
      assert.deepEqual(errorOf(await runClient(env(command, more))), error);
    }
    assert.deepEqual(await runClient(env("DEL", more)), SILENCE);
    assert.equal((await readdir(bench.spool)).length, 1);
  }

  it("fails, or spools, when no agent has ever run", async () => {
    await expectNoAnswer(`berth agent is not running (no socket at ${bench.path})`, true);
  });

  it("says what to do to who has named no socket", async (t) => {
    const usual = "/run/berth/agent.sock";
    if (existsSync(usual)) return t.skip(`an agent of this machine has ${usual}`);
    assert.deepEqual(errorOf(await runClient(env("STATUS", { BERTH_SOCKET: "" }))), {
      code: 50,
      msg: `berth agent is not running (no socket at ${usual}; in a cluster see DaemonSet berth-agent; else start berthctl up, or set BERTH_SOCKET to agent.sock in its data folder)`,
    });
  });

  it("fails, or spools, when nobody listens", async () => {
    await misbehave(() => {});
    await rename(bench.path, `${bench.path}.moved`); // so that closing does not remove it
    await bench.agent.close();
    await rename(`${bench.path}.moved`, bench.path);
    await expectNoAnswer(`berth agent is not running (nobody listens at ${bench.path})`, true);
  });

  it("fails, or spools, when the agent closes early", async () => {
    await misbehave((socket) => socket.destroy());
    await expectNoAnswer("berth agent closed the connection before it answered", true, 3_000);
  });

  it("fails, or spools, when the agent closes in the middle of its answer", async () => {
    const half = encodeReply({ exitStatus: 0, stdout: "result", stderr: "" }).subarray(0, -1);
    await misbehave((socket) => socket.once("data", () => socket.end(half)));
    // so long that a busy machine's half answer comes before the client gives up
    await expectNoAnswer("berth agent closed the connection before it answered", true, 3_000);
  });

  it("fails, or spools, when another user listens, who gets no word of the call", IF_ROOT, async (t) => {
    const heard = join(bench.folder, "heard");
    // by names within the folder: that user may not walk to it
    const listen = `require("node:net").createServer((s) => s.on("data", () => require("node:fs").writeFileSync("heard", ""))).listen(${JSON.stringify(basename(bench.path))}, () => console.log("listens"))`;
    await chmod(bench.folder, 0o777);
    const other = spawn(process.execPath, ["-e", `process.setuid(${NOBODY}); ${listen}`], {
      cwd: bench.folder,
    });
    const ended = once(other, "exit");
    t.after(async () => {
      other.kill();
      await ended;
    });
    const said = await Promise.race([once(other.stdout, "data"), ended]);
    assert.match(String(said), /listens/);
    await chmod(bench.folder, 0o755);
    await expectNoAnswer(
      `another user, who is not root, listens at ${bench.path}; run berth's agent as root, or as the user that runs the plugin`,
    );
    assert.equal(existsSync(heard), false);
  });

  it("fails, or spools, when the agent hangs", async () => {
    await misbehave(() => {});
    await expectNoAnswer("berth agent did not answer within 500 ms");
  });

  const garbage: [string, Buffer][] = [
    ["foreign bytes", Buffer.from("HTTP/1.1 400 Bad Request\r\n")],
    ["another version", Buffer.from("BRTH\x02")],
    ["an impossible length", Buffer.from("BRTH\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff", "latin1")],
    [
      "bytes behind it",
      Buffer.concat([encodeReply({ exitStatus: 0, stdout: "a", stderr: "" }), Buffer.of(0)]),
    ],
  ];
  for (const [what, bytes] of garbage) {
    it(`fails, or spools, when the answer is ${what}`, async () => {
      await misbehave((socket) => socket.once("data", () => socket.write(bytes)));
      const reason = "berth agent sent an answer that cannot be read; do plugin and agent have one version?";
      await expectNoAnswer(reason);
    });
  }

  it("reads an answer that comes before the request is sent, and byte by byte", async () => {
    const bytes = encodeReply({ exitStatus: 3, stdout: "early", stderr: "bird" });
    await misbehave((socket) => {
      socket.pause();
      const next = (at: number) => {
        if (at < bytes.length) socket.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1));
      };
      next(0);
    });
    const finished = await runClient(env("ADD"), Buffer.alloc(4_000_000));
    assert.deepEqual(finished, { exit: 3, stdout: "early", stderr: "bird" });
  });

  it("reads the answer of an agent that hangs up before it has read the request", async () => {
    await misbehave((socket) => socket.end(encodeReply({ exitStatus: 3, stdout: "busy", stderr: "" })));
    bench.agent.server?.on("connection", (socket) => socket.on("finish", () => socket.destroy()));
    const finished = await runClient(env("ADD"), Buffer.alloc(4_000_000));
    assert.deepEqual(finished, { exit: 3, stdout: "busy", stderr: "" });
  });

  it("ends STATUS by its own limit while an ADD still waits", async () => {
    await misbehave(() => {});
    const add = startClient(env("ADD"));
    const { exit } = await runClient(env("STATUS"));
    assert.equal(exit, 1);
    assert.equal(add.process.exitCode, null);
    add.process.kill("SIGKILL");
    await add.finished;
  });

  it("waits in front of an agent whose queue is full", async () => {
    const script = `require("node:net").createServer().listen({ path: process.argv[1], backlog: 1 }, () => {
      console.log("listening");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000); // accepts nobody
    })`;
    const stuck = spawn(process.execPath, ["-e", script, bench.path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(stuck.stdout, "data");
    const adds = await Promise.all(
      [1, 2, 3, 4].map(() => runClient(env("ADD", { BERTH_TIMEOUT_MS: "400" }))),
    );
    const msg =
      "berth agent did not answer within 400 ms; kubelet tries again by itself, another runtime is to be asked again";
    assert.deepEqual(adds.map(errorOf), Array(4).fill({ code: 11, msg }));
    stuck.kill("SIGKILL");
    await once(stuck, "exit");
  });

  it("refuses what it cannot carry", async () => {
    await misbehave(() => {});
    const long = Buffer.alloc(4 * 1024 * 1024 + 1);
    assert.deepEqual(errorOf(await runClient(env("ADD"), long)), {
      code: 6,
      msg: "the network configuration on stdin is longer than 4 MiB",
    });
    const wide = Object.fromEntries([1, 2, 3].map((i) => [`CNI_X${i}`, "x".repeat(100_000)]));
    assert.deepEqual(errorOf(await runClient(env("ADD", wide))), {
      code: 4,
      msg: "the CNI variables are longer than 256 KiB together",
    });
    const unfinished = spawn(BINARY, { env: env("DEL", { BERTH_TIMEOUT_MS: "200" }) });
    const finished = await new Promise<number | null>((resolve) => unfinished.once("exit", resolve));
    assert.equal(finished, 1);
  });

  it("answers VERSION by itself, without stdin", async () => {
    const versions = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
    const child = spawn(BINARY, { env: { CNI_COMMAND: "VERSION" }, stdio: ["ignore", "pipe", "pipe"] });
    const finished = await follow(child).finished;
    const stdout = `${JSON.stringify({ cniVersion: "1.1.0", supportedVersions: versions })}\n`;
    assert.deepEqual(finished, { exit: 0, stdout, stderr: "" });
  });

  it("says what it is when a person runs it", async () => {
    for (const alone of [{}, { CNI_COMMAND: "" }]) {
      const { exit, stdout, stderr } = await runClient(alone);
      assert.deepEqual([exit, stdout], [0, ""]);
      assert.match(
        stderr,
        /^CNI berth plugin version \d+\.\d+\.\d+\nCNI protocol versions supported: 0\.1\.0, .*, 1\.1\.0\n$/,
      );
    }
  });

  it("refuses a command that it does not know, whatever bytes it has", async () => {
    const unknown = (command: string) => runClient({ CNI_COMMAND: command }).then(errorOf);
    assert.deepEqual(await unknown("add"), { code: 4, msg: "unknown CNI_COMMAND: add" });
    const hard = 'a"b\\c\n\t\x01\x7fü\u2028\u{1f6a2}';
    assert.deepEqual(await unknown(hard), { code: 4, msg: `unknown CNI_COMMAND: ${hard}` });
    assert.deepEqual(await unknown("x".repeat(9000)), {
      code: 4,
      msg: `unknown CNI_COMMAND: ${"x".repeat(491)}`,
    });
    const script = `CNI_COMMAND=$(printf 'a\\377\\300\\257\\355\\240\\200\\303') exec "$0"`;
    const finished = await follow(spawn("/bin/sh", ["-c", script, BINARY], { env: {} })).finished;
    assert.equal(errorOf(finished).msg, `unknown CNI_COMMAND: a${"\ufffd".repeat(7)}`);
  });

  it("is small", async () => {
    const { length } = await readFile(BINARY);
    assert.ok(length < 100_000, `${length} bytes`);
  });
});
