// SPDX-License-Identifier: Apache-2.0
// What the configurations of the processes have in common. A variable that is empty is one that is absent.
import { resolve } from "node:path";
import { BerthError } from "../allocator/base/errors.ts";
import { type Dialects, parseDialects, SYSTEM_NAMES } from "../allocator/model/dialect.ts";
import type { ListeningPlace } from "./listening.ts";
import { LOG_LEVELS, type LogLevel } from "./logger.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

const HIGHEST_PORT = 65_535;

/** The variable's text; the empty text, or what is given, when it is absent. */
export function envString(env: Environment, variable: string, otherwise = ""): string {
  return env[variable] || otherwise;
}

/** BERTH_PORT; 0 is any that is free. */
export function portOf(env: Environment, otherwise: number): number {
  const given = envString(env, "BERTH_PORT", String(otherwise));
  const port = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN;
  if (port <= HIGHEST_PORT) return port;
  throw invalid("BERTH_PORT", `is ${JSON.stringify(given)}, which is no port; give it a number up to 65535`);
}

/** BERTH_HOST, every address of this host if absent, and BERTH_PORT. */
export function listeningPlaceOf(env: Environment, port: number): ListeningPlace {
  const host = envString(env, "BERTH_HOST");
  return { ...(host === "" ? {} : { host }), port: portOf(env, port) };
}

/** BERTH_NAMESPACE, which must be set. */
export function namespaceIn(env: Environment): string {
  const namespace = envString(env, "BERTH_NAMESPACE");
  if (namespace !== "") return namespace;
  throw invalid("BERTH_NAMESPACE", "is not set; give it the namespace that berth runs in");
}

/** BERTH_LOG_LEVEL, info if absent. */
export function logLevelOf(env: Environment): LogLevel {
  const given = envString(env, "BERTH_LOG_LEVEL", "info");
  const level = LOG_LEVELS.find((known) => known === given);
  if (level !== undefined) return level;
  throw invalid("BERTH_LOG_LEVEL", `is ${JSON.stringify(given)}; give it one of ${LOG_LEVELS.join(", ")}`);
}

/** Where the API server is: BERTH_KUBECONFIG, made absolute, or what every pod of a cluster is told. */
export function apiServerOf(
  env: Environment,
): { readonly kubeconfig: string } | { readonly host: string; readonly port: string } {
  const kubeconfig = envString(env, "BERTH_KUBECONFIG");
  if (kubeconfig !== "") return { kubeconfig: resolve(kubeconfig) };
  const host = envString(env, "KUBERNETES_SERVICE_HOST");
  if (host !== "") return { host, port: envString(env, "KUBERNETES_SERVICE_PORT", "443") };
  throw invalid("BERTH_KUBECONFIG", "is not set, and this is no pod of a cluster; give it a kubeconfig");
}

/** The fault of a variable: `why` goes on after its name. */
export function invalid(variable: string, why: string): BerthError {
  return new BerthError("CONFIG_INVALID", `${variable} ${why}`, { details: { variable } });
}

/** BERTH_DIALECTS, `own` of each system if absent. */
export function dialectsIn(env: Environment): Dialects {
  const given = envString(env, "BERTH_DIALECTS");
  const dialects = parseDialects(given);
  if (dialects !== undefined) return dialects;
  const words = `is ${JSON.stringify(given)}; give it a list such as calico=all,kubeOvn=none of ${SYSTEM_NAMES.join(", ")}`;
  throw invalid("BERTH_DIALECTS", words);
}

/** BERTH_REFUSALS_NAME, `Readable` if absent: whether refusals tell everybody everything. */
export function refusalsNameAllIn(env: Environment): boolean {
  return choiceOf(env, "BERTH_REFUSALS_NAME", ["Readable", "All"], "Readable") === "All";
}

/** `true` or `false`, which it is if absent. */
export function isSet(env: Environment, name: string): boolean {
  return choiceOf(env, name, ["true", "false"], "false") === "true";
}

/** One of those; throws CONFIG_INVALID naming the variable and them. */
export function choiceOf<C extends string>(
  env: Environment,
  name: string,
  choices: readonly C[],
  otherwise: C,
): C {
  const given = envString(env, name, otherwise);
  const choice = choices.find((one) => one === given);
  if (choice !== undefined) return choice;
  const all = `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
  throw invalid(name, `is ${JSON.stringify(given)}; give it ${all}`);
}
