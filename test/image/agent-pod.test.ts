// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { chownSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { Caller } from "../cni/caller.ts";
import { whyNoNetwork } from "../support/netns.ts";
import { AgentPod, messagesOf } from "./agent-pod.ts";
import { Archive } from "./archive.ts";
import { whyNoContainer } from "./container.ts";
import { Sandboxes } from "./sandboxes.ts";

const why = (await whyNoContainer()) ?? (await whyNoNetwork());

let image: Archive;
let silent: Server;
let sandboxes: Sandboxes;
let pod: AgentPod;
let runtime: Caller;

describe("the agent in a pod without rights, called from its host", { skip: why ?? false }, () => {
  before(async () => {
    image = await Archive.open();
    silent = createServer((socket) => socket.resume().on("error", () => {}));
    await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
  });
  after(() => {
    silent?.close();
    image?.close();
  });
  beforeEach(async () => {
    const address = silent.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    sandboxes = new Sandboxes();
    pod = new AgentPod(image, { port, token: "t", ca: "" });
    runtime = new Caller(pod.socket);
    await sandboxes.make(); // makes their folder a mount that is shared, as it is on a node
  });
  afterEach(async () => {
    runtime.close();
    await pod.remove();
    await sandboxes.close();
  });

  it("installs its plugin, and no conflist before it knows its claims", async () => {
    const agent = await pod.start();
    const plugin = join(pod.folder, "bin/berth");
    assert.deepEqual(readFileSync(plugin), readFileSync(join(image.root, "opt/berth/bin/berth")));
    assert.equal(statSync(plugin).mode & 0o777, 0o755);
    assert.deepEqual(readdirSync(join(pod.folder, "net.d")), []);
    assert.equal((await agent.stop()).rc, 0);
    assert.ok(!existsSync(pod.socket));
  });

  it("sees the sandboxes of its host, those too that are made later", async () => {
    await pod.hadNoPools();
    const agent = await pod.start();
    const netns = await sandboxes.make();
    const first = await runtime.add({ cid: "seen", netns });
    const none = { conf: { "cni.dev/valid-attachments": [] } };
    await runtime.silently("GC", none);
    assert.deepEqual(await runtime.add({ cid: "seen", netns }), first);
    await sandboxes.remove(netns);
    await runtime.silently("GC", none);
    assert.notDeepEqual(await runtime.add({ cid: "seen", netns: await sandboxes.make() }), first);
    assert.deepEqual(messagesOf(agent, "warn"), []);
  });

  it("knows the host's own network namespace, which is no sandbox", async () => {
    await pod.start();
    const netns = await sandboxes.ofHost();
    assert.match(await runtime.refused("ADD", { netns }), /^8 plugin's netns and netns from CNI_NETNS/);
  });

  it("tells an ADD that began before the DEL of its sandbox from a new one", async () => {
    await pod.hadNoPools();
    await pod.start();
    const netns = await sandboxes.make();
    const late = await runtime.begin("ADD", { netns });
    await runtime.del({ netns });
    const { rc, stdout } = await late.finish();
    assert.equal(rc, 1);
    assert.match(stdout, /the sandbox was deleted while this ADD was under way/);
    assert.equal((await runtime.add({ netns })).length, 1);
  });

  it("keeps what it has compiled for its next start, and compiles anew what is damaged of it", async () => {
    const kept = join(pod.folder, "data/compile-cache");
    const taken = async () => {
      const agent = await pod.start({ env: { NODE_DEBUG_NATIVE: "COMPILE_CACHE" } });
      const { stdout, stderr } = await agent.stop();
      return /agent\/main\.js was (\w+ ?\w+)/.exec(stdout + stderr)?.[1];
    };
    assert.equal(await taken(), "not initialized");
    assert.equal(await taken(), "accepted");
    const files = readdirSync(kept, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    for (const { parentPath, name } of files) {
      const file = join(parentPath, name);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.fill(0, bytes.length >> 1));
    }
    assert.equal(await taken(), "not initialized");
  });

  it("says at the start what it cannot see", async () => {
    const agent = await pod.start({ sandboxes: false });
    assert.deepEqual(messagesOf(agent, "warn"), ["the sandboxes of the host cannot be seen"]);
  });

  it("says at the start what it may not write", async () => {
    chownSync(join(pod.folder, "bin"), 1001, 1001);
    const readOnly = { BERTH_CNI_BIN: "/opt" };
    for (const [env, words] of [
      [
        {},
        "/host/cni/bin belongs to uid 1001 and may not be written; give the agent the capability DAC_OVERRIDE, or the folder to root",
      ],
      [readOnly, "/opt is read-only; mount it so that the agent may write"],
    ] as const) {
      const { rc, stderr } = await (await pod.start({ env })).ended;
      assert.equal(rc, 1);
      assert.deepEqual(
        stderr.split("\n").filter((line) => line.startsWith("berth-agent: ")),
        [`berth-agent: BERTH_CNI_BIN ${words}`],
      );
    }
  });
});
