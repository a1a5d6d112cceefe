// SPDX-License-Identifier: Apache-2.0

import type { RequestListener } from "node:http";
import { BerthError } from "../allocator/base/errors.ts";
import type { Clock, Logger, Random, Readiness } from "../allocator/base/ports.ts";
import type { Family } from "../allocator/ip/address.ts";
import type { ForeignChoice } from "../allocator/manifest/foreign-requests.ts";
import type { Dialects } from "../allocator/model/dialect.ts";
import type { Connection } from "../kube/api/connection.ts";
import { withRequestMetrics } from "../kube/api/metered-connection.ts";
import { EventRecorder } from "../kube/controller/event-recorder.ts";
import { kubeEventSink } from "../kube/controller/event-sink.ts";
import manifest from "../package.json" with { type: "json" };
import { limitedLogger } from "../system/limited-logger.ts";
import type { ListeningPlace } from "../system/listening.ts";
import { createMetrics, type MetricsRegistry } from "../system/metrics.ts";
import { type CleanupStack, withCleanup } from "../system/shutdown.ts";
import { remembered } from "../system/single-flight.ts";
import type { PoolAccess } from "./admission/admission-context.ts";
import { waitForPools } from "./admission/cache-wait.ts";
import { LiveOwners } from "./admission/owner-check.ts";
import { trackPendingClaims } from "./admission/pending-claims.ts";
import { SubjectAccessChecker } from "./admission/pool-access.ts";
import { ReviewedReadAccess } from "./admission/read-access.ts";
import { createHandlers } from "./admission/routes.ts";
import { type ClusterCaches, openCaches } from "./cluster-state/caches.ts";
import { readServices } from "./cluster-state/services.ts";
import type { Issued } from "./config.ts";
import { startBinder } from "./controllers/binding/controller.ts";
import { startBlocks } from "./controllers/blocks/controller.ts";
import type { CiliumMode } from "./controllers/cilium/cilium-node.ts";
import { startCilium } from "./controllers/cilium/controller.ts";
import { startClaims } from "./controllers/claims/controller.ts";
import type { ControllerDeps, REVIEWERS_BY } from "./controllers/controller.ts";
import { type GcController, startGcController } from "./controllers/gc-controller.ts";
import { startGcTriggers } from "./controllers/gc-triggers.ts";
import { startLeadership } from "./controllers/leadership.ts";
import { startNodeCidrs } from "./controllers/nodes/controller.ts";
import { startPools } from "./controllers/pools/controller.ts";
import { startWorkloads } from "./controllers/statefulset-controller.ts";
import { createApp } from "./http/app.ts";
import type { TrustedClients } from "./http/client-check.ts";
import { whoShowsTokenOf } from "./http/metrics-token.ts";
import type { TlsServer } from "./http/tls-server.ts";
import { withMetrics, withReplicaMetrics } from "./metrics.ts";
import { type AdmissionRequest, type Handler, ROUTES, type Route } from "./review/admission-review.ts";
import { openCertificates, serveCertificates, type TlsHandle } from "./tls-setup.ts";

/** Whoever sends reviews of pools has the API server list some thousand Services no more often. */
const SERVICES_MS = 5_000;

