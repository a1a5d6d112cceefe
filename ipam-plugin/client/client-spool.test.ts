// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, copyFile, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { replaySpool } from "../agent/background/spool.ts";
import type { Call } from "../agent/rpc/frame.ts";
import { ClientBench, errorOf, SILENCE } from "./testing/client-bench.ts";
import { BINARY, follow, runClient } from "./testing/client-process.ts";

const NOBODY = 65_534;
const IF_ROOT = { skip: process.getuid?.() === 0 ? false : "becoming another user needs root" };

describe("CNI binary without a proper agent", () => {
  const bench = new ClientBench();
  const { env } = bench;

  it("spools a DEL so that the agent replays what the runtime asked", async () => {
    const args = 'K8S_POD_NAME=a=b;"ü\n';
    const earliest = process.hrtime.bigint();
    assert.deepEqual(
      await runClient(env("DEL", { CNI_ARGS: args, HOME: "/" }), '{"name":"n"}\0\xff'),
      SILENCE,
    );
    const [name] = await readdir(bench.spool);
    assert.match(name ?? "", /^\d{20}-\d+-[0-9a-f-]{36}\.del$/);
    assert.equal((await stat(bench.spool)).mode & 0o777, 0o700);
    assert.equal((await stat(join(bench.spool, name ?? ""))).mode & 0o777, 0o600);
    const calls: Call[] = [];
    const handle = async (call: Call) => {
      calls.push(call);
      return { exitStatus: 0, stdout: "", stderr: "" };
    };
    await replaySpool(bench.spool, handle, noopLogger);
    const [call] = calls;
    assert.ok(call !== undefined);
    const { BERTH_SOCKET: _, ...sent } = env("DEL", { CNI_ARGS: args });
    assert.deepEqual(Object.fromEntries(call.env), sent);
    assert.equal(call.stdin.toString(), '{"name":"n"}\0\xff');
    assert.ok(call.startNs > earliest && call.startNs < process.hrtime.bigint());
  });

  it("spools 100 DELs at once into folders that are not there yet", async () => {
    bench.path = join(bench.folder, "run", "berth", "agent.sock");
    const ids = Array.from({ length: 100 }, (_, i) => `c${i}`);
    const finished = await Promise.all(ids.map((id) => runClient(env("DEL", { CNI_CONTAINERID: id }))));
    assert.deepEqual(finished, Array(100).fill(SILENCE));
    const seen: (string | undefined)[] = [];
    const handle = async (call: Call) => {
      seen.push(call.env.get("CNI_CONTAINERID"));
      return { exitStatus: 0, stdout: "", stderr: "" };
    };
    const { released } = await replaySpool(join(bench.folder, "run", "berth", "spool"), handle, noopLogger);
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
    assert.deepEqual(await readdir(bench.folder), []);
  });

  for (const [whose, spoil] of [
    ["everybody may write to", () => chmod(bench.spool, 0o777)],
    [
      "a group may write to",
      () => chown(bench.spool, process.getuid?.() ?? 0, NOBODY).then(() => chmod(bench.spool, 0o770)),
    ],
    ["is another user's", () => chown(bench.spool, NOBODY, NOBODY)],
  ] as const) {
    it(`spools no DEL into a folder that ${whose}`, IF_ROOT, async () => {
      await mkdir(bench.spool);
      await spoil();
      const { code, msg } = errorOf(await runClient(env("DEL")));
      assert.equal(code, 5);
      assert.match(msg, /cannot be spooled beside its socket: others may write to its folder$/);
      assert.deepEqual(await readdir(bench.spool), []);
    });
  }

  it(
    "does nothing for whoever runs it as somebody else, whatever the environment says",
    IF_ROOT,
    async () => {
      const copy = join(bench.folder, "berth");
      await copyFile(BINARY, copy);
      await chown(copy, NOBODY, NOBODY);
      await chmod(copy, 0o6755);
      await chmod(bench.folder, 0o755);
      for (const command of ["ADD", "DEL", "STATUS"]) {
        const finished = await follow(spawn(copy, { env: env(command) }), "{}").finished;
        const { code, msg } = errorOf(finished);
        assert.deepEqual([code, msg], [4, "berth must not be set-user-ID: chmod u-s,g-s it"]);
      }
      assert.ok(!existsSync(bench.spool));
    },
  );

  it("fails a DEL that can be spooled nowhere", async () => {
    await writeFile(bench.spool, "in the way");
    assert.deepEqual(errorOf(await runClient(env("DEL"))), {
      code: 5,
      msg: `berth agent is not running (no socket at ${bench.path}), and the release cannot be spooled beside its socket: a part of the path is no folder`,
    });
    const { code, msg } = errorOf(await runClient(env("DEL", { BERTH_SOCKET: "/proc/none/agent.sock" })));
    assert.equal(code, 5);
    assert.match(msg, /cannot be spooled beside its socket: /);
    bench.path = join(bench.folder, "x".repeat(108));
    await mkdir(join(bench.folder, "other"));
    assert.match(
      errorOf(await runClient(env("ADD"))).msg,
      /^berth agent cannot be reached \(longer than 107 bytes: /,
    );
  });
});
