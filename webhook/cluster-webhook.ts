// SPDX-License-Identifier: Apache-2.0

import type { RequestListener } from "node:http";
import { join } from "node:path";
import { BerthError, messageOf } from "../allocator/errors.ts";
import type { Clock, Logger, Random } from "../allocator/ports.ts";
import type { Connection } from "../kube/connection.ts";
import { kubeEventSink } from "../kube/event-sink.ts";
import { EventRecorder } from "../kube/events.ts";
import type { LeaseTimings } from "../kube/lease.ts";
import { assembled, type Closers } from "../system/assembly.ts";
import { createMetrics, type MetricsRegistry } from "../system/metrics.ts";
import { hearOfPools } from "./admission/catch-up.ts";
import type { PoolAccess } from "./admission/desk.ts";
import { createHandlers } from "./admission/handlers.ts";
import { ReviewedAccess } from "./admission/pool-access.ts";
import type { AdmissionRequest, Handler } from "./admission/review.ts";
import { createApp, type Readiness, ROUTES, type Route } from "./app.ts";
import type { CertificatePair } from "./certificate-pair.ts";
import { readCertificateFiles, watchCertificateFiles } from "./certificate-watch.ts";
import { startBinder } from "./controllers/binder.ts";
import { startClaims } from "./controllers/claims.ts";
import type { ControllerDeps } from "./controllers/controller.ts";
import { type Housekeeper, startHousekeeper } from "./controllers/housekeeper.ts";
import { startLeadership } from "./controllers/leadership.ts";
import { startPhases } from "./controllers/phases.ts";
import { startPools } from "./controllers/pools.ts";
import { startSuspicions } from "./controllers/suspicions.ts";
import { startWorkloads } from "./controllers/workloads.ts";
import { measure } from "./measure.ts";
import { openReplica, type Replica } from "./replica.ts";
import { serveTls, type TlsServer } from "./server.ts";

export interface WebhookOptions {
  /** Stays open when the webhook is closed: it belongs to whoever opened it. */
  readonly connection: Connection;
  /** Where the lease lies. */
  readonly namespace: string;
  readonly podName: string;
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** The folder of `tls.crt` and `tls.key`. */
  readonly certificates: string;
  /** How long it serves on after `close` was called, for those who have not heard yet. */
  readonly departMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Those of the Kubernetes components if absent. */
  readonly leaseTimings?: LeaseTimings;
}

export interface ClusterWebhook {
  readonly address: TlsServer["address"];
  readonly ready: () => Readiness;
  /** Says that it is not ready, serves on for a moment, drains, ends the controllers and gives the lease back. Repeatable. */
  close(): Promise<void>;
}

/** The Lease by which replicas choose who does the housekeeping. */
const LEASE = "berth-webhook";

/**
 * One replica of the webhook: admission, controllers, and what they know of the cluster. It serves at once and is
 * ready when everything was listed. Whatever was started is closed again, in reverse, when a later part cannot start.
 * Throws BerthError: CONFIG_INVALID or CERTIFICATE_INVALID for what the administrator can mend.
 */
export async function startWebhook(options: WebhookOptions): Promise<ClusterWebhook> {
  return await assembled((closers) => assemble(options, closers));
}

async function assemble(options: WebhookOptions, closers: Closers): Promise<Omit<ClusterWebhook, "close">> {
  const { clock, log, connection, departMs } = options;
  const certificate = await readCertificates(options.certificates);
  const replica = await openReplica(options);
  closers.push(() => replica.close());
  const metrics = createMetrics(log);
  measure(metrics, replica.mirror);
  const access = new ReviewedAccess(connection, clock);
  const house = startControllers(options, { replica, access, metrics, closers });
  let leaving = false;
  const ready = () => (leaving ? { ready: false, reason: "this replica is ending" } : replica.ready());
  const handlers = onceReady(
    replica,
    createHandlers({
      context: replica.context,
      inventory: replica.inventory.admission,
      access,
      catchUp: () => hearOfPools(replica.context, replica.mirror),
      suspect: (claim) => house.suspect(claim),
    }),
  );
  const decide = createApp({ handlers, ready, metrics, log, clock });
  const app: RequestListener = (request, response) => {
    // the API server keeps its connections for as long as they live, wherever new ones go by now
    if (leaving) response.setHeader("Connection", "close");
    decide(request, response);
  };
  const address = await serve(options, { app, certificate, closers });
  closers.push(async () => {
    leaving = true;
    await clock.sleep(departMs);
  });
  return { address, ready };
}

/** Decisions need the whole view: an address that is missing from half of one looks free, a pool unknown. */
function onceReady(
  replica: Replica,
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

function startControllers(
  options: WebhookOptions,
  to: {
    readonly replica: Replica;
    readonly access: PoolAccess;
    readonly metrics: MetricsRegistry;
    readonly closers: Closers;
  },
): Housekeeper {
  const { replica, access, metrics, closers } = to;
  const { connection, namespace, podName, clock, random, log, leaseTimings } = options;
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
  const leadership = startLeadership({
    ...{ connection, namespace, clock, random, log },
    name: LEASE,
    identity: `${podName}_${random.token()}`, // a container that starts again has the same name
    ...(leaseTimings === undefined ? {} : { timings: leaseTimings }),
  });
  closers.push(() => leadership.close());
  const { context, mirror, watches, inventory, synced } = replica;
  const house = startHousekeeper({ context, inventory, leadership, metrics, synced });
  closers.push(() => house.close());
  const suspect: ControllerDeps["suspect"] = (claim) => house.suspect(claim);
  const knows = { context, mirror, watches, inventory, leadership, connection, access };
  const deps: ControllerDeps = { ...knows, events, metrics, suspect };
  const controllers = [
    startSuspicions({ mirror, watches, clock, suspect }),
    ...[startBinder, startWorkloads, startClaims, startPools, startPhases].map((start) => start(deps)),
  ];
  closers.push(async () => {
    await Promise.all(controllers.map((controller) => controller.close()));
  });
  return house;
}

function filesIn(folder: string): { readonly cert: string; readonly key: string } {
  return { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") };
}

async function readCertificates(folder: string): Promise<CertificatePair> {
  const files = filesIn(folder);
  try {
    return await readCertificateFiles(files);
  } catch (cause) {
    const words = `the certificate cannot be read: ${messageOf(cause)}; mount the webhook's secret at ${folder}, or set BERTH_TLS`;
    throw new BerthError("CONFIG_INVALID", words, { cause, details: { path: folder } });
  }
}

async function serve(
  options: WebhookOptions,
  from: { readonly app: RequestListener; readonly certificate: CertificatePair; readonly closers: Closers },
): Promise<TlsServer["address"]> {
  const { host, port, clock, log, certificates } = options;
  const { app, certificate, closers } = from;
  const server = await serveTls({ app, host, port, certificate, log, clock });
  closers.push(() => server.close());
  const watch = watchCertificateFiles({
    files: filesIn(certificates),
    serving: certificate,
    reload: (pair) => server.reload(pair),
    ...{ clock, log },
  });
  closers.push(() => watch.close());
  return server.address;
}
