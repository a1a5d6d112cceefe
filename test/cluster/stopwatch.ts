// SPDX-License-Identifier: Apache-2.0
// How long calls of IPAM plugins take on the nodes, whichever plugin it is.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { run } from "../support/process.ts";
import type { Cluster } from "./cluster.ts";
import { PATH } from "./machine.ts";

const SOURCE = fileURLToPath(new URL("stopwatch.c", import.meta.url));
const TIMES = "/var/log/cni-times";
const PLUGINS = ["berth", "host-local"];

/** Puts a stopwatch before both plugins on each node. */
export async function startStopwatch({ nodes, state }: Cluster): Promise<void> {
  const binary = state.file("stopwatch");
  if (!existsSync(binary)) {
    const built = await run("musl-gcc", ["-static", "-O2", "-o", binary, SOURCE], { env: { PATH } });
    if (built.rc !== 0) throw new Error(`stopwatch.c: ${built.stderr}`);
  }
  const lines = PLUGINS.map(
    (name) => `[ -e /opt/cni/timed/${name} ] || mv /opt/cni/bin/${name} /opt/cni/timed/${name}
cp ${binary} /opt/cni/bin/${name}.new && mv /opt/cni/bin/${name}.new /opt/cni/bin/${name}`,
  );
  const script = `set -e\nmkdir -p /opt/cni/timed\n${lines.join("\n")}\nrm -f ${TIMES}`;
  for (const node of nodes) await node.must(["sh", "-c", script]);
}

/** Puts the plugins back. */
export async function endStopwatch({ nodes }: Cluster): Promise<void> {
  const lines = PLUGINS.map((name) => `mv /opt/cni/timed/${name} /opt/cni/bin/${name}`);
  for (const node of nodes) await node.must(["sh", "-c", lines.join("\n")]);
}

/** Milliseconds of each ADD since the last time that this was asked. */
export async function addTimes({ nodes }: Cluster): Promise<readonly number[]> {
  const script = `mv ${TIMES} ${TIMES}.read 2>/dev/null && cat ${TIMES}.read || true`;
  const texts = await Promise.all(nodes.map((node) => node.must(["sh", "-c", script])));
  const lines = texts
    .join("")
    .split("\n")
    .map((line) => line.split(" "));
  return lines.filter(([command]) => command === "ADD").map(([, , ns]) => Number(ns) / 1e6);
}
