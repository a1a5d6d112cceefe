// SPDX-License-Identifier: Apache-2.0
import type { WorkQueue } from "./workqueue.ts";

/** Works in the background from its start on. */
export interface Controller {
  /** Ends after the work at hand. Repeatable. */
  close(): Promise<void>;
}

/** Runs the queue until the controller is closed. `undo` takes its handlers away again. */
export function runQueue(queue: WorkQueue, undo: readonly (() => void)[]): Controller {
  const stop = new AbortController();
  const work = queue.run(stop.signal);
  return {
    async close() {
      for (const take of undo) take();
      stop.abort();
      await work;
    },
  };
}
