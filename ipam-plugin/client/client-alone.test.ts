// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import {
  chmod,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { replaySpool } from "../agent/background/spool.ts";
import { type Call, encodeReply } from "../agent/rpc/frame.ts";
import { AgentStandIn } from "./testing/agent-stand-in.ts";
import {
  BINARY,
  buildClient,
  type Finished,
  follow,
  runClient,
  startClient,
} from "./testing/client-process.ts";

const SILENCE: Finished = { exit: 0, stdout: "", stderr: "" };
const NOBODY = 65_534;
const IF_ROOT = { skip: process.getuid?.() === 0 ? false : "becoming another user needs root" };
/** go-cni and multus take an error with one of these for a DEL that has succeeded. */
const FORBIDDEN = /not found|no such file or directory/i;

describe("CNI binary without a proper agent", () => {
  let folder: string;
  let path: string;
  let agent: AgentStandIn;
  before(buildClient);
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-alone-"));
    path = join(folder, "agent.sock");
    agent = new AgentStandIn();
  });
  afterEach(async () => {
    await agent.end();
    await rm(folder, { recursive: true, force: true });
  });

  function env(command: string, more: Record<string, string> = {}): Record<string, string> {
    return { CNI_COMMAND: command, CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0", BERTH_SOCKET: path, ...more };
  }
  /** An agent that does the same to everybody who comes. */
  const misbehave = (act: (socket: Socket) => void) => agent.listen(path, act);
  const spool = () => join(folder, "spool");
  function errorOf(finished: Finished): { code: number; msg: string } {
    assert.equal(finished.exit, 1);
    assert.equal(finished.stderr, "");
    assert.doesNotMatch(finished.stdout, FORBIDDEN);
    const { cniVersion, code, msg, ...rest } = JSON.parse(finished.stdout);
    assert.deepEqual([cniVersion, rest], ["1.1.0", {}]);
    return { code, msg };
  }
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
    assert.equal((await readdir(spool())).length, 1);
  }

  it("fails, or spools, when no agent has ever run", async () => {
    await expectNoAnswer(`berth agent is not running (no socket at ${path})`, true);
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
    await rename(path, `${path}.moved`); // so that closing does not remove it
    await agent.close();
    await rename(`${path}.moved`, path);
    await expectNoAnswer(`berth agent is not running (nobody listens at ${path})`, true);
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
    const heard = join(folder, "heard");
    // by names within the folder: that user may not walk to it
    const listen = `require("node:net").createServer((s) => s.on("data", () => require("node:fs").writeFileSync("heard", ""))).listen(${JSON.stringify(basename(path))}, () => console.log("listens"))`;
    await chmod(folder, 0o777);
    const other = spawn(process.execPath, ["-e", `process.setuid(${NOBODY}); ${listen}`], { cwd: folder });
    const ended = once(other, "exit");
    t.after(async () => {
      other.kill();
      await ended;
    });
    const said = await Promise.race([once(other.stdout, "data"), ended]);
    assert.match(String(said), /listens/);
    await chmod(folder, 0o755);
    await expectNoAnswer(
      `another user, who is not root, listens at ${path}; run berth's agent as root, or as the user that runs the plugin`,
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
    agent.server?.on("connection", (socket) => socket.on("finish", () => socket.destroy()));
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
    const stuck = spawn(process.execPath, ["-e", script, path], { stdio: ["ignore", "pipe", "inherit"] });
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

  it("spools a DEL so that the agent replays what the runtime asked", async () => {
    const args = 'K8S_POD_NAME=a=b;"ü\n';
    const earliest = process.hrtime.bigint();
    assert.deepEqual(
      await runClient(env("DEL", { CNI_ARGS: args, HOME: "/" }), '{"name":"n"}\0\xff'),
      SILENCE,
    );
    const [name] = await readdir(spool());
    assert.match(name ?? "", /^\d{20}-\d+-[0-9a-f-]{36}\.del$/);
    assert.equal((await stat(spool())).mode & 0o777, 0o700);
    assert.equal((await stat(join(spool(), name ?? ""))).mode & 0o777, 0o600);
    const calls: Call[] = [];
    const handle = async (call: Call) => {
      calls.push(call);
      return { exitStatus: 0, stdout: "", stderr: "" };
    };
    await replaySpool(spool(), handle, noopLogger);
    const [call] = calls;
    assert.ok(call !== undefined);
    const { BERTH_SOCKET: _, ...sent } = env("DEL", { CNI_ARGS: args });
    assert.deepEqual(Object.fromEntries(call.env), sent);
    assert.equal(call.stdin.toString(), '{"name":"n"}\0\xff');
    assert.ok(call.startNs > earliest && call.startNs < process.hrtime.bigint());
  });

  it("spools 100 DELs at once into folders that are not there yet", async () => {
    path = join(folder, "run", "berth", "agent.sock");
    const ids = Array.from({ length: 100 }, (_, i) => `c${i}`);
    const finished = await Promise.all(ids.map((id) => runClient(env("DEL", { CNI_CONTAINERID: id }))));
    assert.deepEqual(finished, Array(100).fill(SILENCE));
    const seen: (string | undefined)[] = [];
    const handle = async (call: Call) => {
      seen.push(call.env.get("CNI_CONTAINERID"));
      return { exitStatus: 0, stdout: "", stderr: "" };
    };
    const { released } = await replaySpool(join(folder, "run", "berth", "spool"), handle, noopLogger);
    assert.deepEqual([...seen].sort(), ids.toSorted());
    assert.deepEqual(released, released.toSorted());
  });

  it("refuses a DEL that names no attachment, in the agent's words", async () => {
    const missing = (more: Record<string, string>) =>
      runClient(env("DEL", { CNI_PATH: "/x", ...more })).then(errorOf);
    const message = (names: string) => ({ code: 4, msg: `required env variables [${names}] missing` });
    assert.deepEqual(await missing({ CNI_IFNAME: "" }), message("CNI_IFNAME"));
    assert.deepEqual(await missing({ CNI_CONTAINERID: "" }), message("CNI_CONTAINERID"));
    assert.deepEqual(
      await missing({ CNI_IFNAME: "", CNI_CONTAINERID: "", CNI_PATH: "" }),
      message("CNI_CONTAINERID,CNI_IFNAME,CNI_PATH"),
    );
    assert.deepEqual(await readdir(folder), []);
  });

  for (const [whose, spoil] of [
    ["everybody may write to", () => chmod(spool(), 0o777)],
    [
      "a group may write to",
      () => chown(spool(), process.getuid?.() ?? 0, NOBODY).then(() => chmod(spool(), 0o770)),
    ],
    ["is another user's", () => chown(spool(), NOBODY, NOBODY)],
  ] as const) {
    it(`spools no DEL into a folder that ${whose}`, IF_ROOT, async () => {
      await mkdir(spool());
      await spoil();
      const { code, msg } = errorOf(await runClient(env("DEL")));
      assert.equal(code, 5);
      assert.match(msg, /cannot be spooled beside its socket: others may write to its folder$/);
      assert.deepEqual(await readdir(spool()), []);
    });
  }

  it(
    "does nothing for whoever runs it as somebody else, whatever the environment says",
    IF_ROOT,
    async () => {
      const copy = join(folder, "berth");
      await copyFile(BINARY, copy);
      await chown(copy, NOBODY, NOBODY);
      await chmod(copy, 0o6755);
      await chmod(folder, 0o755);
      for (const command of ["ADD", "DEL", "STATUS"]) {
        const finished = await follow(spawn(copy, { env: env(command) }), "{}").finished;
        const { code, msg } = errorOf(finished);
        assert.deepEqual([code, msg], [4, "berth must not be set-user-ID: chmod u-s,g-s it"]);
      }
      assert.ok(!existsSync(spool()));
    },
  );

  it("fails a DEL that can be spooled nowhere", async () => {
    await writeFile(spool(), "in the way");
    assert.deepEqual(errorOf(await runClient(env("DEL"))), {
      code: 5,
      msg: `berth agent is not running (no socket at ${path}), and the release cannot be spooled beside its socket: a part of the path is no folder`,
    });
    const { code, msg } = errorOf(await runClient(env("DEL", { BERTH_SOCKET: "/proc/none/agent.sock" })));
    assert.equal(code, 5);
    assert.match(msg, /cannot be spooled beside its socket: /);
    path = join(folder, "x".repeat(108));
    await mkdir(join(folder, "other"));
    assert.match(
      errorOf(await runClient(env("ADD"))).msg,
      /^berth agent cannot be reached \(longer than 107 bytes: /,
    );
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
