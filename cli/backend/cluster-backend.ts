// SPDX-License-Identifier: Apache-2.0
import { setFlagsFromString } from "node:v8";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordInterner } from "../../allocator/cache/interning.ts";
import { storedOf } from "../../allocator/store/kubernetes/objects.ts";
import { openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import { type Connection, connect } from "../../kube/api/connection.ts";
import { CLAIMS } from "../../kube/api/resource.ts";
import manifest from "../../package.json" with { type: "json" };
import { readServices } from "../../webhook/cluster-state/services.ts";
import type { Io } from "../terminal/command.ts";
import type { ClusterTarget } from "../terminal/target.ts";
import { parseDenial } from "./admission-denial.ts";
import type { Backend } from "./backend.ts";
import { ClusterObjects } from "./cluster-objects.ts";
import { releaseInCluster } from "./cluster-release.ts";
import { type KubeConfig, loadKubeConfig, namespaceOf } from "./kubeconfig.ts";
import { adviceOnUnreached } from "./unreached-webhook.ts";
import { usesInCluster } from "./uses-in-cluster.ts";

/** A cluster, and the line to its API server for what the port has no verb for. */
export interface Cluster extends Backend {
  readonly connection: Connection;
}

/** For whoever logs in with a browser, and looks for the telephone first. */
const LOGIN_MS = 300_000;
const PAGE_SIZE = 500;
/** Records that whoever owns a namespace need not be allowed to read. */
const OF_THE_CLUSTER = /^the API server refuses to (?:get|list) (?:ippools|ipreservations|ipblocks)\b/;
const IN_A_NAMESPACE =
  "; which address is whose in a namespace is told by get claims, and a claim can be explained and released by its name";
/** Most of a list of 100,000 is garbage as soon as it is read; left alone, V8 takes half as much memory again before it collects it. */
const COLLECT_SOON = "--heap-growing-percent=20";

/**
 * Connects for `work`, with the rights of the kubeconfig's user. Throws CONFIG_INVALID for a kubeconfig that cannot be
 * used, and what the API server cannot or will not do, with what to do about it.
 */
export async function withCluster<T>(
  { clock, random }: Pick<Io, "clock" | "random">,
  way: ClusterTarget,
  work: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  setFlagsFromString(COLLECT_SOON);
  const config = loadKubeConfig(way);
  const connection = connect(config, { clock, userAgent: `berthctl/${manifest.version}`, loginMs: LOGIN_MS });
  const store = openKubernetesStore({ connection, clock, random, log: noopLogger, pageSize: PAGE_SIZE });
  try {
    const world = new ClusterObjects(connection);
    return await work({
      place: "cluster",
      connection,
      store,
      world,
      namespace: namespaceOf(config),
      node: "",
      claims: (namespace) => claimsIn(connection, namespace),
      uses: (claims) => usesInCluster(claims, world),
      services: () => readServices(connection, { timeoutMs: 30_000, pages: 1_000 }),
      giveBack: releaseInCluster,
    });
  } catch (error) {
    throw error instanceof BerthError ? advised(error, config) : error;
  } finally {
    await store.close();
    connection.close();
  }
}

async function claimsIn(connection: Connection, namespace: string | undefined): Promise<Stored<"claim">[]> {
  const claims: Stored<"claim">[] = [];
  const interner = new RecordInterner();
  const selection = namespace === undefined ? {} : { namespace };
  for await (const { items } of new Client(connection, CLAIMS).pages(selection, PAGE_SIZE)) {
    for (const item of items) claims.push(interner.claim(storedOf("claim", item)));
  }
  return claims;
}

/** The fault in words for whoever sits in front of it: which cluster, and what he can do. */
function advised(error: BerthError, config: KubeConfig): BerthError {
  const words = adviceFor(error, config);
  return words === undefined
    ? error
    : new BerthError(error.code, words, { details: error.details, cause: error });
}

function adviceFor({ code, message, details }: BerthError, config: KubeConfig): string | undefined {
  const server = config.getCurrentCluster()?.server ?? "";
  const context = JSON.stringify(config.getCurrentContext());
  const { status, reason } = details;
  if (status === "404" && reason === "") {
    return (
      `Berth is not installed in this cluster: ${server} does not serve its kinds; ` +
      `install Berth's chart, or choose another cluster than that of context ${context} with --context`
    );
  }
  if (status === "401") {
    return `${message}; log in again, or choose another user than that of context ${context} with --context`;
  }
  const denial = parseDenial(message);
  if (denial !== undefined) return denial;
  const unreached = adviceOnUnreached(message);
  if (unreached !== undefined) return unreached;
  if (status === "403" && code === "STORE_READ_ONLY") {
    const said = `${message.replace(/; check roles$/, "")}${OF_THE_CLUSTER.test(message) ? IN_A_NAMESPACE : ""}`;
    return `${said}; ask for a role that allows it, or choose another user with --context`;
  }
  if (status === undefined && (code === "STORE_UNAVAILABLE" || code === "TIMED_OUT")) {
    return `${message}; is it the cluster that you mean? It is that of context ${context}, choose another with --context`;
  }
  return undefined;
}
