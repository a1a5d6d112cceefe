// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { connect, type TLSSocket } from "node:tls";
import { noopLogger, type Readiness } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { createMetrics, type MetricsRegistry } from "../../system/metrics.ts";
import { issueAuthority, issueServingCertificate } from "../certificates/issue.ts";
import { createApp } from "../http/app.ts";
import type { MetricsReader } from "../http/metrics-token.ts";
import { serveTls, type TlsServer } from "../http/tls-server.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  type Handler,
  ROUTES,
  type Route,
} from "../review/admission-review.ts";
import { Intake } from "../review/intake.ts";
import { type Call, call, podReview, type Reply } from "./api-server.ts";

// without its alarm: all that the app waits for goes by `sleep`, which is the bench's
const { alarm: _, ...clock } = createClock();

/** The app behind a server, with one handler for all routes that a test may exchange. Whoever opens it closes it. */
export class AppBench {
  readonly metrics: MetricsRegistry = createMetrics(noopLogger);
  handler: Handler;
  ready: Readiness = { ready: true, reason: "" };
  intake = new Intake();
  mayReadMetrics: MetricsReader = () => true;
  readonly lines: string[] = [];
  scrape: MetricsRegistry["expose"] = () => this.metrics.expose();
  /** What the handler was asked since the last reset. */
  asked: { route: string; request: AdmissionRequest }[] = [];
  /** Of the time that passes. Deadlines that a query asks for come ten times as fast; that of 9 s is not meant to come at all. */
  clockFactor: number | undefined;
  /** All time that somebody waits for is over once the handler was asked, and none before: a body is never late where the machine is. */
  isHandlerLate = false;
  /** What the app's clock shows, if it stands still. */
  monotonic: number | undefined;
  /** Called when the app begins to wait for so long: of a review for its body first, and then for its handler. */
  onWait: (ms: number) => void = () => {};
  readonly #untilAsked = new Set<() => void>();
  #server: TlsServer | undefined;
  #ca = "";

  private constructor() {
    this.handler = async (request) => allowed(request.uid);
  }

  static async open(intake?: Intake): Promise<AppBench> {
    const bench = new AppBench();
    bench.intake = intake ?? bench.intake;
    await bench.#serve();
    return bench;
  }

  async #serve(): Promise<void> {
    const ca = await issueAuthority(clock);
    this.#ca = ca.cert;
    const handlers = Object.fromEntries(
      ROUTES.map((route): [string, Handler] => [
        route,
        (request, signal) => {
          this.asked.push({ route, request });
          // the deadline begins to run after this
          setImmediate(() => {
            for (const wake of this.#untilAsked) wake();
          });
          return this.handler(request, signal);
        },
      ]),
    ) as Record<Route, Handler>;
    this.#server = await serveTls({
      app: createApp({
        handlers,
        ready: () => this.ready,
        mayReadMetrics: (authorization) => this.mayReadMetrics(authorization),
        metrics: { ...this.metrics, expose: () => this.scrape() },
        log: { ...noopLogger, warn: (message) => void this.lines.push(message) },
        clock: {
          ...clock,
          monotonic: () => this.monotonic ?? clock.monotonic(),
          sleep: (ms, signal) => {
            this.onWait(ms);
            return this.isHandlerLate
              ? this.#sleepUntilAsked(signal)
              : clock.sleep(ms * (this.clockFactor ?? (ms > 5000 ? 1 : 0.1)), signal);
          },
        },
        intake: this.intake,
      }),
      host: "127.0.0.1",
      port: 0,
      certificate: await issueServingCertificate(ca, { dnsNames: [], addresses: ["127.0.0.1"] }, clock),
      log: noopLogger,
      clock,
    });
  }

  #sleepUntilAsked(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#untilAsked.delete(wake);
        resolve();
      };
      this.#untilAsked.add(wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }

  /** Everything as at the start, the metrics apart. */
  reset(): void {
    this.asked = [];
    this.lines.splice(0);
    this.clockFactor = undefined;
    this.isHandlerLate = false;
    this.monotonic = undefined;
    this.onWait = () => {};
    this.ready = { ready: true, reason: "" };
    this.handler = async (request) => allowed(request.uid);
    this.scrape = () => this.metrics.expose();
  }

  /** What is sent byte by byte. */
  connect(): TLSSocket {
    return connect({ host: "127.0.0.1", port: this.#server?.address.port ?? 0, ca: this.#ca });
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
