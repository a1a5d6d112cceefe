// SPDX-License-Identifier: Apache-2.0
import { Cluster } from "./cluster.ts";
import { withLock } from "./lock.ts";
import { StateFolder } from "./state.ts";

const state = StateFolder.of(process.env);
try {
  if (state.exists) {
    console.log("removing the cluster");
    const left = await withLock(state, () => new Cluster(state).down());
    for (const what of left) console.error(`left behind: ${what}`);
    if (left.length === 0) console.log("the cluster is removed");
    process.exitCode = left.length === 0 ? 0 : 1;
  } else {
    console.log("there is no cluster");
  }
} catch (error) {
  console.error(`cluster: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
