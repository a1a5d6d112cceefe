// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { type Clock, silent } from "../../allocator/ports.ts";
import { createClock } from "../../system/clock.ts";
import { createMetrics, type MetricsRegistry } from "../../system/metrics.ts";
import { type AdmissionRequest, type AdmissionResponse, allowed, type Handler } from "../admission/review.ts";
import { createApp, type Readiness, ROUTES, type Route } from "../app.ts";
import { issueAuthority, issueLeaf } from "../certificates.ts";
import { serveTls, type TlsServer } from "../server.ts";
import { type Call, call, podReview, type Reply } from "./api-server.ts";

const real = createClock();
/** Deadlines that a query asks for pass ten times as fast; that of 9 s is not meant to pass at all. */
const clock: Clock = { ...real, sleep: (ms, signal) => real.sleep(ms > 5000 ? ms : ms / 10, signal) };

/** The app behind a server, with one handler for all routes that a test may exchange. Whoever opens it closes it. */
export class AppBench {
  readonly metrics: MetricsRegistry = createMetrics(silent);
  handler: Handler;
  ready: Readiness = { ready: true, reason: "" };
  scrape: MetricsRegistry["expose"] = () => this.metrics.expose();
  /** What the handler was asked since the last reset. */
  asked: { route: string; request: AdmissionRequest }[] = [];
  #server: TlsServer | undefined;
  #ca = "";

  private constructor() {
    this.handler = async (request) => allowed(request.uid);
  }

  static async open(): Promise<AppBench> {
    const bench = new AppBench();
    await bench.#serve();
    return bench;
  }

  async #serve(): Promise<void> {
    const authority = await issueAuthority(clock);
    this.#ca = authority.cert;
    const handlers = Object.fromEntries(
      ROUTES.map((route): [string, Handler] => [
        route,
        (request, signal) => {
          this.asked.push({ route, request });
          return this.handler(request, signal);
        },
      ]),
    ) as Record<Route, Handler>;
    this.#server = await serveTls({
      app: createApp({
        handlers,
        ready: () => this.ready,
        metrics: { ...this.metrics, expose: () => this.scrape() },
        log: silent,
        clock,
      }),
      host: "127.0.0.1",
      port: 0,
      certificate: await issueLeaf(authority, { dnsNames: [], addresses: ["127.0.0.1"] }, clock),
      log: silent,
      clock,
    });
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }

  /** Everything as at the start, the metrics apart. */
  reset(): void {
    this.asked = [];
    this.ready = { ready: true, reason: "" };
    this.handler = async (request) => allowed(request.uid);
    this.scrape = () => this.metrics.expose();
  }

  async request(changes: Partial<Call> = {}): Promise<Reply> {
    const port = this.#server?.address.port ?? 0;
    const body = JSON.stringify(podReview());
    return await call({ port, ca: this.#ca, path: "/mutate/pods", body, ...changes });
  }

  /** Posts and checks that the answer is a review. */
  async review(changes: Partial<Call> = {}) {
    const reply = await this.request(changes);
    const body = JSON.parse(reply.text) as { apiVersion: string; kind: string; response: AdmissionResponse };
    assert.deepEqual(Object.keys(body), ["apiVersion", "kind", "response"]);
    assert.equal(body.kind, "AdmissionReview");
    assert.equal(reply.headers["content-type"], "application/json; charset=utf-8");
    return { http: reply.status, apiVersion: body.apiVersion, ...body.response };
  }

  /** HTTP status, uid, code and words of a review that was refused before any handler. */
  async unread(changes: Partial<Call>) {
    const { http, uid, allowed: yes, status } = await this.review(changes);
    assert.equal(yes, false);
    assert.deepEqual(this.asked, []);
    return { http, uid, code: status?.code, message: status?.message };
  }
}
