// SPDX-License-Identifier: Apache-2.0
import { flushCompileCache } from "node:module";
import type { Clock } from "../../allocator/base/ports.ts";

/** By then an agent has listed what it follows and served its first pods: what that needed is compiled. */
const USED_AFTER_MS = 60_000;

/**
 * Writes what V8 has compiled to the folder in NODE_COMPILE_CACHE, once, so that the next start on this node compiles less.
 * Node.js does it by itself when the process ends in order, but an agent that is killed has to be back the soonest. Without that
 * variable nothing happens; a folder that cannot be written costs the next start its time and nothing else.
 * What is read there is used only if its checksum, the script and the flags of V8 are the same (Node.js, `module.enableCompileCache`).
 */
export async function keepCompiledCode(
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  write: () => void = flushCompileCache,
): Promise<void> {
  await clock.sleep(USED_AFTER_MS, signal);
  if (!signal.aborted) write();
}
