// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createClock } from "../../system/clock.ts";
import { stackFileOf } from "../backend/stack-file.ts";
import { Folder } from "../testing/folder.ts";
import { waitForStack } from "./stack-wait.ts";

const STACK = {
  pid: 1,
  webhook: "https://127.0.0.1:1",
  ca: "ca.crt",
  cert: "",
  key: "",
  socket: "",
  node: "a",
};

describe("waitForStack", () => {
  it("waits behind a stack that was killed for the next one, and says so once", async (t) => {
    const folder = await Folder.empty(t);
    const { dataDir } = folder;
    const reviews = join(dataDir, "reviews.sock");
    await writeFile(stackFileOf(dataDir), JSON.stringify({ ...STACK, reviews }));
    const out = { stdout: "", stderr: "" };
    const { io } = folder.context(out);
    let looked = 0;
    const server = createServer();
    t.after(() => server.close());
    const real = createClock();
    const sleep = async (ms: number) => {
      if (++looked === 3) {
        server.listen(reviews);
        await once(server, "listening");
      }
      await real.sleep(ms);
    };
    const found = await waitForStack({ dataDir, io: { ...io, clock: { ...real, sleep } } }, 600_000);
    assert.deepEqual([found.reviews, looked], [reviews, 3]);
    assert.equal(out.stderr, `no berth stack is ready on ${dataDir}; waiting for one up to 10m (--wait)\n`);
  });

  it("waits no longer when it is given up", async (t) => {
    const folder = await Folder.empty(t);
    const out = { stdout: "", stderr: "" };
    const { dataDir, io } = folder.context(out);
    const given = new AbortController();
    let looked = 0;
    const sleep = async () => {
      assert.equal(++looked, 1);
      given.abort();
    };
    const waiting = waitForStack(
      { dataDir, io: { ...io, clock: { ...createClock(), sleep } } },
      600_000,
      given.signal,
    );
    await assert.rejects(waiting, { code: "NOT_READY" });
  });

  it("does not wait when it was told not to", async (t) => {
    const folder = await Folder.empty(t);
    const out = { stdout: "", stderr: "" };
    await assert.rejects(waitForStack(folder.context(out), 0), { code: "NOT_READY" });
    assert.equal(out.stderr, "");
  });
});
