// SPDX-License-Identifier: Apache-2.0
import type { WorkQueue } from "../../kube/workqueue.ts";
import type { Controller } from "./controller.ts";

/** Runs the queue until the controller is closed. `undo` takes its handlers away again. */
export function running(queue: WorkQueue, undo: readonly (() => void)[]): Controller {
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
