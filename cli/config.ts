// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { basename, delimiter, join, resolve } from "node:path";
import type { EnvDefaults } from "./terminal/target.ts";

/** What the environment says where no flag does. */
interface Config {
  /** Absolute. */
  readonly dataDir: string;
  readonly user: string;
}

/** The account that runs the program. */
interface Account {
  readonly uid: number;
  readonly username: string;
  readonly homedir: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Where Kubernetes puts the token of a pod's service account. */
const TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/** Reads the process's own environment. */
export function loadConfig(): Config & { readonly setting: EnvDefaults; readonly self: readonly string[] } {
  const who = account();
  // The launcher of a checkout says in the environment by which name it was called; one executable sees it itself.
  const env = { BERTHCTL_CALLED: basename(process.argv0), ...process.env };
  return { ...configOf(env, who), setting: settingOf(env, who, existsSync), self: selfOf(process) };
}

/** What starts this program again: Node.js with its script, or the one executable that is both. */
function selfOf({
  execPath,
  execArgv,
  argv,
}: Pick<NodeJS.Process, "execPath" | "execArgv" | "argv">): readonly string[] {
  const script = argv[1] ?? "";
  return /\.[cm]?[jt]s$/.test(script) ? [execPath, ...execArgv, script] : [execPath];
}

/** `BERTHCTL_CALLED` is the name that the launcher was called by. */
export function settingOf(
  env: Environment,
  { homedir }: Account,
  exists: (path: string) => boolean,
): EnvDefaults {
  const named = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  const usual = join(env["HOME"] || homedir, ".kube/config");
  return {
    kubectl: env["BERTHCTL_CALLED"] === "kubectl-berth",
    dataNamed: (env["BERTH_DATA"] ?? "") !== "",
    kubeconfigNamed: named.length > 0,
    kubeconfigs: named.length > 0 ? named.map((file) => resolve(file)) : [usual].filter(exists),
    ...etcdIn(env),
    inCluster: (env["KUBERNETES_SERVICE_HOST"] ?? "") !== "" && exists(TOKEN),
  };
}

/** The variables of an etcd that hosts share. */
function etcdIn(env: Environment): Pick<EnvDefaults, "etcd"> {
  const [urls, caFile, certFile, keyFile] = ["", "_CACERT", "_CERT", "_KEY"].map(
    (part) => env[`BERTH_ETCD${part}`] || undefined,
  );
  if (urls === undefined) return {};
  const files = { ...(caFile && { caFile }), ...(certFile && { certFile }), ...(keyFile && { keyFile }) };
  return { etcd: { urls, ...files } };
}

/** `BERTH_DATA`, else a system folder for root and a folder at home, which `HOME` names, for others. */
export function configOf(env: Environment, who: Account): Config {
  const given = env["BERTH_DATA"];
  const own = who.uid === 0 ? "/var/lib/berth" : join(env["HOME"] || who.homedir, ".local/share/berth");
  return { dataDir: given === undefined || given === "" ? own : resolve(given), user: who.username };
}

/** A container may run as a uid that has no account. */
function account(): Account {
  try {
    return userInfo();
  } catch {
    return { uid: process.getuid?.() ?? -1, username: "unknown", homedir: process.env["HOME"] ?? "/" };
  }
}
