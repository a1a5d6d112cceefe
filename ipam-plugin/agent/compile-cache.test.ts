// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { AgentNode } from "../../test/api/agent-node.ts";
import { TokenConfig } from "../../test/api/token-config.ts";
import { SmallDisk, skipWithoutMount } from "../../test/crash/small-disk.ts";

/** Of an API server that accepts connections and says nothing. */
let nobody: Server;
let node: AgentNode;
/** In the journal's folder, as the chart has it. */
let kept: string;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    nobody = createServer((socket) => socket.resume().on("error", () => {}));
    await new Promise<void>((done) => nobody.listen(0, "127.0.0.1", done));
    const address = nobody.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const server = `https://127.0.0.1:${port}`;
    node = await AgentNode.make("node-a", new TokenConfig({ server, ca: "", user: "u", token: "t" }));
    kept = join(node.folder, "data/compile-cache");
    node.more = { NODE_COMPILE_CACHE: kept };
  });
  after(async () => {
    await node?.remove();
    await new Promise((done) => nobody.close(done));
  });
}

describe("what an agent has compiled", () => {
  setUp();

  it("is there once it serves, and nothing of another version of Node.js, nor what is not finished", async () => {
    mkdirSync(join(kept, "v20.1.0-x64-0a1b2c3d-0"), { recursive: true });
    writeFileSync(join(kept, "v20.1.0-x64-0a1b2c3d-0/8677e447"), "code");
    writeFileSync(join(kept, "notes"), "a person's");
    await node.serve();
    await node.stop("SIGKILL");
    const [notes, own = "", ...others] = readdirSync(kept).sort();
    assert.deepEqual([notes, others], ["notes", []]);
    const files = readdirSync(join(kept, own));
    assert.ok(files.length > 0);
    writeFileSync(join(kept, own, `${files[0]}.aB3xY9`), "half of it");
    await node.serve();
    await node.stop("SIGKILL");
    assert.deepEqual(readdirSync(join(kept, own)).sort(), files.sort());
  });

  it("stays where other programs may have theirs", async () => {
    const shared = mkdtempSync(join(tmpdir(), "berth-compiled-"));
    mkdirSync(join(shared, "v20.1.0-x64-0a1b2c3d-0"));
    node.more = { NODE_COMPILE_CACHE: shared };
    try {
      await node.serve();
      await node.stop("SIGKILL");
      assert.ok(existsSync(join(shared, "v20.1.0-x64-0a1b2c3d-0")));
    } finally {
      rmSync(shared, { recursive: true, force: true });
    }
  });
});

describe("what an agent has compiled, on a disk with little room", await skipWithoutMount(), () => {
  setUp();
  it("is not kept, for the journal needs it", async () => {
    mkdirSync(join(node.folder, "data"));
    const disk = await SmallDisk.over(join(node.folder, "data"));
    try {
      mkdirSync(join(kept, "v20.1.0-x64-0a1b2c3d-0"), { recursive: true });
      await node.serve();
      assert.ok(!existsSync(kept));
      await node.stop("SIGTERM");
      assert.ok(!existsSync(kept));
    } finally {
      await node.stop("SIGKILL");
      await disk.remove();
    }
  });
});
