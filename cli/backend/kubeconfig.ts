// SPDX-License-Identifier: Apache-2.0
import { existsSync, readFileSync } from "node:fs";
// biome-ignore lint/style/noRestrictedImports: only files are read with it; calls go through kube/api/connection.ts
import { KubeConfig } from "@kubernetes/client-node";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { emptyAuthority } from "../../kube/api/authority-data.ts";
import { endsPlugins } from "../../kube/api/exec-plugins.ts";
import { readsTokenFiles, withTokenFiles } from "../../kube/api/token-files.ts";
import type { ClusterTarget } from "../terminal/target.ts";

export type { KubeConfig };

/**
 * Reads the kubeconfigs as kubectl does: files that are absent are passed over, of entries of one name the first counts.
 * Throws CONFIG_INVALID, naming the file or context, for what cannot be read or is not there.
 */
export function loadKubeConfig({ kubeconfigs, context }: ClusterTarget): KubeConfig {
  const config = kubeconfigs.length === 0 ? ofThisPod() : merged(kubeconfigs);
  if (context !== undefined) config.setCurrentContext(context);
  const current = config.getCurrentContext();
  if (config.getContextObject(current) === null) throw noContext(config, current, kubeconfigs);
  const cluster = config.getCurrentCluster();
  const empty = emptyAuthority(cluster);
  if (empty !== undefined) throw invalid(`${nameOf(kubeconfigs)}: ${empty}`);
  if (cluster !== null) return config;
  throw invalid(
    `context ${JSON.stringify(current)} of ${nameOf(kubeconfigs)} names a cluster that is not in it`,
  );
}

/** The namespace of the current context, `default` where it names none. */
export function namespaceOf(config: KubeConfig): string {
  const { namespace } = config.getContextObject(config.getCurrentContext()) ?? {};
  return namespace === undefined || namespace === "" ? "default" : namespace.trim();
}

function ofThisPod(): KubeConfig {
  const config = new KubeConfig();
  config.loadFromCluster();
  return config;
}

function merged(files: readonly string[]): KubeConfig {
  const there = files.filter((file) => existsSync(file));
  if (there.length === 0) throw invalid(`there is no kubeconfig ${files.join(", ")}`);
  const services = there.map(readFile);
  const all = new KubeConfig();
  all.loadFromOptions({
    clusters: firstOfName(services.flatMap(({ clusters }) => clusters ?? [])),
    users: firstOfName(services.flatMap(({ users }) => users ?? [])),
    contexts: firstOfName(services.flatMap(({ contexts }) => contexts ?? [])),
    currentContext: services.map((part) => part.currentContext).find((name) => name) ?? "",
  });
  return endsPlugins(readsTokenFiles(all));
}

function readFile(file: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromFile(file);
    config.users = withTokenFiles(config.users, { text: readFileSync(file, "utf8"), file });
    return config;
  } catch (error) {
    const [why = ""] = messageOf(error).split("\n");
    throw invalid(`kubeconfig ${file} cannot be read: ${why}`, error);
  }
}

function firstOfName<T extends { readonly name: string }>(entries: readonly T[]): T[] {
  const first = new Map<string, T>(); // name -> entry
  for (const entry of entries) if (!first.has(entry.name)) first.set(entry.name, entry);
  return [...first.values()];
}

function noContext(config: KubeConfig, current: string, files: readonly string[]): BerthError {
  const names = config.getContexts().map(({ name }) => name);
  const have = names.length === 0 ? "it has none" : `it has ${names.join(", ")}`;
  if (current === "") {
    return invalid(`${nameOf(files)} has no current context; choose one with --context NAME: ${have}`);
  }
  return invalid(`${nameOf(files)} has no context ${JSON.stringify(current)}; ${have}`);
}

function nameOf(files: readonly string[]): string {
  return files.length === 0 ? "the service account" : `kubeconfig ${files.join(", ")}`;
}

function invalid(message: string, cause?: unknown): BerthError {
  return new BerthError("CONFIG_INVALID", message, { cause });
}
