// SPDX-License-Identifier: Apache-2.0
import { Cluster } from "./cluster.ts";
import { withLock } from "./lock.ts";
import { StateFolder } from "./state.ts";

const state = StateFolder.of(process.env);
try {
  const left = state.exists ? await withLock(state, () => new Cluster(state).down()) : [];
  for (const what of left) console.error(`left behind: ${what}`);
  process.exitCode = left.length === 0 ? 0 : 1;
} catch (error) {
  console.error(`cluster: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
