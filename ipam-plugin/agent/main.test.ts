// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { AgentNode, agentEnvironment, startAgentProcess } from "../../test/api/agent-node.ts";
import { TokenConfig } from "../../test/api/token-config.ts";
import { buildPlugin } from "../../test/cni/plugin.ts";
import { SmallDisk, skipWithoutMount } from "../../test/crash/small-disk.ts";
import { eventually } from "../../test/support/eventually.ts";

let folder: string;
let port: number;
let nobody: Server;
/** Of an API server that accepts connections and says nothing. */
const kubeConfig = () =>
  new TokenConfig({ server: `https://127.0.0.1:${port}`, ca: "", user: "u", token: "t" });

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "berth-agent-"));
    nobody = createServer((socket) => socket.resume().on("error", () => {}));
    await new Promise<void>((done) => nobody.listen(0, "127.0.0.1", done));
    const address = nobody.address();
    port = typeof address === "object" && address !== null ? address.port : 0;
    writeFileSync(join(folder, "kubeconfig"), kubeConfig().exportConfig());
  });
  afterEach(async () => {
    await new Promise((done) => nobody.close(done));
    rmSync(folder, { recursive: true, force: true });
  });
}

describe("the agent's process", () => {
  setUp();

  it("says in one line what is wrong with its surroundings", async () => {
    const env = agentEnvironment(folder, "node-a");
    const fault = async (over: Readonly<Record<string, string>>) => {
      const { rc, stdout, stderr } = await startAgentProcess({ ...env, ...over }).ended;
      assert.deepEqual([rc, stdout], [1, ""]);
      return stderr.split("\n").filter((line) => line !== "" && !line.includes('"level":"info"'));
    };
    mkdirSync(join(folder, "socket"));
    writeFileSync(join(folder, "garbage"), "a: [");
    writeFileSync(join(folder, "garbage.conflist"), "{}");
    assert.deepEqual(
      await Promise.all([
        fault({ BERTH_NODE_NAME: "" }),
        fault({ BERTH_SOCKET: join(folder, "socket"), BERTH_DATA: join(folder, "other") }),
        fault({ BERTH_KUBECONFIG: join(folder, "none") }),
        fault({ BERTH_CNI_BIN: join(folder, "none"), BERTH_CNI_BINARY: join(folder, "kubeconfig") }),
        fault({
          BERTH_CONFLIST: join(folder, "garbage.conflist"),
          BERTH_CNI_CONF: folder,
          BERTH_SOCKET: join(folder, "third/agent.sock"),
          BERTH_DATA: join(folder, "third"),
        }),
      ]),
      [
        ["berth-agent: BERTH_NODE_NAME is not set; give it the name of this node"],
        [
          `berth-agent: ${join(folder, "socket")} exists and is no socket; remove it or choose another socket`,
        ],
        [
          `berth-agent: BERTH_KUBECONFIG ${join(folder, "none")} cannot be read: ENOENT: no such file or directory, open '${join(folder, "none")}'`,
        ],
        [
          `berth-agent: BERTH_CNI_BIN ${join(folder, "none")} is no folder here; mount the host's folder there`,
        ],
        [
          `berth-agent: BERTH_CONFLIST ${join(folder, "garbage.conflist")} is no CNI configuration list: it has no cniVersion`,
        ],
      ],
    );
  });

  it("serves while the API server says nothing, and ends cleanly when it is told to", async () => {
    await buildPlugin();
    const node = await AgentNode.make("node-a", kubeConfig());
    try {
      await node.serve();
      await node.runtime.del();
      assert.match(await node.runtime.refused("STATUS"), /^50 the claims of node node-a are not loaded/);
      assert.match(
        await (await node.fetch("/metrics")).text(),
        /berth_cni_requests_total\{verb="DEL",outcome="succeeded",code=""\} 1/,
      );
      const ended = await node.stop();
      assert.equal(ended?.rc, 0);
      assert.match(ended?.stderr ?? "", /"signal":"SIGTERM","message":"agent ends"\}\n$/);
      assert.ok(!existsSync(node.runtime.socket));
    } finally {
      await node.remove();
    }
  });
});

