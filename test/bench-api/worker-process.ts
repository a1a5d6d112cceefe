// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Order, Reply } from "./orders.ts";

const PROGRAM = fileURLToPath(new URL("./worker-main.ts", import.meta.url));

type Done = Reply & { readonly done: true };

/** A process of workers, as seen by whoever leads it. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  /** Processor time that it had used when it answered last, milliseconds. */
  cpuMs = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#ended = new Promise((resolve) => child.once("exit", () => resolve()));
  }

  /** Resolves when it takes orders. Whoever starts it ends it. */
  static async start(order: Omit<Order & { verb: "open" }, "verb">): Promise<WorkerProcess> {
    const started = new WorkerProcess(fork(PROGRAM, { env: { PATH: "/usr/bin:/bin" } }));
    try {
      await started.tell({ verb: "open", ...order });
      return started;
    } catch (error) {
      await started.end();
      throw error;
    }
  }

  /** Rejects with what it failed with, or when it ends. One order at a time. */
  async tell(order: Order): Promise<Done> {
    const reply = new Promise<Reply>((resolve, reject) => {
      const gone = () => reject(new Error("a process of workers ended"));
      this.#child.once("exit", gone);
      this.#child.once("message", (message: Reply) => {
        this.#child.removeListener("exit", gone);
        resolve(message);
      });
    });
    this.#child.send(order);
    const answer = await reply;
    if (!answer.done) throw new Error(answer.error);
    this.cpuMs = answer.cpuMs;
    return answer;
  }

  async end(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
