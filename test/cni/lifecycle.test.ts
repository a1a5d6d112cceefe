// SPDX-License-Identifier: Apache-2.0
// What happens to sandboxes in the life of a node: restarts, crashes of the runtime, of its plugins and of Berth.
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readdirSync, readFileSync, readlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../support/eventually.ts";
import { namespace, pod, pool } from "../support/manifests.ts";
import { skipWithoutNetwork } from "../support/netns.ts";
import { type NetworkedStack, networkedSuite } from "../support/networked-stack.ts";
import { networkOf, Runtime } from "../support/runtime.ts";

const MANIFESTS = [namespace("shop"), pool("db", ["10.20.0.0/24", "fd00:20::/64"], { cooldown: "0s" })];
/** Long enough for an ADD that does not wait for anything to be over. */
const A_WHILE_MS = 300;

describe("sandboxes", await skipWithoutNetwork(), () => {
  let site: NetworkedStack;

  networkedSuite(MANIFESTS, (started) => {
    site = started;
  });

  /** The IPAM plugin by itself. */
  function ipamAlone(): Runtime {
    return new Runtime({ socket: site.stack.socket, network: networkOf() });
  }

  async function nothingAttached(): Promise<void> {
    await eventually("nothing is attached", async () =>
      (await site.stack.attachedContainers()).length === 0 ? true : undefined,
    );
  }

  it("E0020 an ADD that is repeated gets the same answer", async () => {
    const runtime = ipamAlone();
    const { sandbox } = await site.pinned(["10.20.0.20/24", "fd00:20::20/64"]);
    const first = await runtime.add(sandbox);
    assert.equal(first.kind, "succeeded");
    assert.deepEqual(await runtime.add(sandbox), first);
    assert.deepEqual(await Promise.all([runtime.add(sandbox), runtime.add(sandbox)]), [first, first]);
    assert.deepEqual(await site.stack.attachedContainers(), [sandbox.containerID]);
    await runtime.detach(sandbox);
  });

  it("E0021 a sandbox that is made anew after its DEL has the pod's address again", async () => {
    const runtime = site.runtime("bridge");
    const own = ["10.20.0.21/24", "fd00:20::21/64"];
    const a = await site.pinned(own);
    assert.deepEqual(await runtime.attach(a.sandbox), own);
    await runtime.detach(a.sandbox);
    const b = await site.sandboxFor(a.kept);
    assert.deepEqual(await runtime.attach(b.sandbox), own);
    assert.deepEqual(await site.shown(b.netns), ["eth0 10.20.0.21/24", "eth0 fd00:20::21/64"]);
    await runtime.detach(b.sandbox);
  });

  it("E0022 without a DEL of the old sandbox too, and the DEL that comes late changes nothing", async () => {
    const runtime = site.runtime("bridge");
    const own = ["10.20.0.22/24"];
    const a = await site.pinned(own);
    await runtime.attach(a.sandbox);
    const b = await site.sandboxFor(a.kept);
    assert.deepEqual(await runtime.attach(b.sandbox), own);
    assert.deepEqual(await site.stack.attachedContainers(), [b.sandbox.containerID]);
    await runtime.detach(a.sandbox);
    await runtime.detach({ ...a.sandbox, netns: "" });
    assert.deepEqual(await site.stack.attachedContainers(), [b.sandbox.containerID]);
    assert.deepEqual(await site.shown(b.netns), ["eth0 10.20.0.22/24"]);
    assert.equal(
      (await site.stack.claim(`shop/${a.kept.metadata.name}`))?.status.attachment?.detached,
      false,
    );
    await runtime.detach(b.sandbox);
  });

  it("E0023 after a forced deletion the new pod waits for the DEL of the old sandbox, then has its address", async () => {
    const runtime = site.runtime("bridge");
    const own = ["10.20.0.23/24"];
    const a = await site.pinned(own);
    await runtime.attach(a.sandbox);
    await site.api.delete(a.kept);
    const next = await site.api.create(pod("shop", a.kept.metadata.name, { "berth.dev/ips": "10.20.0.23" }));
    assert.notEqual(next.metadata.uid, a.kept.metadata.uid);
    const b = await site.sandboxFor(next);
    const adding = runtime.attach(b.sandbox);
    const first = await Promise.race([adding, pause(A_WHILE_MS, "it waits")]);
    assert.equal(first, "it waits");
    assert.deepEqual(await site.stack.attachedContainers(), [a.sandbox.containerID]);
    await runtime.detach(a.sandbox);
    assert.deepEqual(await adding, own);
    await runtime.detach(a.sandbox);
    assert.deepEqual(await site.stack.attachedContainers(), [b.sandbox.containerID]);
    assert.deepEqual(await site.shown(b.netns), ["eth0 10.20.0.23/24"]);
    await runtime.detach(b.sandbox);
  });

  it("E0024 what was answered outlives kill -9 of the stack", async () => {
    const runtime = site.runtime("bridge");
    const own = ["10.20.0.24/24", "fd00:20::24/64"];
    const a = await site.pinned(own);
    const answer = await runtime.add(a.sandbox);
    await site.stack.kill9();
    await site.stack.start();
    site.reconnect();
    assert.deepEqual(await site.stack.attachedContainers(), [a.sandbox.containerID]);
    assert.deepEqual(await ipamAlone().attach(a.sandbox, { network: { name: "net-bridge" } }), own);
    const prevResult = answer.kind === "succeeded" ? answer.result : undefined;
    assert.equal((await runtime.check(a.sandbox, { network: { prevResult } })).kind, "succeeded");
    const { rc, stdout } = await site.stack.berthctl("check");
    assert.equal(rc, 0, stdout);
    await runtime.detach(a.sandbox);
    assert.deepEqual(await site.host.interfacesOf(a.netns), []);
    const b = await site.sandboxFor(a.kept);
    assert.deepEqual(await runtime.attach(b.sandbox), own);
    await runtime.detach(b.sandbox);
  });

  it("E0025 a DEL while the stack is down succeeds, and is done when the stack starts", async () => {
    const runtime = site.runtime("bridge");
    const a = await site.pinned(["10.20.0.25/24"]);
    await runtime.attach(a.sandbox);
    await site.stack.stop();
    await runtime.detach(a.sandbox);
    assert.deepEqual(await site.host.interfacesOf(a.netns), []);
    assert.deepEqual(await site.stack.attachedContainers(), [a.sandbox.containerID]);
    await site.stack.start();
    site.reconnect();
    assert.deepEqual(await site.stack.attachedContainers(), []);
    const b = await site.sandboxFor(a.kept);
    assert.deepEqual(await runtime.attach(b.sandbox), ["10.20.0.25/24"]);
    await runtime.detach(b.sandbox);
  });

  it("E0026 an ADD whose plugin is killed before it could pass the answer on gives everything back", async () => {
    const runtime = ipamAlone();
    const a = await site.pinned(["10.20.0.26/24"]);
    const clogged = new CloggedPipe(join(site.stack.folder, "clogged"));
    try {
      const adding = runtime.start("ADD", a.sandbox, { stdio: ["pipe", clogged.writer, "pipe"] });
      await eventually("it is attached and not answered", async () =>
        (await site.stack.attachedContainers()).length === 1 ? true : undefined,
      );
      adding.child.kill("SIGKILL");
      await adding.ended;
    } finally {
      clogged.close();
    }
    await nothingAttached();
    const b = await site.sandboxFor(a.kept);
    assert.deepEqual(await runtime.attach(b.sandbox), ["10.20.0.26/24"]);
    await runtime.detach(b.sandbox);
  });

  it("E0027 an ADD that outlives its main plugin gives everything back", async () => {
    const runtime = site.runtime("bridge");
    const a = await site.pinned(["10.20.0.27/24"]);
    await runtime.attach(a.sandbox);
    await site.api.delete(a.kept);
    const next = await site.api.create(pod("shop", a.kept.metadata.name, { "berth.dev/ips": "10.20.0.27" }));
    const b = await site.sandboxFor(next);
    const adding = runtime.start("ADD", b.sandbox);
    await untilConnected(adding.child); // and then its IPAM plugin waits for the DEL of the old sandbox
    adding.child.kill("SIGKILL");
    await runtime.detach(a.sandbox);
    await adding.ended;
    await nothingAttached();
    const c = await site.sandboxFor(next);
    assert.deepEqual(await runtime.attach(c.sandbox), ["10.20.0.27/24"]);
    await runtime.detach(c.sandbox);
  });

  it("E0028 an ADD that comes after the DEL of its sandbox, but began before, is refused", async () => {
    const runtime = ipamAlone();
    const { sandbox } = await site.pinned(["10.20.0.28/24"]);
    const adding = runtime.start("ADD", sandbox, { stdin: "later" });
    await untilConnected(adding.child);
    await runtime.detach(sandbox);
    adding.child.stdin?.end(JSON.stringify(networkOf()));
    const { rc, stdout } = await adding.ended;
    const { code, msg }: { code: number; msg: string } = JSON.parse(stdout);
    assert.deepEqual(
      { rc, code, msg },
      { rc: 1, code: 150, msg: "the sandbox was deleted while this ADD was under way" },
    );
    assert.deepEqual(await site.stack.attachedContainers(), []);
  });
});