describe("an agent without a file descriptor", withoutPrlimit(), () => {
  setUp();

  it("says so and closes its socket, which nobody could accept a call at, and serves when it has some again", async () => {
    await buildPlugin();
    const node = await AgentNode.make("node-a", kubeConfig());
    const { socket } = node.runtime;
    const mayHave = (descriptors: number) =>
      execFileSync("prlimit", ["--pid", String(node.pid), `--nofile=${descriptors}:`]);
    const said = (words: string) => node.log.split(words).length - 1;
    try {
      await node.serve();
      mayHave(10); // it has more than that open
      await eventually("it is closed", () => (existsSync(socket) ? undefined : true));
      await eventually("it says so", () => (said("no file descriptor is left") > 0 ? true : undefined));
      assert.match(await node.runtime.refused("STATUS"), /no socket/);
      mayHave(1024);
      await eventually("it is open", () => (existsSync(socket) ? true : undefined));
      assert.match(await node.runtime.refused("STATUS"), /^50 the claims of node node-a are not loaded/);
      await eventually("it says so", () => (said("and is made again") > 0 ? true : undefined));
      assert.equal(said("no file descriptor is left"), 1);
      mayHave(10);
      await eventually("it is closed again", () => (existsSync(socket) ? undefined : true));
      assert.equal((await node.stop())?.rc, 0);
    } finally {
      await node.remove();
    }
  });
});

/** The limit of a process that runs. */
function withoutPrlimit(): { readonly skip?: string } {
  const isThere = spawnSync("prlimit", ["--version"]).error === undefined;
  return isThere ? {} : { skip: "there is no prlimit here" };
}

describe("an agent that starts on a full disk", await skipWithoutMount(), () => {
  setUp();

  it("serves once there is room, whether the one before was killed or ended in order", async () => {
    await buildPlugin();
    const node = await AgentNode.make("node-a", kubeConfig());
    let disk: SmallDisk | undefined;
    try {
      await node.serve();
      await node.stop();
      disk = await SmallDisk.over(join(node.folder, "data"));
      for (const signal of ["SIGTERM", "SIGKILL"] as const) {
        await node.serve();
        const metrics = `http://127.0.0.1:${node.port}/metrics`;
        // a version, or values, with more in the journal than there was
        const etcd = signal === "SIGKILL" ? { BERTH_ETCD_CERTIFICATES: folder } : {};
        node.more = { BERTH_PORT: String(node.port), ...etcd };
        await node.stop(signal);
        disk.fill();
        node.launch();
        await eventually("it refuses", () => (node.log.includes("nothing is served") ? true : undefined));
        // it says so in its log first, and is called in vain between two looks
        await eventually("it says why to calls", async () =>
          /^5 the disk under .*agent\.db is full; free some space/.test(await node.runtime.refused("STATUS"))
            ? true
            : undefined,
        );
        assert.match(await (await fetch(metrics)).text(), /^berth_ready 0$/m, "what the alert looks at");
        await node.runtime.del();
        disk.free();
        await eventually("it serves", () => node.port);
        await eventually("the spooled DEL is done", () =>
          node.log.includes("spooled release done") ? true : undefined,
        );
        await node.stop();
      }
    } finally {
      await node.stop("SIGKILL");
      await disk?.remove();
      await node.remove();
    }
  });
});

describe("an agent whose host has no room for its CNI plugin", await skipWithoutMount(), () => {
  setUp();

  it("serves, says so in its metrics, and installs it once there is room", async () => {
    const node = await AgentNode.make("node-a", kubeConfig());
    const bin = join(node.folder, "bin");
    mkdirSync(bin);
    let disk: SmallDisk | undefined;
    try {
      disk = await SmallDisk.over(bin);
      disk.fill();
      node.more = { BERTH_CNI_BIN: bin, BERTH_CNI_BINARY: join(folder, "kubeconfig") };
      await node.serve();
      const failing = async () =>
        /^berth_agent_plugin_failing (\d)$/m.exec(await (await node.fetch("/metrics")).text())?.[1];
      assert.equal(await failing(), "1");
      assert.match(await node.runtime.refused("STATUS"), /^50 the claims of node node-a are not loaded/);
      disk.free();
      await eventually("it is installed", async () => ((await failing()) === "0" ? true : undefined));
      assert.ok(existsSync(join(bin, "berth")));
      assert.equal((await node.stop())?.rc, 0);
    } finally {
      await node.stop("SIGKILL");
      await disk?.remove();
      await node.remove();
    }
  });
});