interface WebhookOptions extends ListeningPlace {
  /** Stays open when the webhook is closed: it belongs to whoever opened it. */
  readonly connection: Connection;
  /** Where the lease lies. */
  readonly namespace: string;
  readonly podName: string;
  /** The folder of `tls.crt` and `tls.key`. */
  readonly certificates: string;
  /** Instead of the folder: the Secret that Berth's issuer fills. */
  readonly issued?: Issued;
  /** The file of the authority of clients that may send reviews; absent: anyone may. */
  readonly clientAuthority?: string;
  /** Which clients of that authority; `TRUSTED_CLIENTS` if absent. */
  readonly trusted?: TrustedClients;
  /** What closes the port to strangers, by what the installation says; it counts where there is no such authority. */
  readonly reviewersBy?: (typeof REVIEWERS_BY)[number];
  /** The file of the token that who reads the metrics shows; absent: anyone may read them. */
  readonly metricsToken?: string;
  /** Refusals tell everybody who holds what, and which pools there are. */
  readonly refusalsNameAll?: boolean;
  /** What a pod says owns it is read before it is given an entry of a list; `get` of ReplicaSets must be allowed. */
  readonly checkOwners?: boolean;
  /** An event on each pod whose claim is bound; absent: only where something was in its way. */
  readonly boundEvents?: boolean;
  /** `warn` if absent. */
  readonly foreignRequests?: ForeignChoice;
  /** The families of which each Node gets a CIDR; `patch` of Nodes must be allowed. None if absent. */
  readonly nodeCIDRs?: readonly Family[];
  /** Cilium's nodes are given addresses in this mode; the rights on CiliumNodes must be there. Nothing if absent. */
  readonly cilium?: CiliumMode;
  /** Which requests in other systems' words are for Berth; `all` of them if absent. */
  readonly dialects?: Dialects;
  /** How long it serves on after `close` was called, for those who have not heard yet. */
  readonly departMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface ClusterWebhook {
  readonly address: TlsServer["address"];
  readonly ready: () => Readiness;
  /** Says that it is not ready, serves on for a moment, drains, ends the controllers and gives the lease back. Repeatable. */
  close(): Promise<void>;
}

/** The Lease by which replicas choose who collects garbage. */
const LEASE = "berth-webhook";

/**
 * One replica of the webhook: admission, controllers, and what they know of the cluster. It serves at once and is
 * ready when everything was listed. Whatever was started is closed again, in reverse, when a later part cannot start.
 * Throws BerthError: CONFIG_INVALID or CERTIFICATE_INVALID for what the administrator can put right.
 */
export async function startWebhook(options: WebhookOptions): Promise<ClusterWebhook> {
  const metrics = createMetrics(options.log, "webhook");
  const connection = withRequestMetrics(options.connection, metrics, options.clock);
  return await withCleanup((closers) => assemble({ ...options, connection, metrics }, closers));
}

type Metered = WebhookOptions & { readonly metrics: MetricsRegistry };

async function assemble(options: Metered, closers: CleanupStack): Promise<Omit<ClusterWebhook, "close">> {
  const { clock, log, connection, departMs } = options;
  const opened = await openCertificates(options);
  const replica = await openCaches(options);
  closers.push(() => replica.close());
  const { metrics } = options;
  metrics.watchProcess();
  withMetrics(metrics, replica.cache);
  const access = new SubjectAccessChecker(connection, clock);
  const events = startEvents(options, closers);
  const collector = startControllers(options, { replica, access, metrics, events, closers });
  let leaving = false;
  let serving: TlsHandle | undefined;
  const ready = () => {
    if (leaving) return { ready: false, reason: "this replica is ending" };
    const knows = replica.ready();
    return knows.ready ? (serving?.ready() ?? { ready: false, reason: "this replica begins" }) : knows;
  };
  withReplicaMetrics(metrics, {
    version: manifest.version,
    ready: () => ready().ready,
    certificates: () => serving?.certificates() ?? {},
  });
  const handlers = onceReady(
    replica,
    createHandlers({
      context: replica.context,
      inventory: replica.inventory.admission,
      access,
      ...(options.refusalsNameAll === true ? {} : { readAccess: new ReviewedReadAccess(connection, clock) }),
      ...(options.checkOwners === true ? { owners: new LiveOwners(connection, clock) } : {}),
      ...(options.foreignRequests === undefined ? {} : { foreignRequests: options.foreignRequests }),
      ...dialectsOf(options),
      nodeUse: { podCIDRs: options.nodeCIDRs ?? [], cilium: options.cilium },
      pendingClaims: trackPendingClaims(replica, { clock, log: limitedLogger(log, clock) }),
      occupants: () => replica.occupants(),
      services: remembered(() => readServices(connection), clock, SERVICES_MS),
      catchUp: () => waitForPools(replica.context, replica.cache),
      enqueueForGc: (claim) => collector.enqueue(claim),
    }),
  );
  const { metricsToken } = options;
  const readers =
    metricsToken === undefined
      ? {}
      : { mayReadMetrics: whoShowsTokenOf(metricsToken, limitedLogger(log, clock)) };
  const decide = createApp({ handlers, ready, metrics, log, clock, ...readers });
  const app: RequestListener = (request, response) => {
    // the API server keeps its connections for as long as they live, wherever new ones go by now
    if (leaving) response.setHeader("Connection", "close");
    decide(request, response);
  };
  serving = await serveCertificates(options, { opened, app, closers });
  closers.push(async () => {
    leaving = true;
    await clock.sleep(departMs);
  });
  return { address: serving.address, ready };
}

function dialectsOf({ dialects }: WebhookOptions): { readonly dialects?: Dialects } {
  return dialects === undefined ? {} : { dialects };
}

/** Decisions need the whole view: an address that is missing from half of one looks free, a pool unknown. */
function onceReady(
  replica: ClusterCaches,
  handlers: Readonly<Record<Route, Handler>>,
): Readonly<Record<Route, Handler>> {
  const guard = (handler: Handler) => async (request: AdmissionRequest, signal: AbortSignal) => {
    const { ready, reason } = replica.ready();
    if (ready) return await handler(request, signal);
    throw new BerthError("NOT_READY", `berth cannot decide yet: ${reason}; try again in a moment`);
  };
  const guarded = ROUTES.map((route) => [route, guard(handlers[route])] as const);
  return Object.fromEntries(guarded) as Record<Route, Handler>;
}

function startEvents(options: WebhookOptions, closers: CleanupStack): EventRecorder {
  const { connection, podName, clock, random, log } = options;
  const events = new EventRecorder({
    sink: kubeEventSink(connection, { controller: "berth.dev/webhook", instance: podName }),
    ...{ clock, random, log },
  });
  const stop = new AbortController();
  const sending = events.run(stop.signal);
  closers.push(async () => {
    stop.abort();
    await sending;
  });
  return events;
}

function startControllers(
  options: WebhookOptions,
  to: {
    readonly replica: ClusterCaches;
    readonly access: PoolAccess;
    readonly metrics: MetricsRegistry;
    readonly events: EventRecorder;
    readonly closers: CleanupStack;
  },
): GcController {
  const { replica, access, metrics, events, closers } = to;
  const { refusalsNameAll = false } = options;
  const { clientAuthority, reviewersBy: limited = "nothing" } = options;
  const reviewersBy = clientAuthority === undefined ? limited : "ClientCertificate";
  const { connection, namespace, podName, clock, random, log } = options;
  const leadership = startLeadership({
    ...{ connection, namespace, clock, random, log },
    name: LEASE,
    identity: `${podName}_${random.token()}`, // a container that starts again has the same name
  });
  closers.push(() => leadership.close());
  metrics.gauge("berth_leader", () => [{ labels: {}, value: leadership.leads() ? 1 : 0 }]);
  // of two replicas one has the lease, so they go to different halves; nothing but the number of tries rests on it
  replica.goesFirstTo(() => (leadership.leads() ? "even" : "odd"));
  const { context, cache, watches, inventory, synced } = replica;
  const collector = startGcController({ context, inventory, leadership, metrics, events, synced });
  closers.push(() => collector.close());
  const enqueueForGc: ControllerDeps["enqueueForGc"] = (claim) => collector.enqueue(claim);
  const knows = { context, cache, watches, inventory, leadership, connection, access };
  const deps: ControllerDeps = {
    ...knows,
    events,
    metrics,
    enqueueForGc: enqueueForGc,
    reviewersBy,
    refusalsNameAll,
    ...(options.nodeCIDRs === undefined ? {} : { nodeCIDRs: options.nodeCIDRs }),
    ...(options.boundEvents === undefined ? {} : { boundEvents: options.boundEvents }),
    ...dialectsOf(options),
  };
  const controllers = [
    startGcTriggers({ cache, watches, clock, enqueueForGc }),
    ...[startBinder, startWorkloads, startClaims, startPools, startBlocks, startNodeCidrs].map((start) =>
      start(deps),
    ),
    ...(options.cilium === undefined ? [] : [startCilium(deps, { mode: options.cilium })]),
  ];
  closers.push(async () => {
    await Promise.all(controllers.map((controller) => controller.close()));
  });
  return collector;
}
