// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from "express";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Metrics, Readiness } from "../../allocator/base/ports.ts";
import { limitedLogger } from "../../system/limited-logger.ts";
import { peerOf } from "../../system/peer.ts";
import { singleFlight } from "../../system/single-flight.ts";
import {
  type AdmissionReview,
  errored,
  type Handler,
  ROUTES,
  type Route,
  reviewOf,
} from "../review/admission-review.ts";
import { DEADLINE_MS, withDeadline } from "../review/deadline.ts";
import { DecodeQueue } from "../review/decode-queue.ts";
import { type Busy, Intake } from "../review/intake.ts";
import type { GivenUp } from "../review/request-body.ts";
import { answerEarly } from "./early-answer.ts";
import type { MetricsReader } from "./metrics-token.ts";
import { IN_CHUNKS, readReview, type Unread } from "./read-review.ts";

interface AppDeps {
  readonly handlers: Readonly<Record<Route, Handler>>;
  readonly ready: () => Readiness;
  readonly metrics: Metrics & { expose(): Promise<{ readonly contentType: string; readonly body: string }> };
  readonly log: Logger;
  readonly clock: Clock;
  /** Absent: whoever reaches the port may read the metrics. */
  readonly mayReadMetrics?: MetricsReader;
  /** What may be read and decided at a time; that of `INTAKE_LIMITS` if absent. */
  readonly intake?: Intake;
}

/**
 * The webhook's routes; knows nothing of TLS, of ports, or of what is decided. An admission route answers every
 * request with an AdmissionReview. Its HTTP status is 200 once the body was JSON with a uid, because the API server
 * reads no other answer; otherwise it is that of the review's own status.
 */
export function createApp(given: AppDeps): RequestListener {
  // whoever reaches the port makes lines by sending what is no review
  const deps = {
    intake: new Intake(),
    queue: new DecodeQueue(),
    ...given,
    log: limitedLogger(given.log, given.clock),
  };
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("strict routing");
  app.enable("case sensitive routing");
  app.use((request, response, next) => {
    // an API server sends reviews and nothing else. Whoever reads something comes for each time anew, as probes do, and waits for his
    // turn (`Handshakes`). Nor does anybody read a body of such a request: it must not go on for as long as its sender likes
    if (!isReview(request)) response.set("Connection", "close");
    next();
  });
  for (const route of ROUTES) {
    app.route(route).post(admit(route, deps)).all(refuseMethod(deps.clock));
  }
  app.get("/healthz", (_request, response) => {
    response.type("text/plain").send("ok\n");
  });
  app.get("/readyz", (_request, response) => {
    const { ready, reason } = deps.ready();
    response.status(ready ? 200 : 503).type("text/plain");
    response.send(`${ready ? "ok" : reason}\n`);
  });
  const scrape = singleFlight(() => deps.metrics.expose());
  app.get("/metrics", async (request, response) => {
    if (deps.mayReadMetrics?.(request.headers.authorization) === false) {
      response.status(401).set("WWW-Authenticate", "Bearer");
      sendEarly(
        response,
        { error: "metrics are for who shows the token of BERTH_METRICS_TOKEN" },
        deps.clock,
      );
      return;
    }
    const { contentType, body } = await scrape();
    response.set("Content-Type", contentType).send(body);
  });
  app.use((_request, response) => {
    sendEarly(response.status(404), { error: "not found" }, deps.clock);
  });
  app.use(answerFault(deps));
  const route: Routes = app;
  return (request, response) => route(request, response, () => answerUnrouted(response, deps.clock));
}

/** An app of Express calls the third with what it would answer by itself, as a page, on a connection that it leaves open. */
type Routes = (request: IncomingMessage, response: ServerResponse, unrouted: () => void) => void;

/** A path that cannot be read passes by every route, that of all others, too. */
function answerUnrouted(response: ServerResponse, clock: Clock): void {
  response.statusCode = 400;
  response.setHeader("Connection", "close");
  sendEarly(response, { error: "the path cannot be read" }, clock);
}

const REVIEWS: ReadonlySet<string> = new Set(ROUTES);

function isReview({ method, path }: Request): boolean {
  return method === "POST" && REVIEWS.has(path);
}

