// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { type RequestListener, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { type LocalServer, serveLocally } from "./local-server.ts";

const ok: RequestListener = (_request, response) => response.end("ok");

describe("serveLocally", () => {
  let root = "";
  let path = "";
  let servers: LocalServer[] = [];
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "berth-local-"));
    path = join(root, "run", "webhook.sock");
  });
  afterEach(async () => {
    await Promise.all(servers.map((server) => server.close()));
    servers = [];
    await rm(root, { recursive: true });
  });

  const serve = async (at = path, app = ok) => {
    const server = await serveLocally({ app, path: at, log: noopLogger, clock: createClock() });
    servers.push(server);
    return server;
  };
  const modeOf = async (file: string) => (await stat(file)).mode & 0o777;

  function get(): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = request({ socketPath: path, path: "/", agent: false }, (response) => {
        text(response).then(resolve, reject);
      });
      call.on("error", reject);
      call.end();
    });
  }

  it("serves on a socket for its owner alone, whatever the umask and the folder were", async () => {
    await mkdir(join(root, "run"), { mode: 0o777 });
    await chmod(join(root, "run"), 0o777);
    const before = process.umask(0);
    try {
      await serve();
    } finally {
      process.umask(before);
    }
    assert.deepEqual([await modeOf(join(root, "run")), await modeOf(path)], [0o700, 0o600]);
    assert.equal(await get(), "ok");
  });

  it("takes the place of what a killed one left, and leaves nothing itself", async () => {
    await mkdir(join(root, "run"));
    await writeFile(path, "");
    const server = await serve();
    assert.equal(await get(), "ok");
    await server.close();
    assert.equal(existsSync(path), false);
  });

  it("answers what is under way when it closes", async () => {
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const server = await serve(path, (_request, response) => {
      enter();
      void gate.then(() => response.end("done"));
    });
    const asking = get();
    await entered;
    const closing = server.close();
    release();
    assert.equal(await asking, "done");
    await closing;
  });

  it("names a path that cannot be listened on", async () => {
    const message = /^cannot listen on /;
    await assert.rejects(serve(join(root, "x".repeat(200))), { code: "CONFIG_INVALID", message });
    await writeFile(join(root, "file"), "");
    await assert.rejects(serve(join(root, "file", "sock")), { code: "CONFIG_INVALID", message });
  });
});
