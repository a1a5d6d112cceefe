// SPDX-License-Identifier: Apache-2.0
import { dirname, join } from "node:path";
import { partOf } from "../api/binaries.ts";
import { importBerth } from "./berth.ts";
import { Cluster } from "./cluster.ts";
import { withLock } from "./lock.ts";
import { StateFolder } from "./state.ts";

const state = StateFolder.of(process.env);
const cluster = new Cluster(state);
/** Where kubectl, helm and `kubectl berth` are. */
function tools(): readonly string[] {
  const build = join(import.meta.dirname, "../../build");
  return [build, ...(["kubectl", "helm"] as const).map((tool) => dirname(partOf(tool)))];
}

const say = (what: string) => console.error(`${(process.uptime()).toFixed(1)} s: ${what}`);
try {
  await withLock(state, async () => {
    if (cluster.isUp) return;
    if (state.exists) await cluster.down();
    await cluster.up(say);
    await importBerth(cluster);
    say("its nodes have the image of Berth");
  });
  say(
    "ready; its nodes are NotReady until Berth brings a network. Type these two lines in your shell, then go on with helm install (README.md, In a cluster)",
  );
  console.log(`export KUBECONFIG=${state.kubeconfig}`);
  console.log(`export PATH=${[...new Set(tools())].join(":")}:$PATH`);
} catch (error) {
  console.error(`cluster: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
