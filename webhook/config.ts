// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { resolve } from "node:path";
import { formatDuration, parseDuration } from "../allocator/duration.ts";
import type { ApiServer } from "../kube/access.ts";
import { apiServerOf, type Environment, invalid, logLevelOf, portOf, textOf } from "../system/environment.ts";
import type { LogLevel } from "../system/logger.ts";

/** Berth is its own authority. */
export interface Issuing {
  /** The Secret in Berth's namespace that authority and certificate are kept in. */
  readonly secret: string;
  /** The Service that the API server calls. */
  readonly service: string;
  readonly leafMs: number;
  /** At least three times `leafMs`. */
  readonly authorityMs: number;
}

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
  /** Absent: `certificates` has what is served. */
  readonly issuing?: Issuing;
  /** Absolute, PEM: the authority of the clients that may send reviews, which may be changed; absent: anyone may. */
  readonly clientAuthority?: string;
  readonly api: ApiServer;
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
 * | `BERTH_TLS_SECRET` | the Secret that Berth keeps certificates of its own in    | `BERTH_TLS` has them     |
 * | `BERTH_SERVICE`    | the Service that they are for                             | `berth-webhook`          |
 * | `BERTH_LEAF_LIFE`  | Go duration: how long a certificate is valid              | 2160h                    |
 * | `BERTH_AUTHORITY_LIFE` | the same of its authority, three times that at least  | 87600h                   |
 * | `BERTH_TLS`        | the folder of `tls.crt` and `tls.key`                     | `/etc/berth/tls`         |
 * | `BERTH_CLIENT_CA`  | a file: the authority of the clients that may send reviews | anyone may              |
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
  const issuing = issuingOf(text);
  const clientAuthority = text("BERTH_CLIENT_CA", "");
  return {
    namespace,
    podName: text("BERTH_POD_NAME", host),
    host: text("BERTH_HOST", "::"),
    port: portOf(env, 8443),
    certificates: resolve(text("BERTH_TLS", "/etc/berth/tls")),
    ...(issuing === undefined ? {} : { issuing }),
    ...(clientAuthority === "" ? {} : { clientAuthority: resolve(clientAuthority) }),
    api: apiServerOf(env),
    departMs: departOf(text("BERTH_DEPART", "5s")),
    logLevel: logLevelOf(env),
  };
}

/** An authority is renewed when a third of its life is left, which must be enough for a certificate of it. */
const AUTHORITY_FACTOR = 3;
/** Below, a certificate would end before everybody could have heard of it. */
const SHORTEST_LEAF_MS = 5_000;

function issuingOf(text: (name: string, otherwise: string) => string): Issuing | undefined {
  const secret = text("BERTH_TLS_SECRET", "");
  if (secret === "") return undefined;
  const service = text("BERTH_SERVICE", "berth-webhook");
  const leafMs = lifeOf("BERTH_LEAF_LIFE", text("BERTH_LEAF_LIFE", "2160h"), SHORTEST_LEAF_MS);
  const given = text("BERTH_AUTHORITY_LIFE", "87600h");
  return {
    secret,
    service,
    leafMs,
    authorityMs: lifeOf("BERTH_AUTHORITY_LIFE", given, AUTHORITY_FACTOR * leafMs),
  };
}

function lifeOf(variable: string, given: string, leastMs: number): number {
  const ms = parseDuration(given);
  if (ms !== undefined && ms >= leastMs) return ms;
  const least = formatDuration(leastMs);
  throw invalid(variable, `is ${JSON.stringify(given)}; give it a duration such as 2160h, ${least} at least`);
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
