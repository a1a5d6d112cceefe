// SPDX-License-Identifier: Apache-2.0
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { ApiServer } from "../../kube/api/access.ts";
import {
  apiServerOf,
  choiceOf,
  dialectsIn,
  type Environment,
  envString,
  invalid,
  isSet,
  logLevelOf,
  portOf,
  refusalsNameAllIn,
} from "../../system/environment.ts";
import type { LogLevel } from "../../system/logger.ts";
import { ALIASES } from "../cni/drop-ins.ts";
import { type Aliases, conflistPath, type Installation, PLUGIN } from "./install/plugin-binary.ts";
import { markFileOf } from "./journal/boot-mark.ts";
import { RESULT_FOLDERS } from "./journal/runtime-records.ts";

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
  /** Which requests in other systems' words are for Berth. */
  readonly dialects: Dialects;
  /** The refusal of an ADD names nodes and blocks to whoever reads events of the pod's namespace. */
  readonly refusalsNameAll: boolean;
  /** Pods come to be while no webhook answers: nothing was written into them of what is kept for them. */
  readonly unreviewedPods: boolean;
  /** The CNI plugin, and the folder where this host's runtime looks for it. */
  readonly plugin?: Installation;
  /** Other names of the plugin there. */
  readonly aliases?: Aliases;
  /** A list of plugins, and the folder where this host's runtime looks for its configuration. */
  readonly conflist?: Installation;
  /** Where this host's runtimes may keep the results of ADDs. */
  readonly resultFolders: readonly string[];
  /** The folder of the certificates of etcds that networks name; absent: no network is kept in etcd. Absolute. */
  readonly etcdCertificates?: string;
  readonly api: ApiServer;
}

/** Reads the process's own environment. */
export function loadConfig(): AgentConfig {
  return configOf(process.env);
}

/** Where `make build` leaves it; an image says where its own is. */
const BUILT_PLUGIN = join(import.meta.dirname, "../../build/berth");

const NODE_NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

/**
 * | variable           | is                                            | if absent                 |
 * |--------------------|-----------------------------------------------|---------------------------|
 * | `BERTH_NODE_NAME`  | the name of this node, `spec.nodeName`        | required                  |
 * | `BERTH_SOCKET`     | where the CNI binary finds the agent          | `/run/berth/agent.sock`   |
 * | `BERTH_DATA`       | the folder of the journal                     | `/var/lib/berth`          |
 * | `BERTH_HOST`       | the address that metrics are served on        | 127.0.0.1                 |
 * | `BERTH_PORT`       | the port that metrics are served on           | 9469                      |
 * | `BERTH_CNI_BIN`    | the host's folder of CNI plugins, as mounted  | nothing is installed      |
 * | `BERTH_CNI_BINARY` | the CNI plugin that is installed there        | that of this checkout     |
 * | `BERTH_CNI_ALIASES` | other names of the plugin there, such as `whereabouts,antrea` | none           |
 * | `BERTH_CNI_REPLACE` | `true`: plugins that have such a name are put aside | they stay, and are told |
 * | `BERTH_CNI_RESULTS` | where the runtime keeps the results of ADDs, folders parted by `:` | those of libcni's users |
 * | `BERTH_CONFLIST`   | a conflist for the host, mounted; watched     | none is written           |
 * | `BERTH_CNI_CONF`   | the host's folder of CNI configurations       | required by a conflist    |
 * | `BERTH_ETCD_CERTIFICATES` | the folder, mounted, of the certificates that networks with `etcdConfig` name | such networks are refused |
 * | `BERTH_DIALECTS`   | which requests in other systems' words are for Berth, such as `calico=all,kubeOvn=none` | `own` of each |
 * | `BERTH_REFUSALS_NAME` | `All`: refusals name nodes and blocks; `Readable`: they count them | `Readable`     |
 * | `BERTH_FAILURE_POLICY` | `Ignore`: the API server creates pods that no webhook reviewed; `Fail`: none | `Fail` |
 * | `BERTH_KUBECONFIG` | a kubeconfig, to run outside the cluster      | the pod's service account |
 * | `BERTH_LOG_LEVEL`  | debug, info, warn, error or silent            | info                      |
 *
 * An empty variable is an absent one. Throws CONFIG_INVALID naming the variable.
 */
