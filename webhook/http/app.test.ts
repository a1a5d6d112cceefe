// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { text } from "node:stream/consumers";
import { after, before, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { allowed, denied, patched, ROUTES } from "../review/admission-review.ts";

import { podReview, UID } from "../testing/api-server.ts";
import { AppBench } from "../testing/app-bench.ts";

const INTERNAL = `internal error of berth; the log of its webhook has it under uid ${UID}`;

let bench: AppBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    bench = await AppBench.open();
  });
  after(() => bench?.close());
  beforeEach(() => bench.reset());
}

describe("app: admission", () => {
  setUp();

  for (const route of ROUTES) {
    it(`asks the handler of ${route} and sends its answer`, async () => {
      bench.handler = async ({ uid }) => patched(uid, [{ op: "add", path: "/x", value: 1 }], ["beware"]);
      assert.deepEqual(await bench.review({ path: route }), {
        http: 200,
        apiVersion: "admission.k8s.io/v1",
        uid: UID,
        allowed: true,
        patchType: "JSONPatch",
        patch: Buffer.from('[{"op":"add","path":"/x","value":1}]').toString("base64"),
        warnings: ["beware"],
      });
      assert.deepEqual(
        bench.asked.map(({ route: at, request: { name, operation } }) => [at, name, operation]),
        [[route, "mysql-0", "CREATE"]],
      );
    });
  }

  it("refuses with HTTP 200, because the API server reads no other answer", async () => {
    bench.handler = async ({ uid }) =>
      denied(uid, { code: "POOL_UNKNOWN", message: 'there is no pool "db"' });
    const { http, uid, allowed: yes, status } = await bench.review();
    assert.deepEqual(
      [http, uid, yes, status?.code, status?.message],
      [200, UID, false, 403, 'there is no pool "db"'],
    );
  });

  it("takes a query, as the API server sends one, and charset utf-8", async () => {
    const headers = { "Content-Type": "application/json; charset=UTF-8" };
    assert.equal((await bench.review({ path: "/mutate/pods?timeout=10s", headers })).allowed, true);
  });

  it("answers with the uid when a handler throws, and goes on with the next", async () => {
    bench.handler = () => {
      throw new Error("boom");
    };
    const { http, uid, status } = await bench.review();
    assert.deepEqual([http, uid, status?.message], [200, UID, INTERNAL]);
    bench.handler = async (one) => allowed(one.uid);
    assert.equal((await bench.review()).allowed, true);
  });

  it("answers before the API server gives up when a handler hangs, by its own timeout", async () => {
    bench.isHandlerLate = true;
    bench.monotonic = 0;
    bench.handler = (_request, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const { http, uid, status } = await bench.review({ path: "/mutate/pods?timeout=1s" });
    assert.deepEqual([http, uid, status?.code], [200, UID, 500]);
    assert.equal(
      status?.message,
      `berth did not decide within 0.9 s; try again, the log of its webhook has it under uid ${UID}`,
    );
  });

  it("takes no longer than its own time, whatever the caller's timeout", async () => {
    const slow = (path: string) =>
      bench.review({ path }).then(({ status }) => /within (\d+(\.\d)?) s/.exec(status?.message ?? "")?.[1]);
    bench.isHandlerLate = true;
    bench.monotonic = 0;
    bench.handler = () => new Promise(() => {});
    assert.equal(await slow("/mutate/pods?timeout=99s"), "9");
    assert.equal(await slow("/mutate/pods?timeout=0s"), "9");
    assert.equal(await slow("/mutate/pods"), "9");
    assert.equal(await slow("/mutate/pods?timeout=2s"), "1.8");
  });

  it("leaves the handler only the time that the body has left over", async () => {
    bench.isHandlerLate = true;
    bench.monotonic = 0;
    bench.handler = () => new Promise(() => {});
    const isRead = new Promise((resolve) => {
      bench.onWait = resolve;
    });
    async function* parts() {
      yield " ";
      await isRead;
      bench.monotonic = 1_300;
      yield JSON.stringify(podReview());
    }
    const headers = { "Content-Length": 1 + Buffer.byteLength(JSON.stringify(podReview())) };
    const { status } = await bench.review({ path: "/mutate/pods?timeout=5s", headers, body: parts() });
    assert.match(status?.message ?? "", /^berth did not decide within 3\.2 s;/);
  });

  it("tells the handler when the API server hangs up", async () => {
    const client = new AbortController();
    const reason = new Promise<unknown>((resolve) => {
      bench.handler = (one, signal) =>
        new Promise((done) => {
          signal.addEventListener("abort", () => {
            resolve(signal.reason);
            done(allowed(one.uid));
          });
          client.abort();
        });
    });
    await assert.rejects(bench.request({ signal: client.signal }), { name: "AbortError" });
    assert.deepEqual(await reason, new BerthError("TIMED_OUT", "the client hung up"));
  });

  it("does not tell it so when the answer is out", async () => {
    const signals: AbortSignal[] = [];
    bench.handler = async (one, signal) => {
      signals.push(signal);
      return allowed(one.uid);
    };
    await bench.review();
    await bench.review();
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false, false],
    );
  });
});