function admit(
  route: Route,
  deps: Required<Omit<AppDeps, "mayReadMetrics">> & { readonly queue: DecodeQueue },
): RequestHandler {
  const { intake, queue, clock } = deps;
  const handle = withDeadline(deps.handlers[route], { route, ...deps });
  return async (request, response) => {
    if (request.headers["transfer-encoding"] !== undefined) {
      refuseUnread(deps, route, response, IN_CHUNKS);
      return;
    }
    // from here on: a client may go while its body is read, or decoded
    const hangUp = hangUpSignal(response);
    const late = new AbortController();
    const place = intake.enter(peerOf(request.socket), () => late.abort("busy" satisfies GivenUp));
    if (typeof place === "string") {
      turnAway(deps, route, response, place);
      return;
    }
    try {
      const started = clock.monotonic();
      const deadlineMs = deadlineOf(request);
      const asked = await readReview(request, { deadlineMs, late, place, queue, clock });
      if (asked.kind === "lost") return;
      if (asked.kind === "busy") {
        turnAway(deps, route, response, asked.whose);
        return;
      }
      if (asked.kind === "unreadable") {
        refuseUnread(deps, route, response, asked);
        return;
      }
      // nobody waits for what it would reserve
      if (hangUp.aborted) return;
      const leftMs = deadlineMs - (clock.monotonic() - started);
      const answer = await handle(asked.request, hangUp, leftMs);
      send(response, 200, reviewOf(answer));
    } finally {
      place.leave();
    }
  };
}

/** The API server tries again by itself, for as long as it would wait, when it is told when. */
const RETRY_AFTER_S = 1;

/** As text: of an answer that is no review, that is what an API server passes on to whoever asked it. */
function turnAway({ log, metrics, clock }: AppDeps, route: Route, response: Response, whose: Busy): void {
  const code = whose === "peer" ? 429 : 503;
  const words =
    whose === "peer"
      ? "berth decides as many reviews of this address as it may have at a time; try again"
      : "berth decides as many reviews as it can at a time; try again";
  log.warn("admission review turned away", { route, code });
  metrics.increment("berth_admission_reviews_total", countOf(route, code));
  response.set({ Connection: "close", "Retry-After": String(RETRY_AFTER_S) });
  response.status(code).type("text/plain");
  answerEarly(response, words, clock);
}

function refuseUnread(
  { log, metrics, clock }: AppDeps,
  route: Route,
  response: Response,
  unread: Unread,
): void {
  const { uid, why, httpCode, apiVersion, status, cutOff = false } = unread;
  log.warn("admission review could not be read", { route, code: httpCode, uid });
  metrics.increment("berth_admission_reviews_total", countOf(route, httpCode));
  response.set("Connection", "close");
  const review = reviewOf(errored(uid, why, { httpCode }), apiVersion);
  sendEarly(response.status(status), review, clock, cutOff ? 0 : undefined);
}

function countOf(route: Route, code: number) {
  return { route, operation: "", outcome: "unreadable", code: String(code) };
}

/** Aborts when the connection goes before the answer is out. */
function hangUpSignal(response: Response): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort(new BerthError("TIMED_OUT", "the client hung up"));
  });
  return controller.signal;
}

/**
 * `?timeout=10s` is how long the API server waits; a tenth of it is for the way there and back. Whoever sends it can make
 * it shorter than Berth's own time, and not longer.
 */
function deadlineOf(request: Request): number {
  const seconds = /^([1-9][0-9]?)s$/.exec(String(request.query["timeout"]))?.[1];
  return seconds === undefined ? DEADLINE_MS : Math.min(DEADLINE_MS, Number(seconds) * 900);
}

function send(response: Response, status: number, review: AdmissionReview): void {
  response.status(status).json(review);
}

function refuseMethod(clock: Clock): RequestHandler {
  return (_request, response) => {
    sendEarly(response.status(405).set("Allow", "POST"), { error: "method not allowed" }, clock);
  };
}

/** As `response.json`, where the body may not be read. */
function sendEarly(response: ServerResponse, what: unknown, clock: Clock, most?: number): void {
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  answerEarly(response, JSON.stringify(what), clock, most);
}

/** Last in the chain, for a scrape that failed, or a defect. Says nothing about the inside. */
function answerFault({ log, clock }: AppDeps): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    log.error("request failed", { path: request.path, error });
    if (response.headersSent) {
      request.socket.destroy();
      return;
    }
    response.set("Connection", "close");
    sendEarly(response.status(500), { error: "internal error" }, clock);
  };
}
