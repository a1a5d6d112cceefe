// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { resolve } from "node:path";
import { parseDuration, shortDuration } from "../allocator/base/go-duration.ts";
import { FAMILIES, type Family } from "../allocator/ip/address.ts";
import { FOREIGN_CHOICES, type ForeignChoice } from "../allocator/manifest/foreign-requests.ts";
import type { Dialects } from "../allocator/model/dialect.ts";
import type { ApiServer } from "../kube/api/access.ts";
import {
  apiServerOf,
  choiceOf,
  dialectsIn,
  type Environment,
  envString,
  invalid,
  isSet,
  listeningPlaceOf,
  logLevelOf,
  namespaceIn,
  refusalsNameAllIn,
} from "../system/environment.ts";
import type { ListeningPlace } from "../system/listening.ts";
import type { LogLevel } from "../system/logger.ts";
import { CILIUM_MODES, type CiliumMode } from "./controllers/cilium/cilium-node.ts";
import { REVIEWERS_BY } from "./controllers/controller.ts";
import { TRUSTED_CLIENTS, type TrustedClients } from "./http/client-check.ts";

/** A certificate that Berth's issuer has made. */
export interface Issued {
  /** The Secret in Berth's namespace that it lies in. */
  readonly secret: string;
  /** The Service that the API server calls. */
  readonly service: string;
}

