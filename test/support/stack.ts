// SPDX-License-Identifier: Apache-2.0
import type { ChildProcess } from "node:child_process";
import { rm } from "node:fs/promises";
import { type Ended, type Started, start } from "./process.ts";
import { BERTHCTL, StackFolder, startIn, type TestStackOptions } from "./stack-folder.ts";

/** `berthctl up` as a process of its own, which can be stopped, killed and started again on the same data. */
export class ChildStack extends StackFolder {
  #running: Started | undefined;

  static start(options: TestStackOptions = {}): Promise<ChildStack> {
    return startIn(options, (folder) => new ChildStack(folder));
  }

  async start(): Promise<void> {
    const flags = ["--data", this.dataDir, "--socket", this.socket, "--webhook-port", "0"];
    const more = ["--pools", this.poolsFile, "--log-level", "warn"];
    await startUp([...flags, ...more], { PATH: "/usr/bin:/bin" }, (running) => {
      this.#running = running;
    });
  }

  /** As an init system stops it; throws unless it ends by itself, with success. */
  async stop(): Promise<void> {
    const { rc, signal, stderr } = await this.#signal("SIGTERM");
    if (rc !== 0) throw new Error(`berthctl up ended with ${rc} (${signal}):\n${stderr}`);
  }

  /** As the kernel does when memory is short: nothing of the process gets to run again. */
  async kill9(): Promise<void> {
    await this.#signal("SIGKILL");
  }

  /** As kill9, if it runs: what a test does behind each case, so that one that failed leaves nothing running. */
  async killIfRunning(): Promise<void> {
    if (this.#running !== undefined) await this.kill9();
  }

  async #signal(signal: NodeJS.Signals): Promise<Ended> {
    const running = this.#running;
    if (running === undefined) throw new Error("the stack does not run");
    this.#running = undefined;
    running.child.kill(signal);
    return await running.ended;
  }

  /** Ends it, however it is, and removes its folder. */
  async remove(): Promise<void> {
    await this.killIfRunning();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** `berthctl up FLAGS`, which serves when this resolves; `started` hears of its process before. Throws when it ends instead. */
export async function startUp(
  flags: readonly string[],
  env: Readonly<Record<string, string>>,
  started: (running: Started) => void,
): Promise<void> {
  const running = start(BERTHCTL, ["up", ...flags], { env });
  started(running);
  const early = running.ended.then(({ rc, stderr }) => {
    throw new Error(`berthctl up ended with ${rc} before it was ready:\n${stderr}`);
  });
  await Promise.race([ready(running.child), early]);
  early.catch(() => {}); // it will end some time
}

/** Resolves when it prints that it serves; never, when it does not. */
function ready({ stdout }: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    let printed = "";
    stdout?.on("data", (text: string) => {
      printed += text;
      if (printed.includes("ready\n")) resolve();
    });
  });
}
