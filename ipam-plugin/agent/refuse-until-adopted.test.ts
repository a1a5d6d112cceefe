// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { access, lstat, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { SmallDisk, skipWithoutMount } from "../../test/crash/small-disk.ts";
import { eventually } from "../../test/support/eventually.ts";
import { bindToBoot, markFileOf, markText } from "./journal/boot-mark.ts";
import { startWhenBound } from "./refuse-until-adopted.ts";
import { type Call, NOT_ACCEPTED } from "./rpc/frame.ts";
import { encodeCall } from "./testing/client-frames.ts";
import { SocketBench, until } from "./testing/socket-bench.ts";

const NETWORK = { cniVersion: "1.1.0", name: "net", type: "bridge", ipam: { type: "berth" } };
const OURS = { bootId: "boot-1", journal: "ours", position: 7 };
const FULL =
  "the disk under /var/lib/berth/berth.db is full; free some space on it, what was stored before is intact";

function callFor(command: string): Call {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: "box",
    CNI_IFNAME: "eth0",
    CNI_NETNS: "/n",
    CNI_PATH: "/b",
  };
  return { startNs: 1n, env: new Map(Object.entries(env)), stdin: Buffer.from(JSON.stringify(NETWORK)) };
}

describe("an agent whose journal's disk is full", () => {
  let bench: SocketBench;
  beforeEach(async () => {
    bench = await SocketBench.open();
  });
  afterEach(() => bench.close());

  const startWith = (start: () => Promise<string>, signal: AbortSignal = new AbortController().signal) => {
    const { path: socketPath, clock, log } = bench;
    const mark = markFileOf(socketPath);
    return startWhenBound(start, { socketPath, mark, runtimeRecords: async () => [], clock, log, signal });
  };
  const isThere = async () => {
    await until(() => bench.clock.sleeping > 0);
    await access(bench.path);
  };
  const ask = async (command: string) => {
    const client = bench.client(encodeCall(callFor(command)));
    const reply = await client.reply();
    client.socket.destroy();
    return reply;
  };
  const passes = (holds: () => boolean) =>
    until(() => {
      bench.clock.advance(1_000);
      return holds();
    });

  it("refuses in words what it could not keep, leaves a DEL to the spool, and serves once there is room", async () => {
    let isFull = true;
    let attempts = 0;
    const started = startWith(async () => {
      attempts++;
      if (isFull) throw new BerthError("STORE_FULL", FULL);
      return "serving";
    });
    await isThere();
    const { exitStatus, stdout } = await ask("ADD");
    assert.deepEqual([exitStatus, JSON.parse(stdout)["code"], JSON.parse(stdout)["msg"]], [1, 5, FULL]);
    assert.equal((await ask("DEL")).exitStatus, NOT_ACCEPTED, "the client spools it");
    await passes(() => attempts >= 3);
    assert.deepEqual(
      bench.lines,
      ["the disk of the journal or of its mark is full; nothing is served"],
      "said once",
    );
    isFull = false;
    let serving = "";
    void started.then((value) => {
      serving = value;
    });
    await passes(() => serving === "serving");
    await assert.rejects(access(bench.path), "the socket is left to who serves");
  });

  it("ends when it is told to, and at once for any other fault", async () => {
    const stop = new AbortController();
    const started = startWith(async () => {
      throw new BerthError("STORE_FULL", FULL);
    }, stop.signal);
    started.catch(() => {});
    await isThere();
    stop.abort();
    let ended: unknown;
    started.catch((error: unknown) => {
      ended = error;
    });
    await passes(() => ended !== undefined);
    assert.ok(ended instanceof BerthError && ended.code === "STORE_FULL");
    const corrupt = startWith(async () => {
      throw new BerthError("STATE_CORRUPT", "no");
    });
    await assert.rejects(corrupt, { code: "STATE_CORRUPT" });
  });
});

describe("a mark for which there is no room", await skipWithoutMount(), () => {
  it("is waited for, and every call refused meanwhile", async () => {
    const folder = await mkdtemp(join(tmpdir(), "mark-"));
    const disk = await SmallDisk.over(folder);
    try {
      const socketPath = join(folder, "agent.sock");
      const mark = markFileOf(socketPath);
      const clock = new ManualClock();
      const { signal } = new AbortController();
      const logged: string[] = [];
      const log = { ...noopLogger, error: (message: string) => void logged.push(message) };
      disk.fill();
      const bound = startWhenBound(
        () =>
          bindToBoot(mark, {
            ...{ ...OURS, place: "/data/agent.db" },
            unknownSandboxes: async () => [],
            rename: async () => undefined,
          }),
        {
          ...{ socketPath, mark, runtimeRecords: async () => [], clock, log, signal },
        },
      );
      await eventually("it waits", () => (clock.sleeping > 0 ? true : undefined));
      assert.ok((await lstat(socketPath)).isSocket());
      disk.free();
      let isBound = false;
      void bound.then(() => {
        isBound = true;
      });
      await eventually("it is written", () => {
        clock.advance(1_000);
        return isBound ? true : undefined;
      });
      assert.equal(await mark.read(), markText(OURS));
      assert.deepEqual(logged, ["the disk of the journal or of its mark is full; nothing is served"]);
    } finally {
      await disk.remove();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
