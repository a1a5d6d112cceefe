// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { parseDuration, shortDuration } from "../../allocator/base/go-duration.ts";
import type { ApiServer } from "../../kube/api/access.ts";
import {
  apiServerOf,
  type Environment,
  envString,
  invalid,
  listeningPlaceOf,
  logLevelOf,
  namespaceIn,
} from "../../system/environment.ts";
import type { ListeningPlace } from "../../system/listening.ts";
import type { LogLevel } from "../../system/logger.ts";
import type { SecretNames } from "../certificates/secret.ts";

/** What the environment says. The table in `configOf` has the variables. */
interface Config extends ListeningPlace {
  readonly secrets: SecretNames;
  /** Of this process: tells events of it from those of others. */
  readonly podName: string;
  /** The Service that the API server calls. */
  readonly service: string;
  readonly leafMs: number;
  /** At least three times `leafMs`. */
  readonly authorityMs: number;
  readonly api: ApiServer;
  readonly logLevel: LogLevel;
}

/** Reads the process's own environment. */
export function loadConfig(): Config {
  return configOf(process.env, hostname());
}

/**
 * | variable               | is                                                        | if absent                |
 * |------------------------|-----------------------------------------------------------|--------------------------|
 * | `BERTH_NAMESPACE`      | the namespace that Berth runs in                          | required                 |
 * | `BERTH_POD_NAME`       | the name of this pod                                      | the name of the host     |
 * | `BERTH_CA_SECRET`      | the Secret of the authority and its key                   | `berth-webhook-ca`       |
 * | `BERTH_TLS_SECRET`     | the Secret of the certificate that the webhook serves     | `berth-webhook-tls`      |
 * | `BERTH_SERVICE`        | the Service that it is for                                | `berth-webhook`          |
 * | `BERTH_LEAF_LIFE`      | Go duration: how long a certificate is valid              | 2160h                    |
 * | `BERTH_AUTHORITY_LIFE` | the same of its authority, three times that at least      | 87600h                   |
 * | `BERTH_HOST`           | the address that probes are answered at                   | every one                |
 * | `BERTH_PORT`           | the port                                                  | 9470                     |
 * | `BERTH_KUBECONFIG`     | a kubeconfig, to run outside the cluster                  | the pod's service account |
 * | `BERTH_LOG_LEVEL`      | debug, info, warn, error or silent                        | info                     |
 *
 * An empty variable is an absent one. Throws CONFIG_INVALID naming the variable.
 */
export function configOf(env: Environment, host: string): Config {
  const text = (name: string, otherwise: string) => envString(env, name, otherwise);
  const namespace = namespaceIn(env);
  const leafMs = lifeOf("BERTH_LEAF_LIFE", text("BERTH_LEAF_LIFE", "2160h"), SHORTEST_LEAF_MS);
  const given = text("BERTH_AUTHORITY_LIFE", "87600h");
  return {
    secrets: {
      namespace,
      authority: text("BERTH_CA_SECRET", "berth-webhook-ca"),
      served: text("BERTH_TLS_SECRET", "berth-webhook-tls"),
    },
    podName: text("BERTH_POD_NAME", host),
    service: text("BERTH_SERVICE", "berth-webhook"),
    leafMs,
    authorityMs: lifeOf("BERTH_AUTHORITY_LIFE", given, AUTHORITY_FACTOR * leafMs),
    ...listeningPlaceOf(env, 9470),
    api: apiServerOf(env),
    logLevel: logLevelOf(env),
  };
}

/** An authority is renewed when a third of its life is left, which must be enough for a certificate of it. */
const AUTHORITY_FACTOR = 3;
/** Below, a certificate would end before everybody could have heard of it. */
const SHORTEST_LEAF_MS = 5_000;

function lifeOf(variable: string, given: string, leastMs: number): number {
  const ms = parseDuration(given);
  if (ms !== undefined && ms >= leastMs) return ms;
  const least = shortDuration(leastMs);
  throw invalid(variable, `is ${JSON.stringify(given)}; give it a duration such as 2160h, ${least} at least`);
}
