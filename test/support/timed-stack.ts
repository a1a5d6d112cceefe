// SPDX-License-Identifier: Apache-2.0
import { rm } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { noopLogger } from "../../allocator/base/ports.ts";
import { type Stack, startStack } from "../../cli/embedded/stack.ts";
import { createRandom } from "../../system/random.ts";
import { LeapingClock } from "./leaping-clock.ts";
import { StackFolder, startIn, type TestStackOptions } from "./stack-folder.ts";

const STEP_MS = 5_000;
/** A call's own time limits must not pass while it is still on its way to what it waits for. */
const SHORT_MS = 100;
const SHORT_STEP_MS = 1_500;

/** The same stack in this process, with a clock that can leap. */
export class TimedStack extends StackFolder {
  readonly clock = new LeapingClock();
  #stack: Stack | undefined;

  static start(options: TestStackOptions = {}): Promise<TimedStack> {
    return startIn(options, (folder) => new TimedStack(folder));
  }

  async start(): Promise<void> {
    this.#stack = await startStack({
      dataDir: this.dataDir,
      socketPath: this.socket,
      poolsFile: this.poolsFile,
      clock: this.clock,
      random: createRandom(),
      log: noopLogger,
    });
  }

  /** Leaps until the look finds something other than undefined; the time that passed is at most `withinMs`. */
  async passTime<T>(what: string, withinMs: number, look: () => Promise<T | undefined>): Promise<T> {
    for (let passed = 0; ; passed += STEP_MS) {
      const found = await look();
      if (found !== undefined) return found;
      if (passed + STEP_MS > withinMs)
        throw new Error(`did not happen within ${withinMs / 1000} s of its time: ${what}`);
      await this.clock.leap(STEP_MS);
    }
  }

  /** Time passes while something is under way that waits, until that has ended. */
  async passWhile(running: Promise<unknown>): Promise<void> {
    let ended = false;
    const end = running.finally(() => {
      ended = true;
    });
    while (!ended) {
      await Promise.race([end, pause(SHORT_MS)]);
      if (!ended) this.clock.skip(SHORT_STEP_MS);
    }
  }

  async stop(): Promise<void> {
    await this.#stack?.close();
    this.#stack = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}
