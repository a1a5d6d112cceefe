// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { after, before, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { BerthError } from "../allocator/errors.ts";
import { type Clock, silent } from "../allocator/ports.ts";
import { createClock } from "../system/clock.ts";
import { createMetrics } from "../system/metrics.ts";
import { BODY_LIMIT } from "./admission/body.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
  patched,
} from "./admission/review.ts";
import { createApp, type Readiness, ROUTES } from "./app.ts";
import { issueAuthority, issueLeaf } from "./certificates.ts";
import { serveTls, type TlsServer } from "./server.ts";
import { type Call, call, podReview, UID } from "./testing/api-server.ts";

const INTERNAL = `internal error of berth; the log of its webhook has it under uid ${UID}`;

const real = createClock();
/** Deadlines that a query asks for pass ten times as fast; that of 9 s is not meant to pass at all. */
const clock: Clock = { ...real, sleep: (ms, signal) => real.sleep(ms > 5000 ? ms : ms / 10, signal) };

describe("app", () => {
  let server: TlsServer;
  let ca = "";
  let ready: Readiness = { ready: true, reason: "" };
  let handler: Handler = async (request) => allowed(request.uid);
  let asked: { route: string; request: AdmissionRequest }[] = [];
  const metrics = createMetrics(silent);
  let scrape = () => metrics.expose();

  before(async () => {
    const authority = await issueAuthority(clock);
    ca = authority.cert;
    const handlers = Object.fromEntries(
      ROUTES.map((route): [string, Handler] => [
        route,
        (request, signal) => {
          asked.push({ route, request });
          return handler(request, signal);
        },
      ]),
    ) as Record<(typeof ROUTES)[number], Handler>;
    server = await serveTls({
      app: createApp({
        handlers,
        ready: () => ready,
        metrics: { ...metrics, expose: () => scrape() },
        log: silent,
        clock,
      }),
      host: "127.0.0.1",
      port: 0,
      certificate: await issueLeaf(authority, { dnsNames: [], addresses: ["127.0.0.1"] }, clock),
      log: silent,
      clock,
    });
  });
  after(() => server.close());
  beforeEach(() => {
    asked = [];
    ready = { ready: true, reason: "" };
    handler = async (request) => allowed(request.uid);
    scrape = () => metrics.expose();
  });

  const request = (changes: Partial<Call> = {}) =>
    call({
      port: server.address.port,
      ca,
      path: "/mutate/pods",
      body: JSON.stringify(podReview()),
      ...changes,
    });

  /** Posts and checks that the answer is a review. */
  async function review(changes: Partial<Call> = {}) {
    const reply = await request(changes);
    const body = JSON.parse(reply.text) as { apiVersion: string; kind: string; response: AdmissionResponse };
    assert.deepEqual(Object.keys(body), ["apiVersion", "kind", "response"]);
    assert.equal(body.kind, "AdmissionReview");
    assert.equal(reply.headers["content-type"], "application/json; charset=utf-8");
    return { http: reply.status, apiVersion: body.apiVersion, ...body.response };
  }

  /** HTTP status, uid, code and words of a review that was refused before any handler. */
  async function unread(changes: Partial<Call>) {
    const { http, uid, allowed: yes, status } = await review(changes);
    assert.equal(yes, false);
    assert.deepEqual(asked, []);
    return { http, uid, code: status?.code, message: status?.message };
  }

  const sized = (bytes: number) => {
    const [head, tail] = JSON.stringify(podReview({ object: { pad: "PAD" } })).split("PAD");
    return `${head}${"x".repeat(bytes - `${head}${tail}`.length)}${tail}`;
  };

  describe("admission", () => {
    for (const route of ROUTES) {
      it(`asks the handler of ${route} and sends its answer`, async () => {
        handler = async ({ uid }) => patched(uid, [{ op: "add", path: "/x", value: 1 }], ["beware"]);
        assert.deepEqual(await review({ path: route }), {
          http: 200,
          apiVersion: "admission.k8s.io/v1",
          uid: UID,
          allowed: true,
          patchType: "JSONPatch",
          patch: Buffer.from('[{"op":"add","path":"/x","value":1}]').toString("base64"),
          warnings: ["beware"],
        });
        assert.deepEqual(
          asked.map(({ route: at, request: { name, operation } }) => [at, name, operation]),
          [[route, "mysql-0", "CREATE"]],
        );
      });
    }

    it("refuses with HTTP 200, because the API server reads no other answer", async () => {
      handler = async ({ uid }) => denied(uid, { code: "POOL_UNKNOWN", message: 'there is no pool "db"' });
      const { http, uid, allowed: yes, status } = await review();
      assert.deepEqual(
        [http, uid, yes, status?.code, status?.message],
        [200, UID, false, 403, 'there is no pool "db"'],
      );
    });

    it("takes a query, as the API server sends one, and charset utf-8", async () => {
      const headers = { "Content-Type": "application/json; charset=UTF-8" };
      assert.equal((await review({ path: "/mutate/pods?timeout=10s", headers })).allowed, true);
    });

    it("answers with the uid when a handler throws, and goes on with the next", async () => {
      handler = () => {
        throw new Error("boom");
      };
      const { http, uid, status } = await review();
      assert.deepEqual([http, uid, status?.message], [200, UID, INTERNAL]);
      handler = async (one) => allowed(one.uid);
      assert.equal((await review()).allowed, true);
    });

    it("answers before the API server gives up when a handler hangs, by its own timeout", async () => {
      handler = (_request, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      const { http, uid, status } = await review({ path: "/mutate/pods?timeout=1s" });
      assert.deepEqual([http, uid, status?.code], [200, UID, 500]);
      assert.equal(
        status?.message,
        `berth did not decide within 0.9 s; try again, the log of its webhook has it under uid ${UID}`,
      );
    });

    it("leaves the handler only the time that the body has left over", async () => {
      handler = () => new Promise(() => {});
      async function* parts() {
        yield " ";
        await real.sleep(120);
        yield JSON.stringify(podReview());
      }
      const { status } = await review({ path: "/mutate/pods?timeout=5s", body: parts() });
      const seconds = /^berth did not decide within (\d\.\d) s;/.exec(status?.message ?? "")?.[1];
      assert.ok(Number(seconds) < 4.5, status?.message);
    });

    it("tells the handler when the API server hangs up", async () => {
      const client = new AbortController();
      const reason = new Promise<unknown>((resolve) => {
        handler = (one, signal) =>
          new Promise((done) => {
            signal.addEventListener("abort", () => {
              resolve(signal.reason);
              done(allowed(one.uid));
            });
            client.abort();
          });
      });
      await assert.rejects(request({ signal: client.signal }), { name: "AbortError" });
      assert.deepEqual(await reason, new BerthError("TIMED_OUT", "the client hung up"));
    });

    it("does not tell it so when the answer is out", async () => {
      const signals: AbortSignal[] = [];
      handler = async (one, signal) => {
        signals.push(signal);
        return allowed(one.uid);
      };
      await review();
      await review();
      assert.deepEqual(
        signals.map(({ aborted }) => aborted),
        [false, false],
      );
    });
  });

  describe("bodies", () => {
    for (const bytes of [8_000_000, BODY_LIMIT]) {
      it(`takes ${bytes} bytes`, async () => {
        const body = sized(bytes);
        assert.equal(Buffer.byteLength(body), bytes);
        assert.deepEqual(await review({ body }), {
          http: 200,
          apiVersion: "admission.k8s.io/v1",
          uid: UID,
          allowed: true,
        });
      });
    }

    for (const bytes of [BODY_LIMIT + 1, 9_000_000]) {
      it(`refuses ${bytes} bytes with 413 and the uid from their beginning`, async () => {
        assert.deepEqual(await unread({ body: sized(bytes) }), {
          http: 413,
          uid: UID,
          code: 413,
          message: `the body is larger than ${BODY_LIMIT} bytes`,
        });
      });
    }

    it("refuses 9 MB in chunks, without a length, and without a uid at their beginning", async () => {
      async function* parts() {
        for (let i = 0; i < 9; i++) yield Buffer.alloc(1_000_000, " ");
      }
      assert.deepEqual(await unread({ body: parts() }), {
        http: 413,
        uid: "",
        code: 413,
        message: `the body is larger than ${BODY_LIMIT} bytes`,
      });
    });

    it("takes a body that comes in small pieces", async () => {
      const text = JSON.stringify(podReview());
      async function* parts() {
        for (let at = 0; at < text.length; at += 100) {
          yield text.slice(at, at + 100);
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
      assert.equal((await review({ body: parts() })).allowed, true);
    });

    it("does not wait for the rest of a body beyond the API server's timeout", async () => {
      const { promise: never, resolve } = Promise.withResolvers<string>();
      async function* parts() {
        yield JSON.stringify(podReview()).slice(0, 200);
        yield await never;
      }
      const agent = new Agent({ keepAlive: true });
      const reply = await request({ path: "/mutate/pods?timeout=1s", body: parts(), agent });
      resolve("");
      agent.destroy();
      const { response } = JSON.parse(reply.text) as { response: AdmissionResponse };
      const message = "the body did not come within 0.9 s";
      assert.deepEqual([reply.status, reply.headers.connection], [408, "close"]);
      assert.deepEqual([response.uid, response.status?.code, response.status?.message], [UID, 408, message]);
      assert.deepEqual(asked, []);
    });

    it("goes on after a client that hangs up in the middle of a body", async () => {
      const client = new AbortController();
      async function* parts() {
        yield "{";
        client.abort();
        yield "}";
      }
      await assert.rejects(request({ body: parts(), signal: client.signal }), { name: "AbortError" });
      assert.equal((await review()).allowed, true);
    });

    for (const { name, headers } of [
      { name: "another type", headers: { "Content-Type": "text/plain" } },
      { name: "YAML", headers: { "Content-Type": "application/yaml" } },
      { name: "a type that begins alike", headers: { "Content-Type": "application/json-patch+json" } },
      { name: "another charset", headers: { "Content-Type": "application/json; charset=utf-16" } },
      { name: "compression", headers: { "Content-Encoding": "gzip" } },
    ]) {
      it(`refuses ${name} with 415, and with the uid if the body shows one`, async () => {
        const message = "the body must be application/json in UTF-8 and not compressed";
        assert.deepEqual(await unread({ headers }), { http: 415, uid: UID, code: 415, message });
        assert.deepEqual(await unread({ headers, body: "a: b" }), { http: 415, uid: "", code: 415, message });
        assert.deepEqual(await unread({ headers, body: "" }), { http: 415, uid: "", code: 415, message });
      });
    }

    const notReview = "the body is no admission.k8s.io/v1 AdmissionReview: ";
    const deep = `${"[".repeat(5000)}${"]".repeat(5000)}`;
    for (const { name, body, http = 400, uid = "", message } of [
      { name: "nothing", body: "", message: "the body cannot be read: it is not JSON" },
      { name: "garbage", body: "\u0000}{", message: "the body cannot be read: it is not JSON" },
      {
        name: "a review that breaks off",
        body: JSON.stringify(podReview()).slice(0, -1),
        uid: UID,
        message: "the body cannot be read: it is not JSON",
      },
      { name: "null", body: "null", message: `${notReview}apiVersion is another` },
      { name: "a list", body: JSON.stringify([podReview()]), message: `${notReview}apiVersion is another` },
      { name: "a number", body: "42", message: `${notReview}apiVersion is another` },
      {
        name: "another kind",
        body: JSON.stringify({ ...podReview(), kind: "ConversionReview" }),
        http: 200,
        uid: UID,
        message: `${notReview}kind is another`,
      },
      {
        name: "no uid",
        body: JSON.stringify(podReview({ uid: undefined })),
        message: `${notReview}request.uid is missing, empty or too long`,
      },
      { name: "deep nesting", body: deep, message: "the body cannot be read: it is nested deeper than 1000" },
      {
        name: "deep nesting in a review",
        body: JSON.stringify(podReview({ object: "DEEP" })).replace('"DEEP"', deep),
        uid: UID,
        message: "the body cannot be read: it is nested deeper than 1000",
      },
      {
        name: "a key __proto__ in a review",
        body: JSON.stringify(podReview({ object: "X" })).replace('"X"', '{"__proto__":{"polluted":true}}'),
        uid: UID,
        message: "the body cannot be read: it has a key __proto__",
      },
    ]) {
      it(`refuses ${name}`, async () => {
        assert.deepEqual(await unread({ body }), { http, uid, code: 400, message });
        assert.equal("polluted" in {}, false);
      });
    }

    it("echoes the version of a review that it does not speak", async () => {
      const body = JSON.stringify({ ...podReview(), apiVersion: "admission.k8s.io/v1beta1" });
      const { http, apiVersion, uid, allowed: yes } = await review({ body });
      assert.deepEqual([http, apiVersion, uid, yes], [200, "admission.k8s.io/v1beta1", UID, false]);
    });

    it("counts what it could not read", async () => {
      const line =
        'berth_admission_reviews_total{route="/validate/claims",operation="",outcome="unreadable",code="415"} 1';
      await review({ path: "/validate/claims", headers: { "Content-Type": "text/plain" } });
      assert.ok((await metrics.expose()).body.split("\n").includes(line));
    });

    it("gives a review with the uid for any JSON", async () => {
      const piece = fc.oneof(
        fc.jsonValue({ maxDepth: 4 }),
        fc.constantFrom(...Object.values(podReview().request)),
      );
      const body = fc.oneof(
        fc.jsonValue(),
        fc.dictionary(fc.constantFrom("apiVersion", "kind", "request", "__proto__", "constructor"), piece),
        fc.dictionary(fc.constantFrom(...Object.keys(podReview().request)), piece).map(podReview),
      );
      await fc.assert(
        fc.asyncProperty(body, async (value) => {
          const text = JSON.stringify(value);
          const { http, uid, allowed: yes } = await review({ body: text });
          const sent: unknown = JSON.parse(text)?.request?.uid;
          const expected = typeof sent === "string" && sent.length <= 128 ? sent : "";
          // a key __proto__ is refused before decoding: the uid comes from the beginning then, or not at all
          if (!text.includes("__proto__")) assert.equal(uid, expected);
          assert.equal(typeof yes, "boolean");
          assert.ok(http === 200 || http === 400);
        }),
        { numRuns: 60 },
      );
    });
  });

  describe("other routes", () => {
    it("is healthy while it answers", async () => {
      const reply = await request({ method: "GET", path: "/healthz", body: "" });
      assert.deepEqual([reply.status, reply.text], [200, "ok\n"]);
    });

    it("is ready when its owner says so, and says why not", async () => {
      const get = () => request({ method: "GET", path: "/readyz", body: "" });
      assert.deepEqual([(await get()).status, (await get()).text], [200, "ok\n"]);
      ready = { ready: false, reason: "claims are not listed yet" };
      assert.deepEqual([(await get()).status, (await get()).text], [503, "claims are not listed yet\n"]);
    });

    it("exposes metrics as Prometheus reads them", async () => {
      await review();
      const { status, headers, text } = await request({ method: "GET", path: "/metrics", body: "" });
      assert.equal(status, 200);
      assert.equal(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
      assert.match(
        text,
        /^berth_admission_reviews_total\{route="\/mutate\/pods",operation="CREATE",outcome="allowed",code=""\} \d+$/m,
      );
      assert.match(text, /^berth_admission_duration_seconds_count\{route="\/mutate\/pods"\} \d+$/m);
    });

    it("says nothing about the inside when a scrape fails", async () => {
      scrape = () => Promise.reject(new Error("secret"));
      const { status, text } = await request({ method: "GET", path: "/metrics", body: "" });
      assert.deepEqual([status, text], [500, '{"error":"internal error"}']);
    });

    for (const { method, path, status, error } of [
      { method: "GET", path: "/", status: 404, error: "not found" },
      { method: "POST", path: "/mutate", status: 404, error: "not found" },
      { method: "POST", path: "/mutate/pods/", status: 404, error: "not found" },
      { method: "POST", path: "/Mutate/Pods", status: 404, error: "not found" },
      { method: "POST", path: "/healthz", status: 404, error: "not found" },
      { method: "POST", path: "/%E0%A4%A", status: 404, error: "not found" },
      { method: "GET", path: "/mutate/pods", status: 405, error: "method not allowed" },
      { method: "DELETE", path: "/validate/pools", status: 405, error: "method not allowed" },
    ]) {
      it(`answers ${method} ${path} with ${status}, in JSON`, async () => {
        const reply = await request({ method, path });
        assert.deepEqual([reply.status, JSON.parse(reply.text)], [status, { error }]);
        assert.equal(reply.headers["content-type"], "application/json; charset=utf-8");
        assert.deepEqual(asked, []);
      });
    }

    it("does not tell what it is made of", async () => {
      for (const path of ["/mutate/pods", "/healthz", "/nowhere"]) {
        const { headers } = await request({ path });
        assert.equal(headers["x-powered-by"], undefined);
        assert.equal(headers["server"], undefined);
      }
    });
  });
});