describe("app: other routes", () => {
  setUp();

  it("is healthy while it answers", async () => {
    const reply = await bench.request({ method: "GET", path: "/healthz", body: "" });
    assert.deepEqual([reply.status, reply.text], [200, "ok\n"]);
  });

  it("is ready when its owner says so, and says why not", async () => {
    const get = () => bench.request({ method: "GET", path: "/readyz", body: "" });
    assert.deepEqual([(await get()).status, (await get()).text], [200, "ok\n"]);
    bench.ready = { ready: false, reason: "claims are not listed yet" };
    assert.deepEqual([(await get()).status, (await get()).text], [503, "claims are not listed yet\n"]);
  });

  it("exposes metrics as Prometheus reads them", async () => {
    await bench.review();
    const { status, headers, text } = await bench.request({ method: "GET", path: "/metrics", body: "" });
    assert.equal(status, 200);
    assert.equal(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert.match(
      text,
      /^berth_admission_reviews_total\{route="\/mutate\/pods",operation="CREATE",outcome="allowed",code=""\} \d+$/m,
    );
    assert.match(text, /^berth_admission_duration_seconds_count\{route="\/mutate\/pods"\} \d+$/m);
  });

  it("says nothing about the inside when a scrape fails", async () => {
    bench.scrape = () => Promise.reject(new Error("secret"));
    const { status, text } = await bench.request({ method: "GET", path: "/metrics", body: "" });
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
      const reply = await bench.request({ method, path });
      assert.deepEqual([reply.status, JSON.parse(reply.text)], [status, { error }]);
      assert.equal(reply.headers["content-type"], "application/json; charset=utf-8");
      assert.deepEqual(bench.asked, []);
    });
  }

  for (const head of ["GET http://[::/x", "POST http://[::/mutate/pods"]) {
    it(`answers ${head}, which nobody can read, as all others: in JSON, with no more of a body than there is to any`, async () => {
      const socket = bench.connect();
      socket.write(`${head} HTTP/1.1\r\nHost: berth\r\nContent-Length: 100000\r\n\r\n${" ".repeat(100)}`);
      const answer = await text(socket);
      assert.match(answer, /^HTTP\/1\.1 400 .*\r\nConnection: close\r\n/s);
      assert.match(answer, /\r\nContent-Type: application\/json; charset=utf-8\r\n/);
      assert.match(answer, /\r\n\r\n{"error":"the path cannot be read"}$/);
      assert.deepEqual(bench.asked, []);
    });
  }

  it("answers a request that expects what nobody knows as one that expects nothing", async () => {
    const expecting = { Expect: "the-unexpected" };
    const headers = { ...expecting, "Content-Length": Buffer.byteLength(JSON.stringify(podReview())) };
    assert.equal((await bench.review({ headers })).allowed, true);
    const reply = await bench.request({ method: "GET", path: "/healthz", body: "", headers: expecting });
    assert.deepEqual([reply.status, reply.text, reply.headers.connection], [200, "ok\n", "close"]);
  });

  it("leaves a connection open after a review, and after nothing else: whoever asks again waits for his turn", async () => {
    const agent = new Agent({ keepAlive: true });
    const connectionAfter = async (method: string, path: string, body?: string) => {
      const { headers } = await bench.request({
        method,
        path,
        agent,
        ...(body === undefined ? {} : { body }),
      });
      return headers.connection;
    };
    try {
      assert.equal(await connectionAfter("POST", "/mutate/pods"), "keep-alive");
      assert.equal(await connectionAfter("POST", "/mutate/pods", "{"), "close");
      for (const path of ["/healthz", "/readyz", "/metrics", "/nowhere", "/mutate/pods"])
        assert.equal(await connectionAfter("GET", path, ""), "close", path);
      assert.equal(await connectionAfter("POST", "/nowhere"), "close");
    } finally {
      agent.destroy();
    }
  });

  it("does not tell what it is made of", async () => {
    for (const path of ["/mutate/pods", "/healthz", "/nowhere"]) {
      const { headers } = await bench.request({ path });
      assert.equal(headers["x-powered-by"], undefined);
      assert.equal(headers["server"], undefined);
    }
  });
});
