// SPDX-License-Identifier: Apache-2.0
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import {
  type Environment,
  invalid,
  kubeconfigOf,
  logLevelOf,
  portOf,
  textOf,
} from "../../system/environment.ts";
import type { LogLevel } from "../../system/logger.ts";

/** What the environment says. Each field is a variable; the table in `configOf` has their names. */
export interface AgentConfig {
  /** As the API server calls this node. */
  readonly node: string;
  /** Absolute. */
  readonly socketPath: string;
  /** Absolute. */
  readonly dataDir: string;
  /** Where metrics and probes are served; 0: any port that is free. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly logLevel: LogLevel;
  /** How the API server is reached: by a kubeconfig, an absolute path, or as a pod of this cluster. */
  readonly api: { readonly kubeconfig: string } | { readonly host: string; readonly port: string };
}

/** Reads the process's own environment. */
export function loadConfig(): AgentConfig {
  return configOf(process.env);
}

const NODE_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

/**
 * | variable           | is                                            | if absent                 |
 * |--------------------|-----------------------------------------------|---------------------------|
 * | `BERTH_NODE_NAME`  | the name of this node, `spec.nodeName`        | required                  |
 * | `BERTH_SOCKET`     | where the CNI binary finds the agent          | `/run/berth/agent.sock`   |
 * | `BERTH_DATA`       | the folder of the journal                     | `/var/lib/berth`          |
 * | `BERTH_HOST`       | the address that metrics are served on        | 127.0.0.1                 |
 * | `BERTH_PORT`       | the port that metrics are served on           | 9469                      |
 * | `BERTH_KUBECONFIG` | a kubeconfig, to run outside the cluster      | the pod's service account |
 * | `BERTH_LOG_LEVEL`  | debug, info, warn, error or silent            | info                      |
 *
 * An empty variable is an absent one. Throws CONFIG_INVALID naming the variable.
 */
export function configOf(env: Environment): AgentConfig {
  const text = (name: string, otherwise: string) => textOf(env, name, otherwise);
  const node = nodeOf(text("BERTH_NODE_NAME", ""));
  const kubeconfig = kubeconfigOf(env);
  return {
    node,
    socketPath: resolve(text("BERTH_SOCKET", "/run/berth/agent.sock")),
    dataDir: resolve(text("BERTH_DATA", "/var/lib/berth")),
    listen: { host: hostOf(text("BERTH_HOST", "127.0.0.1")), port: portOf(env, 9469) },
    logLevel: logLevelOf(env),
    api:
      kubeconfig === undefined
        ? { host: text("KUBERNETES_SERVICE_HOST", ""), port: text("KUBERNETES_SERVICE_PORT", "443") }
        : { kubeconfig: resolve(kubeconfig) },
  };
}

/** Of the journal. */
export function databaseOf({ dataDir }: Pick<AgentConfig, "dataDir">): string {
  return join(dataDir, "agent.db");
}

function nodeOf(given: string): string {
  if (given === "") throw invalid("BERTH_NODE_NAME", "is not set; give it the name of this node");
  if (NODE_NAME.test(given)) return given;
  throw invalid("BERTH_NODE_NAME", `is ${JSON.stringify(given)}, which no node can be called`);
}

function hostOf(given: string): string {
  if (isIP(given) !== 0) return given;
  throw invalid("BERTH_HOST", `is ${JSON.stringify(given)}; give it an IP address of this host`);
}
