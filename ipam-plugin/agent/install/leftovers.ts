// SPDX-License-Identifier: Apache-2.0
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { LEFTOVER_MS, removeLeftovers } from "../../../system/durable-file.ts";

/**
 * Removes what an agent that was killed in the midst of a write has left beside these files, a minute after the start: what it
 * left just before cannot be told from another's at the start itself, and would stay until the next one.
 */
export async function removeLeftoversLater(
  files: readonly string[],
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<void> {
  await clock.sleep(LEFTOVER_MS + 1_000, signal);
  if (signal.aborted) return;
  for (const path of files)
    await removeLeftovers(path, clock.now()).catch((error: unknown) => {
      log.warn("what an earlier agent has left beside a file is not removed", { path, error });
    });
}
