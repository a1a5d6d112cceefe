// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { partOf } from "../api/binaries.ts";
import { PATH } from "../cluster/machine.ts";
import type { StateFolder } from "../cluster/state.ts";
import { start } from "../support/process.ts";
import { type Result, resultsOf } from "./report.ts";
import { LEFT_OUT } from "./specs.ts";

export interface Limits {
  readonly minutes: number;
  readonly interruption: AbortSignal;
}

/** Runs those of Kubernetes' tests whose names match, for so long at most. Their report stays in `folder`. */
export async function runSpecs(
  state: StateFolder,
  folder: string,
  focus: readonly string[],
  { minutes, interruption }: Limits,
): Promise<readonly Result[]> {
  mkdirSync(folder, { recursive: true });
  const report = join(folder, "junit.xml");
  const args = [
    ...focus.map((pattern) => `--ginkgo.focus=${pattern}`),
    ...LEFT_OUT.map(({ skip }) => `--ginkgo.skip=${skip}`),
    `--ginkgo.timeout=${minutes}m`,
    "--ginkgo.no-color",
    `--ginkgo.junit-report=${report}`,
    `--kubeconfig=${state.kubeconfig}`,
    "--provider=local",
    "--dump-logs-on-failure=false",
    "--disable-log-dump",
    `--e2e-output-dir=${folder}`,
  ];
  // its exit status says what the report says in full
  const { child, ended } = start(partOf("e2e.test"), args, {
    env: { PATH, HOME: state.path, TMPDIR: folder },
  });
  const interrupt = () => child.kill("SIGINT"); // it deletes its namespaces and writes its report
  interruption.addEventListener("abort", interrupt);
  const { stdout, stderr } = await ended.finally(() => interruption.removeEventListener("abort", interrupt));
  if (existsSync(report)) return resultsOf(readFileSync(report, "utf8"));
  throw new Error(
    `e2e.test made no report:\n${(stdout + stderr).trimEnd().split("\n").slice(-20).join("\n")}`,
  );
}
