// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Ended, run, type Started, start } from "../support/process.ts";
import { commandFolder } from "../support/programs.ts";

export const BERTHCTL = join(commandFolder(), "berthctl");
const PLUGIN = join(commandFolder(), "berth");
/** The launcher is a shell script; nothing else of this process's surroundings is handed on. */
export const ENV = { PATH: "/usr/bin:/bin" };
const NETWORK = JSON.stringify({ cniVersion: "1.0.0", name: "net", type: "bridge", ipam: { type: "berth" } });

export async function newFolder(): Promise<string> {
  return await mkdtemp(join(tmpdir(), "berth-"));
}

export async function removeFolder(dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true, force: true });
}

/** A data folder that is removed when the test is over. */
export async function folderFor(test: TestContext): Promise<string> {
  const dataDir = await newFolder();
  test.after(() => removeFolder(dataDir));
  return dataDir;
}

/** Runs berthctl on a folder to its end. */
export async function berthctl(dataDir: string, args: readonly string[], stdin = ""): Promise<Ended> {
  return await run(BERTHCTL, [...args, "--data", dataDir], { env: ENV, stdin: { text: stdin } });
}

/** A `berthctl up` that runs. */
export class Stack {
  readonly dataDir: string;
  readonly #started: Started;

  private constructor(dataDir: string, started: Started) {
    this.dataDir = dataDir;
    this.#started = started;
  }

  /** Resolves when it has said that it is ready. Rejects with what it printed if it ends instead. */
  static async up(dataDir: string, ...args: readonly string[]): Promise<Stack> {
    const started = start(BERTHCTL, ["up", "--data", dataDir, "--node", "node-a", ...args], { env: ENV });
    const ready = new Promise<void>((resolve) => started.child.stdout?.once("data", () => resolve()));
    const ended = started.ended.then(({ rc, stderr }) => {
      throw new Error(`berthctl up ended with ${rc}: ${stderr}`);
    });
    await Promise.race([ready, ended]);
    ended.catch(() => {}); // it may end as it likes from here on
    return new Stack(dataDir, started);
  }

  call(...args: readonly string[]): Promise<Ended> {
    return berthctl(this.dataDir, args);
  }

  apply(...objects: readonly unknown[]): Promise<Ended> {
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    return berthctl(this.dataDir, ["apply", "-f", "-"], list);
  }

  /** Runs the CNI plugin for the sandbox of a pod in namespace shop. */
  async cni(verb: "ADD" | "DEL", pod: string): Promise<Ended> {
    return await run(PLUGIN, [], {
      env: {
        BERTH_SOCKET: join(this.dataDir, "agent.sock"),
        CNI_COMMAND: verb,
        CNI_CONTAINERID: `sandbox-of-${pod}`,
        CNI_NETNS: `/run/netns/of-${pod}`,
        CNI_IFNAME: "eth0",
        CNI_PATH: "/opt/cni/bin",
        CNI_ARGS: `K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod};K8S_POD_INFRA_CONTAINER_ID=sandbox-of-${pod}`,
      },
      stdin: { text: NETWORK },
    });
  }

  /** Ends it and tells how it ended. Safe to repeat. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Ended> {
    this.#started.child.kill(signal);
    return await this.#started.ended;
  }
}