export function configOf(env: Environment): AgentConfig {
  const text = (name: string, otherwise: string) => envString(env, name, otherwise);
  const node = nodeOf(text("BERTH_NODE_NAME", ""));
  const certificates = text("BERTH_ETCD_CERTIFICATES", "");
  return {
    node,
    socketPath: resolve(text("BERTH_SOCKET", "/run/berth/agent.sock")),
    dataDir: resolve(text("BERTH_DATA", "/var/lib/berth")),
    listen: { host: hostOf(text("BERTH_HOST", "127.0.0.1")), port: portOf(env, 9469) },
    logLevel: logLevelOf(env),
    dialects: dialectsIn(env),
    refusalsNameAll: refusalsNameAllIn(env),
    unreviewedPods: choiceOf(env, "BERTH_FAILURE_POLICY", ["Fail", "Ignore"], "Fail") === "Ignore",
    resultFolders: text("BERTH_CNI_RESULTS", RESULT_FOLDERS.join(":"))
      .split(":")
      .map((folder) => resolve(folder)),
    ...installationsOf(env),
    ...aliasesIn(env),
    ...(certificates && { etcdCertificates: resolve(certificates) }),
    api: apiServerOf(env),
  };
}

/** Of the journal. */
export function databaseOf({ dataDir }: Pick<AgentConfig, "dataDir">): string {
  return join(dataDir, "agent.db");
}

/** Which conflist the agent has written. */
export function conflistRecordOf({ dataDir }: Pick<AgentConfig, "dataDir">): string {
  return join(dataDir, "conflist.json");
}

/** What the agent writes in one step each, into folders of the host. */
export function writtenFiles(config: AgentConfig): readonly string[] {
  const { plugin, aliases, conflist, socketPath } = config;
  const names = [PLUGIN, ...(aliases?.names ?? [])];
  return [
    ...(plugin === undefined ? [] : names.map((name) => join(plugin.folder, name))),
    ...(conflist === undefined ? [] : [conflistPath(conflist), conflistRecordOf(config)]),
    markFileOf(socketPath).path,
  ];
}

function nodeOf(given: string): string {
  if (given === "") throw invalid("BERTH_NODE_NAME", "is not set; give it the name of this node");
  if (NODE_NAME.test(given)) return given;
  throw invalid("BERTH_NODE_NAME", `is ${JSON.stringify(given)}, which no node can be called`);
}

function installationsOf(env: Environment): Pick<AgentConfig, "plugin" | "conflist"> {
  const [plugins, conflist, configurations] = ["BERTH_CNI_BIN", "BERTH_CONFLIST", "BERTH_CNI_CONF"].map(
    (name) => envString(env, name),
  );
  if (conflist && !conflist.endsWith(".conflist"))
    throw invalid("BERTH_CONFLIST", `is ${JSON.stringify(conflist)}; its name must end with .conflist`);
  if (conflist && !configurations)
    throw invalid("BERTH_CNI_CONF", "is not set; give it the folder that BERTH_CONFLIST is written to");
  const plugin = envString(env, "BERTH_CNI_BINARY", BUILT_PLUGIN);
  return {
    ...(plugins && { plugin: { from: resolve(plugin), folder: resolve(plugins) } }),
    ...(conflist &&
      configurations && { conflist: { from: resolve(conflist), folder: resolve(configurations) } }),
  };
}

function aliasesIn(env: Environment): Pick<AgentConfig, "aliases"> {
  const names = envString(env, "BERTH_CNI_ALIASES").split(",").filter(Boolean);
  const strange = names.find((name) => !ALIASES.includes(name));
  if (strange !== undefined)
    throw invalid(
      "BERTH_CNI_ALIASES",
      `has ${JSON.stringify(strange)}; give it some of ${ALIASES.join(", ")}`,
    );
  const replace = isSet(env, "BERTH_CNI_REPLACE");
  return names.length === 0 ? {} : { aliases: { names, replace } };
}

function hostOf(given: string): string {
  if (isIP(given) !== 0) return given;
  throw invalid("BERTH_HOST", `is ${JSON.stringify(given)}; give it an IP address of this host`);
}
