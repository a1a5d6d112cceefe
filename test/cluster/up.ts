// SPDX-License-Identifier: Apache-2.0
import { importBerth } from "./berth.ts";
import { Cluster } from "./cluster.ts";
import { withLock } from "./lock.ts";
import { StateFolder } from "./state.ts";

const state = StateFolder.of(process.env);
const cluster = new Cluster(state);
const say = (what: string) => console.error(`${(process.uptime()).toFixed(1)} s: ${what}`);
try {
  await withLock(state, async () => {
    if (cluster.isUp) return;
    if (state.exists) await cluster.down();
    await cluster.up(say);
    await importBerth(cluster);
    say("its nodes have the image of Berth");
  });
  console.log(`export KUBECONFIG=${state.kubeconfig}`);
} catch (error) {
  console.error(`cluster: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
