// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../allocator/base/errors.ts";
import { Caller } from "../cni/caller.ts";
import { eventually } from "../support/eventually.ts";
import { compileCache, type Ended, type Env, type Started, start } from "../support/process.ts";
import { programFile } from "../support/programs.ts";
import type { TokenConfig } from "./token-config.ts";

/** Beside hundreds of pods that are made it may wait for a processor as long. */
const STARTED_MS = 300_000;
const MAIN = programFile("ipam-plugin/agent/main");

/** The environment of an agent's process. */
export function agentEnvironment(folder: string, node: string): Env {
  return {
    BERTH_NODE_NAME: node,
    BERTH_SOCKET: join(folder, "run/agent.sock"),
    BERTH_DATA: join(folder, "data"),
    BERTH_PORT: "0",
    BERTH_CNI_RESULTS: join(folder, "results"),
    BERTH_KUBECONFIG: join(folder, "kubeconfig"),
  };
}

/** Starts `node ipam-plugin/agent/main.ts`, or that of another version, with this environment, and where node keeps what it compiled. */
export function startAgentProcess(env: Env, main = MAIN): Started {
  return start(process.execPath, [main], { env: { ...compileCache(), ...env } });
}

/** A node of a cluster: a real agent process with a folder of its own, and a runtime that calls build/berth. */
export class AgentNode {
  readonly name: string;
  readonly folder: string;
  readonly runtime: Caller;
  /** Of the version that the next process is; absent: this one. */
  main: string | undefined;
  /** More variables of the next process. */
  more: Env = {};
  #started: Started | undefined;
  #log = "";

  private constructor(name: string, folder: string) {
    this.name = name;
    this.folder = folder;
    this.runtime = new Caller(agentEnvironment(folder, name)["BERTH_SOCKET"] ?? "");
    this.runtime.ipam = {};
  }

  /** Its agent does not run yet. */
  static async make(name: string, kubeConfig: Pick<TokenConfig, "exportConfig">): Promise<AgentNode> {
    const folder = await mkdtemp(join(tmpdir(), "berth-node-"));
    const node = new AgentNode(name, folder);
    await node.reach(kubeConfig);
    return node;
  }

  /** How the next process reaches the API server. */
  async reach(kubeConfig: Pick<TokenConfig, "exportConfig">): Promise<void> {
    await writeFile(join(this.folder, "kubeconfig"), kubeConfig.exportConfig(), { mode: 0o600 });
  }

  /** Starts the agent, which may refuse to serve. */
  launch(): void {
    this.#log = "";
    const started = startAgentProcess(
      { ...agentEnvironment(this.folder, this.name), ...this.more },
      this.main,
    );
    this.#started = started;
    started.child.stderr?.on("data", (text: string) => {
      this.#log += text;
    });
  }

  /** Starts the agent and waits until it serves. */
  async serve(): Promise<void> {
    this.launch();
    await this.#until("serves", () => this.port);
  }

  /** Starts the agent and waits until it has loaded its claims. */
  async start(): Promise<void> {
    await this.serve();
    await this.untilReady();
  }

  async untilReady(): Promise<void> {
    await this.#until("is ready", async () =>
      (await this.fetch("/readyz")).status === 200 ? true : undefined,
    );
  }

  /** As long as its process is there: on a busy machine one takes its time. What it wrote is told where it is given up. */
  async #until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<void> {
    const child = this.#started?.child;
    const hasEnded = () => child?.exitCode !== null || child.signalCode !== null;
    try {
      await eventually(`the agent of ${this.name} ${what}`, () => (hasEnded() ? true : look()), STARTED_MS);
    } catch (error) {
      throw new Error(`${messageOf(error)}: ${this.#log}`);
    }
    assert.ok(!hasEnded(), `the agent of ${this.name} has ended: ${this.#log}`);
  }

  /** What it wrote to standard error. */
  get log(): string {
    return this.#log;
  }

  /** That of metrics and probes; undefined until it serves. */
  get port(): number | undefined {
    const serves = this.#log.split("\n").find((line) => line.includes('"message":"agent serves"'));
    const { port }: { port?: number } = serves === undefined ? {} : JSON.parse(serves);
    return port;
  }

  fetch(path: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.port}${path}`);
  }

  get pid(): number {
    return this.#started?.child.pid ?? 0;
  }

  /** Ends the agent by a signal and waits for it. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Ended | undefined> {
    const started = this.#started;
    this.#started = undefined;
    started?.child.kill(signal);
    return await started?.ended;
  }

  async remove(): Promise<void> {
    this.runtime.close();
    await this.stop("SIGKILL");
    if (existsSync(this.folder)) await rm(this.folder, { recursive: true, force: true });
  }
}
