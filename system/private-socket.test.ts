// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { lstatSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { listenPrivately } from "./private-socket.ts";

const OTHERS = 0o077;

for (const umask of [0, 0o22, 0o77]) {
  it(`a socket is closed to others from its first moment on, with umask ${umask.toString(8)}`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "berth-private-"));
    const server = createServer();
    const before = process.umask(umask);
    t.after(async () => {
      process.umask(before);
      await new Promise((done) => server.close(done));
      await rm(folder, { recursive: true, force: true });
    });
    const path = join(folder, "a.sock");
    // called before whoever called `listen` hears of it, so before anything is changed
    let first: number | undefined;
    server.on("listening", () => {
      first = lstatSync(path).mode & OTHERS;
    });
    await listenPrivately(server, path);
    assert.equal(first, 0);
    assert.equal(lstatSync(path).mode & 0o777, 0o600);
    assert.equal(process.umask(), umask);
  });
}

it("a path that cannot be listened on is told of, and the umask is as it was", async () => {
  const before = process.umask();
  await assert.rejects(listenPrivately(createServer(), "/proc/none/a.sock"), { syscall: "listen" });
  assert.equal(process.umask(), before);
});
