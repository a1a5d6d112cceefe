// SPDX-License-Identifier: Apache-2.0
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from "express";
import { BerthError } from "../allocator/errors.ts";
import type { Clock, Logger, Metrics } from "../allocator/ports.ts";
import { BODY_LIMIT, decode, readBody, uidIn } from "./admission/body.ts";
import { DEADLINE_MS, guarded } from "./admission/guard.ts";
import {
  type AdmissionRequest,
  type AdmissionReview,
  errored,
  type Handler,
  parseReview,
  reviewOf,
} from "./admission/review.ts";

export const ROUTES = [
  "/mutate/pods",
  "/validate/pods",
  "/validate/workloads",
  "/validate/pools",
  "/validate/claims",
  "/validate/namespaces",
] as const;
export type Route = (typeof ROUTES)[number];

export interface Readiness {
  readonly ready: boolean;
  /** Why not, for people. */
  readonly reason: string;
}

export interface AppDeps {
  readonly handlers: Readonly<Record<Route, Handler>>;
  readonly ready: () => Readiness;
  readonly metrics: Metrics & { expose(): Promise<{ readonly contentType: string; readonly body: string }> };
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * The webhook's routes; knows nothing of TLS, of ports, or of what is decided. An admission route answers every
 * request with an AdmissionReview. Its HTTP status is 200 once the body was JSON with a uid, because the API server
 * reads no other answer; otherwise it is that of the review's own status.
 */
export function createApp(deps: AppDeps): express.Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("strict routing");
  app.enable("case sensitive routing");
  for (const route of ROUTES) {
    app.route(route).post(admit(route, deps)).all(refuseMethod);
  }
  app.get("/healthz", (_request, response) => {
    response.type("text/plain").send("ok\n");
  });
  app.get("/readyz", (_request, response) => {
    const { ready, reason } = deps.ready();
    response.status(ready ? 200 : 503).type("text/plain");
    response.send(`${ready ? "ok" : reason}\n`);
  });
  app.get("/metrics", async (_request, response) => {
    const { contentType, body } = await deps.metrics.expose();
    response.set("Content-Type", contentType).send(body);
  });
  app.use((_request, response) => {
    response.status(404).json({ error: "not found" });
  });
  app.use(answerFault(deps.log));
  return app;
}

function admit(route: Route, deps: AppDeps): RequestHandler {
  const handle = guarded(deps.handlers[route], { route, ...deps });
  return async (request, response) => {
    const started = deps.clock.monotonic();
    const deadlineMs = deadlineOf(request);
    const asked = await readReview(request, deadlineMs, deps.clock);
    if (asked.kind === "lost") return;
    if (asked.kind === "unreadable") {
      deps.log.warn("admission review could not be read", { route, code: asked.httpCode, uid: asked.uid });
      const labels = { route, operation: "", outcome: "unreadable", code: String(asked.httpCode) };
      deps.metrics.increment("berth_admission_reviews_total", labels);
      const { uid, why, httpCode, apiVersion } = asked;
      // what is left of the body would be taken for the next request
      if (!request.complete) response.set("Connection", "close");
      send(response, asked.status, reviewOf(errored(uid, why, { httpCode }), apiVersion));
      return;
    }
    const leftMs = deadlineMs - (deps.clock.monotonic() - started);
    const answer = await handle(asked.request, hangUpSignal(response), leftMs);
    send(response, 200, reviewOf(answer));
  };
}

type Asked =
  | { readonly kind: "review"; readonly request: AdmissionRequest }
  | { readonly kind: "lost" }
  | {
      readonly kind: "unreadable";
      readonly uid: string;
      readonly why: string;
      /** In the review; `status` is the HTTP status of the answer. */
      readonly httpCode: number;
      readonly status: number;
      readonly apiVersion?: string;
    };

async function readReview(request: Request, deadlineMs: number, clock: Clock): Promise<Asked> {
  const json = isPlainJson(request);
  const [read, late] = [new AbortController(), new AbortController()];
  void clock.sleep(deadlineMs, read.signal).then(() => late.abort());
  // of what is no JSON nothing but the beginning is kept, for the uid that may stand there
  const body = await readBody(request, json ? BODY_LIMIT : 0, late.signal);
  read.abort("the body was read"); // a reason of one's own costs no stack trace
  if (body.kind === "lost") return body;
  const bytes = body.kind === "whole" ? body.bytes : body.prefix;
  const unreadable = (httpCode: number, why: string): Asked => {
    return { kind: "unreadable", uid: uidIn(bytes), why, httpCode, status: httpCode };
  };
  if (body.kind === "slow") return unreadable(408, `the body did not come within ${deadlineMs / 1000} s`);
  if (!json) return unreadable(415, "the body must be application/json in UTF-8 and not compressed");
  if (body.kind === "too large") return unreadable(413, `the body is larger than ${BODY_LIMIT} bytes`);
  const decoded = decode(bytes);
  if (decoded.kind === "unreadable") return unreadable(400, `the body cannot be read: ${decoded.why}`);
  const parsed = parseReview(decoded.value);
  if ("request" in parsed) return { kind: "review", request: parsed.request };
  const { invalid, uid, apiVersion } = parsed;
  return { kind: "unreadable", uid, why: invalid, httpCode: 400, status: uid === "" ? 400 : 200, apiVersion };
}

const PLAIN_JSON = /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;

function isPlainJson({ headers }: Request): boolean {
  const encoding = headers["content-encoding"] ?? "identity";
  return PLAIN_JSON.test(headers["content-type"] ?? "") && encoding.toLowerCase() === "identity";
}

/** Aborts when the connection goes before the answer is out. */
function hangUpSignal(response: Response): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort(new BerthError("TIMED_OUT", "the client hung up"));
  });
  return controller.signal;
}

/** `?timeout=10s` is how long the API server waits; a tenth of it is for the way there and back. */
function deadlineOf(request: Request): number {
  const seconds = /^([1-9][0-9]?)s$/.exec(String(request.query["timeout"]))?.[1];
  return seconds === undefined ? DEADLINE_MS : Number(seconds) * 900;
}

function send(response: Response, status: number, review: AdmissionReview): void {
  response.status(status).json(review);
}

function refuseMethod(_request: Request, response: Response): void {
  response.status(405).set("Allow", "POST").json({ error: "method not allowed" });
}

/** Last in the chain, for a scrape that failed, or a defect. Says nothing about the inside. */
function answerFault(log: Logger): ErrorRequestHandler {
  return (error: unknown, request, response, next) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    log.error("request failed", { path: request.path, error });
    response.status(500).json({ error: "internal error" });
  };
}