/** What the environment says. Each field is a variable; the table in `configOf` has their names. */
interface Config extends ListeningPlace {
  /** Where Berth runs: its lease lies there. */
  readonly namespace: string;
  /** Of this replica: tells replicas apart. */
  readonly podName: string;
  /** Absolute; has `tls.crt` and `tls.key`, which may be changed while they are served. */
  readonly certificates: string;
  /** Absent: `certificates` has what is served. */
  readonly issued?: Issued;
  /** Absolute, PEM: the authority of the clients that may send reviews, which may be changed; absent: anyone may. */
  readonly clientAuthority?: string;
  /** Which clients of that authority. */
  readonly trusted: TrustedClients;
  /** Absolute: the token that who reads the metrics shows, which may be changed; absent: anyone may read them. */
  readonly metricsToken?: string;
  /** Refusals tell everybody who holds what, and which pools there are. */
  readonly refusalsNameAll: boolean;
  /** ReplicaSets are read before their pods are given entries of lists. */
  readonly checkOwners: boolean;
  readonly boundEvents: boolean;
  /** What becomes of pods that ask other systems for addresses. */
  readonly foreignRequests: ForeignChoice;
  /** The families of which each Node gets a CIDR for its pods, in that order. */
  readonly nodeCIDRs: readonly Family[];
  /** How Cilium's agents manage addresses, which Berth gives them; absent: another operator does. */
  readonly cilium?: CiliumMode;
  /** Which requests in other systems' words are for Berth. */
  readonly dialects: Dialects;
  /** What closes the port to strangers, by what the installation says. */
  readonly reviewersBy: (typeof REVIEWERS_BY)[number];
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
 * | `BERTH_HOST`       | the address to listen on                                  | every one                |
 * | `BERTH_PORT`       | the port to listen on                                     | 8443                     |
 * | `BERTH_TLS_SECRET` | the Secret that Berth's issuer puts the certificate into  | `BERTH_TLS` has it       |
 * | `BERTH_SERVICE`    | the Service that it is for                                | `berth-webhook`          |
 * | `BERTH_TLS`        | the folder of `tls.crt` and `tls.key`                     | `/etc/berth/tls`         |
 * | `BERTH_CLIENT_CA`  | a file: the authority of the clients that may send reviews | anyone may              |
 * | `BERTH_CLIENT_NAMES` | the names (CN) that their certificates may have, with commas | `TRUSTED_CLIENTS`       |
 * | `BERTH_CLIENT_ORGANIZATIONS` | the organizations (O), of which they have one   | `TRUSTED_CLIENTS`        |
 * | `BERTH_REVIEWERS_BY` | `NetworkPolicy`: one says who reaches the port; `ClosedElsewhere`: something of the administrator's does | `nothing` does |
 * | `BERTH_METRICS_TOKEN` | a file: the bearer token that who reads the metrics shows | anyone may read them     |
 * | `BERTH_REFUSALS_NAME` | `All`: refusals tell everybody who holds what; `Readable`: who may read it | `Readable`  |
 * | `BERTH_CHECK_OWNERS` | `true`: ReplicaSets are read before their pods are given entries of lists | false            |
 * | `BERTH_BOUND_EVENTS` | `true`: an event on each pod whose claim is bound, not only where something was in its way | false |
 * | `BERTH_FOREIGN_REQUESTS` | `warn`, `refuse` or `ignore`: pods that ask other systems for addresses | `warn`          |
 * | `BERTH_NODE_CIDRS` | families of which each Node gets a CIDR, such as `IPv4,IPv6`  | none: Nodes get nothing  |
 * | `BERTH_CILIUM_IPAM` | `crd`, `cluster-pool` or `multi-pool`: Berth gives Cilium's nodes addresses in that mode | `none` |
 * | `BERTH_DIALECTS`   | which requests in other systems' words are for Berth, such as `calico=all,kubeOvn=none` | `own` of each |
 * | `BERTH_KUBECONFIG` | a kubeconfig, to run outside the cluster                  | the pod's service account |
 * | `BERTH_DEPART`     | Go duration between SIGTERM and the end of serving        | 5s                       |
 * | `BERTH_LOG_LEVEL`  | debug, info, warn, error or silent                        | info                     |
 *
 * An empty variable is an absent one. Throws CONFIG_INVALID naming the variable.
 */
export function configOf(env: Environment, host: string): Config {
  const text = (name: string, otherwise: string) => envString(env, name, otherwise);
  const namespace = namespaceIn(env);
  const secret = text("BERTH_TLS_SECRET", "");
  const clientAuthority = text("BERTH_CLIENT_CA", "");
  const metricsToken = text("BERTH_METRICS_TOKEN", "");
  return {
    namespace,
    podName: text("BERTH_POD_NAME", host),
    ...listeningPlaceOf(env, 8443),
    certificates: resolve(text("BERTH_TLS", "/etc/berth/tls")),
    ...(secret === "" ? {} : { issued: { secret, service: text("BERTH_SERVICE", "berth-webhook") } }),
    ...(clientAuthority === "" ? {} : { clientAuthority: resolve(clientAuthority) }),
    trusted: {
      names: listOf(text("BERTH_CLIENT_NAMES", TRUSTED_CLIENTS.names.join())),
      organizations: listOf(text("BERTH_CLIENT_ORGANIZATIONS", TRUSTED_CLIENTS.organizations.join())),
    },
    ...(metricsToken === "" ? {} : { metricsToken: resolve(metricsToken) }),
    refusalsNameAll: refusalsNameAllIn(env),
    checkOwners: isSet(env, "BERTH_CHECK_OWNERS"),
    boundEvents: isSet(env, "BERTH_BOUND_EVENTS"),
    foreignRequests: choiceOf(env, "BERTH_FOREIGN_REQUESTS", FOREIGN_CHOICES, "warn"),
    ...ciliumOf(env),
    nodeCIDRs: familiesOf(listOf(text("BERTH_NODE_CIDRS", ""))),
    dialects: dialectsIn(env),
    reviewersBy: choiceOf(env, "BERTH_REVIEWERS_BY", REVIEWERS_BY, "nothing"),
    api: apiServerOf(env),
    departMs: departOf(text("BERTH_DEPART", "5s")),
    logLevel: logLevelOf(env),
  };
}

function listOf(text: string): readonly string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function ciliumOf(env: Environment): Pick<Config, "cilium"> {
  const mode = choiceOf(env, "BERTH_CILIUM_IPAM", ["none", ...CILIUM_MODES], "none");
  return mode === "none" ? {} : { cilium: mode };
}

function familiesOf(given: readonly string[]): readonly Family[] {
  const strange = given.find(
    (one, i) => !FAMILIES.some((family) => family === one) || given.indexOf(one) !== i,
  );
  if (strange === undefined) return given as readonly Family[];
  throw invalid(
    "BERTH_NODE_CIDRS",
    `has ${JSON.stringify(strange)}; give it IPv4, IPv6, or both with a comma, each once`,
  );
}

/** More than a minute is beyond what Kubernetes leaves a pod to end. */
const LONGEST_DEPART_MS = 60_000;

function departOf(given: string): number {
  const ms = parseDuration(given);
  if (ms !== undefined && ms <= LONGEST_DEPART_MS) return ms;
  const most = shortDuration(LONGEST_DEPART_MS);
  throw invalid(
    "BERTH_DEPART",
    `is ${JSON.stringify(given)}; give it a duration such as 5s, ${most} at most`,
  );
}
