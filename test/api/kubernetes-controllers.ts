// SPDX-License-Identifier: Apache-2.0
// Controllers and scheduler of Kubernetes, as processes beside an API server of the tests.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isFull } from "../support/runs.ts";
import { havePartsOrSkip, ON_ONE_PROCESSOR, type Part, partOf, withVariables } from "./binaries.ts";
import { Daemon } from "./daemon.ts";
import type { ControlPlane } from "./plane.ts";

export interface Started {
  /** Of kube-controller-manager, by their names without `-controller`. */
  readonly controllers: readonly string[];
  readonly scheduler?: true;
}

/** Whether all parts are there. In a short run they may be missing in CI too: `make controllers` builds two of them. */
export function haveControllersOrSkip(parts: readonly Part[]): boolean {
  return havePartsOrSkip(parts, isFull ? process.env : { ...process.env, CI: undefined });
}

/** Whoever starts them stops them before the control plane. */
export function startControllers(
  plane: ControlPlane,
  { controllers, scheduler }: Started,
): readonly Daemon[] {
  const kubeconfig = join(plane.folder, "controllers.kubeconfig");
  writeFileSync(kubeconfig, plane.kubeConfig().exportConfig(), { mode: 0o600 });
  const as = [
    `--kubeconfig=${kubeconfig}`,
    "--leader-elect=false",
    "--bind-address=127.0.0.1",
    "--secure-port=0",
  ];
  const named = controllers.map((name) => `${name}-controller`).join(",");
  const parts: (readonly [Part, readonly string[]])[] = [
    ["kube-controller-manager", [`--controllers=${named}`]],
  ];
  if (scheduler === true) parts.push(["kube-scheduler", []]);
  return parts.map(([name, more]) => {
    const command = [...withVariables(ON_ONE_PROCESSOR), partOf(name), ...as, ...more];
    const daemon = new Daemon(name, command, join(plane.folder, `${name}.log`));
    // the scheduler ends itself where it and an API server that was killed disagree about a pod (its cache.go)
    daemon.keepRunning();
    return daemon;
  });
}
