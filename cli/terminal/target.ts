// SPDX-License-Identifier: Apache-2.0
import { resolve } from "node:path";
import { BerthError } from "../../allocator/base/errors.ts";
import { noEtcd, usageError } from "./flags.ts";

/** What the environment says about where records are. */
export interface EnvDefaults {
  /** Called as kubectl-berth: the cluster is meant, whatever else is there. */
  readonly kubectl: boolean;
  /** BERTH_DATA is set. */
  readonly dataNamed: boolean;
  /** KUBECONFIG is set. */
  readonly kubeconfigNamed: boolean;
  /** Those of KUBECONFIG, else the one at home if there is one. Absolute. */
  readonly kubeconfigs: readonly string[];
  /** This process runs in a pod that has a service account. */
  readonly inCluster: boolean;
  /** BERTH_ETCD and what belongs to it. */
  readonly etcd?: EtcdTarget;
}

/** How a cluster is reached. */
export interface ClusterTarget {
  /** In the order in which they count; none: by the service account of this pod. */
  readonly kubeconfigs: readonly string[];
  /** Absent: the current one. */
  readonly context?: string;
}

/** How an etcd is reached that many hosts share. */
export interface EtcdTarget {
  /** With commas between them. */
  readonly urls: string;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly user?: string;
  readonly passwordFile?: string;
}

/** The flags that choose. */
interface TargetFlags {
  readonly data?: string | undefined;
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/** A setting in which there is nothing but data folders. */
export const NO_CLUSTER: EnvDefaults = {
  kubectl: false,
  dataNamed: true,
  kubeconfigNamed: false,
  kubeconfigs: [],
  inCluster: false,
};

/**
 * Where a command works: in the cluster, or undefined for a data folder. Flags count before variables, variables before
 * what lies about; a data folder that has something in it counts before a kubeconfig that nobody named.
 */
export function targetOf(
  asked: TargetFlags,
  setting: EnvDefaults,
  folder: { readonly dataDir: string; readonly used: () => boolean },
): ClusterTarget | undefined {
  const cluster = asked.kubeconfig !== undefined || asked.context !== undefined;
  if (setting.kubectl) {
    if (asked.data === undefined) return wayOf(asked, setting);
    throw usageError("kubectl berth is for the cluster and has no --data; use berthctl for a data folder");
  }
  if (cluster && asked.data !== undefined) {
    throw usageError("give --data for a data folder, or --kubeconfig and --context for a cluster, not both");
  }
  if (cluster) return wayOf(asked, setting);
  if (asked.data !== undefined || setting.dataNamed) return undefined;
  if (setting.kubeconfigNamed) return wayOf(asked, setting);
  if (folder.used()) return undefined;
  if (setting.kubeconfigs.length > 0 || setting.inCluster) return wayOf(asked, setting);
  throw new BerthError(
    "STORE_UNAVAILABLE",
    `there is nothing in ${folder.dataDir} yet and no kubeconfig; ` +
      `start a stack with: berthctl up --data ${folder.dataDir}, or name a cluster with --kubeconfig FILE`,
    { details: { path: folder.dataDir } },
  );
}

function wayOf({ kubeconfig, context }: TargetFlags, setting: EnvDefaults): ClusterTarget {
  const kubeconfigs = kubeconfig === undefined ? setting.kubeconfigs : [resolve(kubeconfig)];
  if (kubeconfigs.length === 0 && !setting.inCluster) {
    throw usageError("there is no kubeconfig; name one with --kubeconfig FILE, or set KUBECONFIG");
  }
  return { kubeconfigs, ...(context === undefined ? {} : { context }) };
}

/** The flags of an etcd, each with the field that it is. */
const ETCD_FIELDS = {
  "etcd-cacert": "caFile",
  "etcd-cert": "certFile",
  "etcd-key": "keyFile",
  "etcd-user": "user",
  "etcd-password-file": "passwordFile",
} as const;

/**
 * The etcd that a call is about; undefined: none. A flag counts before its variable, and any other place that a flag names
 * before the variables.
 */
export function etcdOf(
  text: (flag: string) => string | undefined,
  env: EtcdTarget | undefined,
): EtcdTarget | undefined {
  const elsewhere = ["data", "kubeconfig", "context"].find((flag) => text(flag) !== undefined);
  const urls = text("etcd") ?? (elsewhere === undefined ? env?.urls : undefined);
  const said = Object.entries(ETCD_FIELDS).flatMap(([flag, field]) => {
    const value = text(flag);
    return value === undefined ? [] : [[field, value]];
  });
  if (urls === undefined || urls === "") {
    if (said.length === 0) return undefined;
    throw noEtcd();
  }
  if (elsewhere !== undefined) throw usageError(`give --etcd or --${elsewhere}, not both`);
  return { ...env, ...Object.fromEntries(said), urls };
}
