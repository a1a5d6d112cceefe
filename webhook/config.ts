// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { resolve } from "node:path";
import { formatDuration, parseDuration } from "../allocator/duration.ts";
import {
  type Environment,
  invalid,
  kubeconfigOf,
  logLevelOf,
  portOf,
  textOf,
} from "../system/environment.ts";
import type { LogLevel } from "../system/logger.ts";

/** What the environment says. Each field is a variable; the table in `configOf` has their names. */
export interface Config {
  /** Where Berth runs: its lease lies there. */
  readonly namespace: string;
  /** Of this replica: tells replicas apart. */
  readonly podName: string;
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Absolute; has `tls.crt` and `tls.key`, which may be changed while they are served. */
  readonly certificates: string;
  /** Absolute; absent: this is a pod, and reaches the API server as one. */
  readonly kubeconfig?: string;
  /** How long it serves on after it was told to end and says that it is not ready. */
  readonly departMs: number;
  readonly logLevel: LogLevel;
}

/** Reads the process's own environment. */
export function loadConfig(): Config {
  return configOf(process.env, hostname());
}

/**
 * | variable           | is                                                        | if absent                |
 * |--------------------|-----------------------------------------------------------|--------------------------|
 * | `BERTH_NAMESPACE`  | the namespace that Berth runs in                          | required                 |
 * | `BERTH_POD_NAME`   | the name of this pod                                      | the name of the host     |
 * | `BERTH_HOST`       | the address to listen on                                  | `::`, every one          |
 * | `BERTH_PORT`       | the port to listen on                                     | 8443                     |
 * | `BERTH_TLS`        | the folder of `tls.crt` and `tls.key`                     | `/etc/berth/tls`         |
 * | `BERTH_KUBECONFIG` | a kubeconfig, to run outside the cluster                  | the pod's service account |
 * | `BERTH_DEPART`     | Go duration between SIGTERM and the end of serving        | 5s                       |
 * | `BERTH_LOG_LEVEL`  | debug, info, warn, error or silent                        | info                     |
 *
 * An empty variable is an absent one. Throws CONFIG_INVALID naming the variable.
 */
export function configOf(env: Environment, host: string): Config {
  const text = (name: string, otherwise: string) => textOf(env, name, otherwise);
  const namespace = text("BERTH_NAMESPACE", "");
  if (namespace === "")
    throw invalid("BERTH_NAMESPACE", "is not set; give it the namespace that berth runs in");
  const kubeconfig = kubeconfigOf(env);
  return {
    namespace,
    podName: text("BERTH_POD_NAME", host),
    host: text("BERTH_HOST", "::"),
    port: portOf(env, 8443),
    certificates: resolve(text("BERTH_TLS", "/etc/berth/tls")),
    ...(kubeconfig === undefined ? {} : { kubeconfig: resolve(kubeconfig) }),
    departMs: departOf(text("BERTH_DEPART", "5s")),
    logLevel: logLevelOf(env),
  };
}

/** More than a minute is beyond what Kubernetes leaves a pod to end. */
const LONGEST_DEPART_MS = 60_000;

function departOf(given: string): number {
  const ms = parseDuration(given);
  if (ms !== undefined && ms <= LONGEST_DEPART_MS) return ms;
  const most = formatDuration(LONGEST_DEPART_MS);
  throw invalid(
    "BERTH_DEPART",
    `is ${JSON.stringify(given)}; give it a duration such as 5s, ${most} at most`,
  );
}