/** Node.js makes pipes of sockets. */
const LAST_OF_STDIO = 2;

/** The IPAM plugin, the process itself or one that it started, has reached the agent. */
async function untilConnected({ pid }: ChildProcess): Promise<void> {
  await eventually("the IPAM plugin has reached the agent", () =>
    [pid ?? 0, ...childrenOf(pid ?? 0)].some(isBerthWithSocket) ? true : undefined,
  );
}

/** The kernel lists children by the thread that started them. */
function childrenOf(pid: number): readonly number[] {
  const tasks = `/proc/${pid}/task`;
  const lists = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/children`, "utf8"));
  return lists.flatMap((list) => list.split(" ").filter((text) => text !== "")).map(Number);
}

function isBerthWithSocket(pid: number): boolean {
  try {
    if (!readlinkSync(`/proc/${pid}/exe`).endsWith("/build/berth")) return false;
    const opened = readdirSync(`/proc/${pid}/fd`).filter((fd) => Number(fd) > LAST_OF_STDIO);
    return opened.some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith("socket:"));
  } catch {
    return false; // it is just changing, or gone
  }
}

/** A pipe that takes no more: whoever writes to it waits. */
class CloggedPipe {
  readonly writer: number;
  readonly #reader: number;

  constructor(path: string) {
    execFileSync("mkfifo", [path]);
    // Opened for both, so that neither open waits for the other end.
    this.#reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    this.writer = openSync(path, constants.O_WRONLY);
    const page = Buffer.alloc(4096);
    try {
      for (;;) writeSync(this.#reader, page);
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
    }
  }

  close(): void {
    closeSync(this.writer);
    closeSync(this.#reader);
  }
}
