// SPDX-License-Identifier: Apache-2.0

import type { RequestListener } from "node:http";
import { BerthError } from "../allocator/errors.ts";
import type { Clock, Logger, Random } from "../allocator/ports.ts";
import type { Connection } from "../kube/connection.ts";
import { kubeEventSink } from "../kube/event-sink.ts";
import { EventRecorder } from "../kube/events.ts";
import type { LeaseTimings } from "../kube/lease.ts";
import { metered } from "../kube/metered-connection.ts";
import manifest from "../package.json" with { type: "json" };
import { assembled, type Closers } from "../system/assembly.ts";
import { createMetrics, type MetricsRegistry } from "../system/metrics.ts";
import { hearOfPools } from "./admission/catch-up.ts";
import type { PoolAccess } from "./admission/desk.ts";
import { createHandlers } from "./admission/handlers.ts";
import { followHolds } from "./admission/holds.ts";
import { ReviewedAccess } from "./admission/pool-access.ts";
import type { AdmissionRequest, Handler } from "./admission/review.ts";
import { createApp, type Readiness, ROUTES, type Route } from "./app.ts";
import { openCertificates, type Serving, serveCertificates } from "./certificate-serving.ts";
import type { Issuing } from "./config.ts";
import { startBinder } from "./controllers/binder.ts";
import { startClaims } from "./controllers/claims.ts";
import type { ControllerDeps } from "./controllers/controller.ts";
import { type Housekeeper, startHousekeeper } from "./controllers/housekeeper.ts";
import { startLeadership } from "./controllers/leadership.ts";
import { startPhases } from "./controllers/phases.ts";
import { startPools } from "./controllers/pools.ts";
import { startSuspicions } from "./controllers/suspicions.ts";
import { startWorkloads } from "./controllers/workloads.ts";
import { measure, measureReplica } from "./measure.ts";
import { openReplica, type Replica } from "./replica.ts";
import type { TlsServer } from "./server.ts";

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
  /** Instead of the folder: Berth is its own authority. */
  readonly issuing?: Issuing;
  /** The file of the authority of clients that may send reviews; absent: anyone may. */
  readonly clientAuthority?: string;
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
  const metrics = createMetrics(options.log, "webhook");
  const connection = metered(options.connection, metrics, options.clock);
  return await assembled((closers) => assemble({ ...options, connection, metrics }, closers));
}

type Metered = WebhookOptions & { readonly metrics: MetricsRegistry };

async function assemble(options: Metered, closers: Closers): Promise<Omit<ClusterWebhook, "close">> {
  const { clock, log, connection, departMs } = options;
  const opened = await openCertificates(options);
  const replica = await openReplica(options);
  closers.push(() => replica.close());
  const { metrics } = options;
  metrics.watchProcess();
  measure(metrics, replica.mirror);
  const access = new ReviewedAccess(connection, clock);
  const events = startEvents(options, closers);
  const house = startControllers(options, { replica, access, metrics, events, closers });
  let leaving = false;
  let serving: Serving | undefined;
  const ready = () => {
    if (leaving) return { ready: false, reason: "this replica is ending" };
    const knows = replica.ready();
    return knows.ready ? (serving?.ready() ?? { ready: false, reason: "this replica begins" }) : knows;
  };
  measureReplica(metrics, {
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
      holds: followHolds(replica, { clock, log }),
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
  serving = await serveCertificates(options, { opened, app, events, closers });
  closers.push(async () => {
    leaving = true;
    await clock.sleep(departMs);
  });
  return { address: serving.address, ready };
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

function startEvents(options: WebhookOptions, closers: Closers): EventRecorder {
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
    readonly replica: Replica;
    readonly access: PoolAccess;
    readonly metrics: MetricsRegistry;
    readonly events: EventRecorder;
    readonly closers: Closers;
  },
): Housekeeper {
  const { replica, access, metrics, events, closers } = to;
  const { connection, namespace, podName, clock, random, log, leaseTimings } = options;
  const leadership = startLeadership({
    ...{ connection, namespace, clock, random, log },
    name: LEASE,
    identity: `${podName}_${random.token()}`, // a container that starts again has the same name
    ...(leaseTimings === undefined ? {} : { timings: leaseTimings }),
  });
  closers.push(() => leadership.close());
  metrics.gauge("berth_leader", () => [{ labels: {}, value: leadership.leads() ? 1 : 0 }]);
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
