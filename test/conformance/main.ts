// SPDX-License-Identifier: Apache-2.0
// main.ts [PATTERN...]: runs Kubernetes' own tests on a cluster of its own whose pods all have their addresses from Berth, those that
// failed once more with host-local, and writes what came of it into docs/conformance.md (with patterns of names: only prints it).
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { partOf, versionOf } from "../api/binaries.ts";
import { BERTH_NAMESPACE, configureNode, helm, installBerth } from "../cluster/berth.ts";
import { Cluster } from "../cluster/cluster.ts";
import { kubeconfigName } from "../cluster/control-plane.ts";
import { Lab } from "../cluster/lab.ts";
import { withLock } from "../cluster/lock.ts";
import { ROUTER } from "../cluster/network.ts";
import { importImage } from "../cluster/node.ts";
import { StateFolder } from "../cluster/state.ts";
import { runSpecs } from "./e2e.ts";
import { conformanceImages } from "./images.ts";
import { POOLS, STICKY_POLICY } from "./objects.ts";
import { focusOn, type Result, tableOf, withResults } from "./report.ts";
import { FOCUS } from "./specs.ts";

const ROOT = join(import.meta.dirname, "../..");
const DOCUMENT = join(ROOT, "docs/conformance.md");
const REPORT = join(ROOT, "build/report/conformance");
/** Of each of the two runs. */
const MINUTES = Number(process.env["BERTH_CONFORMANCE_MINUTES"] ?? 60);

const state = StateFolder.of(process.env);
const cluster = new Cluster(state);
const patterns = process.argv.slice(2);
const say = (what: string) => console.error(`${process.uptime().toFixed(1)} s: ${what}`);

const interruption = new AbortController();
const LIMITS = { minutes: MINUTES, interruption: interruption.signal };
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interruption.abort());

try {
  if (cluster.isUp) throw new Error("a cluster is up: take it away with `make cluster-down`");
  await withLock(state, passAll);
} catch (error) {
  console.error(`conformance: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function passAll(): Promise<void> {
  if (state.exists) await cluster.down();
  try {
    await prepare();
    interruption.signal.throwIfAborted(); // what is up is taken away all the same
    await judge();
  } finally {
    for (const what of await cluster.down()) {
      console.error(`left behind: ${what}`);
      process.exitCode = 1;
    }
  }
}

async function prepare(): Promise<void> {
  await cluster.up(say);
  await startServices();
  const folder = mkdtempSync(join(tmpdir(), "berth-conformance-"));
  try {
    const images = await conformanceImages(folder);
    for (const node of cluster.nodes) await importImage(node, images);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  await installBerth(cluster);
  await Lab.prepare([...POOLS, ...STICKY_POLICY]);
  for (const node of cluster.nodes) await configureNode(node, "berth", "pools");
  await pause(5_000); // containerd looks at the folder of configurations in its own time, and nothing says when it has
  say("Berth serves every pod");
}

/** On the router, where everything that is for a Service passes. What goes back passes there again, because its source is the router. */
async function startServices(): Promise<void> {
  await cluster.control.start("kube-proxy", [
    partOf("kube-proxy"),
    `--kubeconfig=${state.file(kubeconfigName("admin"))}`,
    "--proxy-mode=iptables",
    "--masquerade-all",
    "--hostname-override=node-a",
    `--bind-address=${ROUTER}`,
    "--conntrack-max-per-core=0",
  ]);
}

async function judge(): Promise<void> {
  rmSync(REPORT, { recursive: true, force: true });
  mkdirSync(REPORT, { recursive: true });
  const focus = patterns.length > 0 ? patterns : FOCUS;
  const withBerth = await runSpecs(state, join(REPORT, "berth"), focus, LIMITS);
  interruption.signal.throwIfAborted();
  const failed = withBerth.filter(({ verdict }) => verdict === "failed");
  say(`with Berth: ${withBerth.length} specs, ${failed.length} failed`);
  const others = failed.length === 0 ? [] : await withHostLocal(failed);
  const passed = withBerth.length - failed.length;
  const version = versionOf("k8s.io/kubernetes");
  const count = `Kubernetes ${version}, ${withBerth.length} specs: ${passed} passed, ${failed.length} failed.`;
  const table = `${count}\n\n${tableOf(withBerth, others)}`;
  if (patterns.length > 0) console.log(table);
  else writeFileSync(DOCUMENT, withResults(readFileSync(DOCUMENT, "utf8"), table));
  if (withBerth.length === 0) throw new Error("no spec has such a name");
  const passedThere = new Set(others.filter(({ verdict }) => verdict === "passed").map(({ spec }) => spec));
  const ours = failed.filter(({ spec }) => passedThere.has(spec) || !others.some((one) => one.spec === spec));
  for (const { spec } of ours) console.error(`fails with Berth, and was not seen to fail without: ${spec}`);
  if (ours.length > 0) process.exitCode = 1;
}

/** On the same cluster, without Berth. */
async function withHostLocal(failed: readonly Result[]): Promise<readonly Result[]> {
  await Lab.withdraw(STICKY_POLICY);
  await helm(cluster, ["uninstall", "berth", "--namespace", BERTH_NAMESPACE, "--wait"]);
  for (const node of cluster.nodes) await configureNode(node, "host-local");
  await pause(5_000); // as above
  const results = await runSpecs(state, join(REPORT, "host-local"), focusOn(failed), LIMITS);
  say(
    `with host-local: ${results.length} of them, ${results.filter(({ verdict }) => verdict === "passed").length} passed`,
  );
  return results;
}
