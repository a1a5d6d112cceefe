// SPDX-License-Identifier: Apache-2.0
// A disk that fills up or turns read-only: docs/recovery.md says what to do then, and is followed here.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { ApiServer } from "../support/api-server.ts";
import { eventually } from "../support/eventually.ts";
import { namespace, pod, pool } from "../support/manifests.ts";
import { start } from "../support/process.ts";
import { DONE, networkOf, Runtime, type Sandbox, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";
import { SmallDisk, skipWithoutMount } from "./small-disk.ts";
import { whyNot } from "./wreck.ts";

const BERTH = fileURLToPath(new URL("../../build/berth", import.meta.url));

describe("a disk that takes no more", await skipWithoutMount(), () => {
  const FULL =
    /^the disk under .*berth\.db is full; free some space on it, what was stored before is intact$/;
  let stack: ChildStack;
  let disk: SmallDisk;
  let runtime: Runtime;
  let podIdentity: Sandbox;

  before(async () => {
    stack = await ChildStack.start({ manifests: [namespace("shop"), pool("db", ["10.20.0.0/24"])] });
    await stack.stop();
    disk = await SmallDisk.over(stack.dataDir);
    await stack.start();
    const local = { ranges: [[{ subnet: "10.30.0.0/24" }]] };
    runtime = new Runtime({ socket: stack.socket, network: networkOf(local) });
    const kept = await create("p0", "10.20.0.10");
    podIdentity = sandboxOf(kept.kind === "kept" ? kept.object : undefined);
    assert.deepEqual(await runtime.attach(podIdentity), ["10.20.0.10/24"]);
  });
  after(async () => {
    await stack?.kill9().catch(() => {});
    await disk?.remove();
    await stack?.remove();
  });

  async function create(name: string, address: string) {
    const api = new ApiServer(stack.endpoint);
    const outcome = await api.write(pod("shop", name, { "berth.dev/ips": address }));
    api.close();
    return outcome;
  }

  async function status(): Promise<string> {
    const env = { CNI_COMMAND: "STATUS", CNI_PATH: "/usr/lib/cni", BERTH_SOCKET: stack.socket };
    const text = JSON.stringify(networkOf({}, { cniVersion: "1.1.0" }));
    const { rc, stdout } = await start(BERTH, [], { env, stdin: { text } }).ended;
    return `${rc} ${stdout === "" ? "" : JSON.parse(stdout).code}`;
  }

  it("refuses what must be stored, in words, and does nothing by halves", async () => {
    disk.fill();
    const before = await stack.dump();
    for (let i = 0; i < 5; i++) {
      const answer = await runtime.add(sandboxOf(undefined));
      assert.ok(answer.kind === "failed" && answer.code === 5, JSON.stringify(answer));
      assert.match(answer.msg, FULL);
      const outcome = await create(`late-${i}`, `10.20.0.${20 + i}`);
      assert.ok(outcome.kind === "refused" && outcome.reason === "STORE_FULL", JSON.stringify(outcome));
      assert.match(outcome.message, FULL);
    }
    assert.deepEqual(await runtime.check(podIdentity), DONE);
    assert.equal(await status(), "1 51");
    await runtime.detach(podIdentity); // to the spool, which is on another disk
    assert.equal(await stack.dump(), before);
  });

  it("serves again when there is room, and does what waited", async () => {
    disk.free();
    assert.equal(await status(), "0 ");
    await eventually("the spooled release is done", async () =>
      (await stack.attachedContainers()).length === 0 ? true : undefined,
    );
    assert.equal((await create("late-0", "10.20.0.20")).kind, "kept");
    assert.equal((await runtime.attach(sandboxOf(undefined))).length, 1);
    assert.equal(await stack.findings(), "");
  });

  it("that is full or read-only keeps a stack from starting, in words, and lets one be read", async () => {
    await stack.kill9();
    disk.fill();
    assert.match(
      await whyNot(stack),
      /ended with 2 .*\n.*the disk (under .* )?is full; free some space on it/,
    );
    disk.free();
    // after a kill the write-ahead log is beside the file, after a stop it is not
    for (const end of [() => stack.kill9(), () => stack.stop()]) {
      await stack.start();
      await end();
      await disk.remount("ro");
      assert.match(
        await whyNot(stack),
        /ended with 2 .*\n.*berth\.db cannot be written; check its owner and mode, and how its file system is mounted/,
      );
      const { rc, stdout } = await stack.berthctl("get", "claims", "-A");
      assert.equal(rc, 0);
      assert.match(stdout, /late-0 +10\.20\.0\.20/);
      await disk.remount("rw");
    }
    await stack.start();
    assert.equal((await create("late-1", "10.20.0.21")).kind, "kept");
    assert.equal(await stack.findings(), "");
  });
});
