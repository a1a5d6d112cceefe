// SPDX-License-Identifier: Apache-2.0
import { accessSync, constants, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { skipped } from "../support/skipped.ts";

export type Part =
  | "etcd"
  | "kube-apiserver"
  | "kube-controller-manager"
  | "kube-scheduler"
  | "kubelet"
  | "kubectl"
  | "helm"
  | "cert-manager"
  | "kube-score"
  | "meta-plugin"
  | "kube-proxy"
  | "agnhost"
  | "e2e.test";

/**
 * For programs written in Go: they collect what they do not need any more less often. An API server starts with a quarter less of the
 * processor's time, and has 450 MB instead of 300.
 */
export const RARELY_COLLECTING = { GOGC: "400", GOMEMLIMIT: "1GiB" };

/**
 * Besides, they run on one processor: an API server that has nothing to do costs a third less, and one that starts a tenth. Not where it is
 * measured how much one can do.
 */
export const ON_ONE_PROCESSOR = { ...RARELY_COLLECTING, GOMAXPROCS: "1" };

/** A command that runs with these variables, besides those that are there. */
export function withVariables(variables: Readonly<Record<string, string>>): readonly string[] {
  return ["/usr/bin/env", ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where to get what is missing. */
const ADVICE = "build them with `make control-plane`, or set KUBEBUILDER_ASSETS to a folder that has them";

/** The folder in which test/control-plane/build.sh keeps what it built: one for each pair of versions. */
export function cacheFolder(environment: Environment): string {
  const cache = environment["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  const versions = `${versionOf("k8s.io/kubernetes")}-etcd-${versionOf("go.etcd.io/etcd/server/v3")}`;
  return join(cache, "berth/control-plane", versions);
}

/** The version of a module that a go.mod below test/control-plane pins. */
export function versionOf(module: string, file = "go.mod"): string {
  const modules = readFileSync(join(import.meta.dirname, "../control-plane", file), "utf8");
  const lines = modules.split("\n").map((line) => line.trim().replace(/^require /, ""));
  const version = lines.find((line) => line.startsWith(`${module} v`))?.split(" ")[1];
  if (version === undefined) throw new Error(`test/control-plane/${file} names no version of ${module}`);
  return version;
}

/** The file of a part: TEST_ASSET_<NAME>, then KUBEBUILDER_ASSETS, then the project's own cache. */
export function findPart(part: Part, environment: Environment): string | undefined {
  const variable = `TEST_ASSET_${part.toUpperCase().replaceAll(/[-.]/g, "_")}`;
  const named = environment[variable];
  if (named) return named;
  const assets = environment["KUBEBUILDER_ASSETS"];
  const folders = [...(assets ? [assets] : []), cacheFolder(environment)];
  return folders.map((folder) => join(folder, part)).find(isExecutable);
}

/**
 * Whether the parts are there. When they are not: false and a skipped test that says so, on a developer's machine; an
 * error where CI=true, since a test that is skipped there would never run anywhere.
 */
export function havePartsOrSkip(
  parts: readonly Part[],
  environment: Environment = process.env,
  skip: (why: string) => void = skipped,
): boolean {
  const missing = parts.filter((part) => findPart(part, environment) === undefined);
  if (missing.length === 0) return true;
  const words = `no ${missing.join(", ")}: ${ADVICE}`;
  if (environment["CI"] === "true") throw new Error(words);
  skip(words);
  return false;
}

/** The file of a part that must be there. */
export function partOf(part: Part, environment: Environment = process.env): string {
  const file = findPart(part, environment);
  if (file === undefined) throw new Error(`no ${part}: ${ADVICE}`);
  return file;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
