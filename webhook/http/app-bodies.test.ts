// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { IncomingMessage } from "node:http";
import { Agent } from "node:https";
import type { Socket } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { runsOf } from "../../test/support/runs.ts";
import type { AdmissionResponse } from "../review/admission-review.ts";
import { BODY_LIMIT } from "../review/request-body.ts";
import { podReview, UID } from "../testing/api-server.ts";
import { AppBench } from "../testing/app-bench.ts";

/** The most that is decrypted in one piece. */
const TLS_RECORD = 16 * 1024;

let bench: AppBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    bench = await AppBench.open();
  });
  after(() => bench?.close());
  beforeEach(() => bench.reset());
}

const HEAD = "POST /mutate/pods HTTP/1.1\r\nHost: berth\r\nX-Pieces: 1\r\nContent-Type: application/json\r\n";

/** Each in a TLS record of its own. */
async function inPieces(socket: Socket, count: number, bytes: number): Promise<void> {
  const piece = " ".repeat(bytes);
  for (let n = 0; n < count; n++) await new Promise((resolve) => socket.write(piece, resolve));
}

/** A review of so many bytes. */
function sized(bytes: number): string {
  const [head, tail] = JSON.stringify(podReview({ object: { pad: "PAD" } })).split("PAD");
  return `${head}${"x".repeat(bytes - `${head}${tail}`.length)}${tail}`;
}

describe("app: bodies", () => {
  setUp();

  for (const bytes of [8_000_000, BODY_LIMIT]) {
    it(`takes ${bytes} bytes`, async () => {
      bench.clockFactor = 20; // however slow this machine is
      const body = sized(bytes);
      assert.equal(Buffer.byteLength(body), bytes);
      assert.deepEqual(await bench.review({ body }), {
        http: 200,
        apiVersion: "admission.k8s.io/v1",
        uid: UID,
        allowed: true,
      });
    });
  }

  for (const bytes of [BODY_LIMIT + 1, 9_000_000]) {
    it(`refuses ${bytes} bytes with 413 and the uid from their beginning`, async () => {
      bench.clockFactor = 20;
      assert.deepEqual(await bench.unread({ body: sized(bytes) }), {
        http: 413,
        uid: UID,
        code: 413,
        message: `the body is larger than ${BODY_LIMIT} bytes`,
      });
    });
  }

  it("refuses 9 MB in pieces, without a uid at their beginning", async () => {
    bench.clockFactor = 20;
    async function* parts() {
      for (let i = 0; i < 9; i++) yield Buffer.alloc(1_000_000, " ");
    }
    assert.deepEqual(await bench.unread({ headers: { "Content-Length": 9_000_000 }, body: parts() }), {
      http: 413,
      uid: "",
      code: 413,
      message: `the body is larger than ${BODY_LIMIT} bytes`,
    });
  });

  for (const expected of ["", "Expect: the-unexpected\r\n"]) {
    it(`refuses a body in chunks before any of them is there, and closes the connection: ${expected}`, async () => {
      const socket = bench.connect();
      socket.write(`${HEAD}${expected}Transfer-Encoding: chunked\r\n\r\n`);
      let answer = "";
      for await (const some of socket) answer += String(some);
      assert.match(answer, /^HTTP\/1\.1 411 .*\r\nConnection: close\r\n.*must come with a Content-Length/s);
      assert.equal(bench.asked.length, 0);
    });
  }

  for (const [bytes, said] of [
    [50, /^HTTP\/1\.1 400 .*\r\nConnection: close\r\n.*in pieces of so few bytes/s],
    [1, /^$/], // a record of TLS each, too many of which nobody reads
  ] as const) {
    it(`closes a connection whose body comes in pieces of ${bytes}`, async () => {
      bench.clockFactor = 20; // however slow this machine is
      const socket = bench.connect();
      await once(socket, "secureConnect");
      socket.write(`${HEAD}Content-Length: 100000\r\n\r\n`);
      const sending = inPieces(socket, 257, bytes);
      let answer = "";
      socket.on("data", (some) => {
        answer += String(some);
      });
      socket.on("error", () => {}); // what was under way when it was closed; `once` would throw it
      await new Promise((resolve) => socket.once("close", resolve));
      await sending;
      assert.match(answer, said);
      assert.equal(bench.asked.length, 0);
    });
  }

  it("parses of a body in chunks no more than what was decrypted with its headers", async (t) => {
    let pieces = 0;
    const { push } = IncomingMessage.prototype;
    t.mock.method(IncomingMessage.prototype, "push", function (this: IncomingMessage, chunk: unknown) {
      if (this.headers["x-pieces"] !== undefined) pieces++;
      return push.call(this, chunk);
    });
    const socket = bench.connect();
    socket.on("error", () => {});
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await once(socket, "secureConnect");
    socket.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(10_000)}`);
    socket.resume();
    await closed;
    assert.ok(pieces <= TLS_RECORD / 6, `${pieces} were parsed`);
  });

  it("takes a body that comes in small pieces", async () => {
    bench.clockFactor = 20; // however slow this machine is
    const text = JSON.stringify(podReview());
    async function* parts() {
      for (let at = 0; at < text.length; at += 100) {
        yield text.slice(at, at + 100);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const headers = { "Content-Length": text.length };
    assert.equal((await bench.review({ headers, body: parts() })).allowed, true);
  });

  it("does not wait for the rest of a body beyond the API server's timeout", async () => {
    const { promise: never, resolve } = Promise.withResolvers<string>();
    async function* parts() {
      yield JSON.stringify(podReview()).slice(0, 200);
      yield await never;
    }
    const agent = new Agent({ keepAlive: true });
    const headers = { "Content-Length": 1_000 };
    const reply = await bench.request({ path: "/mutate/pods?timeout=1s", headers, body: parts(), agent });
    resolve("");
    agent.destroy();
    const { response } = JSON.parse(reply.text) as { response: AdmissionResponse };
    const message = "the body did not come within 0.9 s";
    assert.deepEqual([reply.status, reply.headers.connection], [408, "close"]);
    assert.deepEqual([response.uid, response.status?.code, response.status?.message], [UID, 408, message]);
    assert.deepEqual(bench.asked, []);
  });

  it("goes on after a client that hangs up in the middle of a body", async () => {
    const client = new AbortController();
    async function* parts() {
      yield "{";
      client.abort();
      yield "}";
    }
    const headers = { "Content-Length": 2 };
    const asking = bench.request({ headers, body: parts(), signal: client.signal });
    await assert.rejects(asking, { name: "AbortError" });
    assert.equal((await bench.review()).allowed, true);
  });

  it("asks nobody about a review whose client is gone before it was decoded", async (t) => {
    bench.clockFactor = 20; // however slow this machine is
    const body = sized(BODY_LIMIT); // decoded in 64 steps, between which the connection's end is heard of
    const socket = bench.connect();
    socket.on("error", () => {});
    const { push } = IncomingMessage.prototype;
    t.mock.method(IncomingMessage.prototype, "push", function (this: IncomingMessage, chunk: unknown) {
      if (chunk === null && this.headers["x-pieces"] !== undefined) socket.destroy();
      return push.call(this, chunk);
    });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    await once(socket, "secureConnect");
    socket.write(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`);
    await closed;
    // decoded after it
    assert.equal((await bench.review({ body: sized(1024 * 1024) })).allowed, true);
    assert.equal(bench.asked.length, 1);
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
      assert.deepEqual(await bench.unread({ headers }), { http: 415, uid: UID, code: 415, message });
      assert.deepEqual(await bench.unread({ headers, body: "a: b" }), {
        http: 415,
        uid: "",
        code: 415,
        message,
      });
      assert.deepEqual(await bench.unread({ headers, body: "" }), { http: 415, uid: "", code: 415, message });
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
      assert.deepEqual(await bench.unread({ body }), { http, uid, code: 400, message });
      assert.equal("polluted" in {}, false);
    });
  }

  it("echoes the version of a review that it does not speak", async () => {
    const body = JSON.stringify({ ...podReview(), apiVersion: "admission.k8s.io/v1beta1" });
    const { http, apiVersion, uid, allowed: yes } = await bench.review({ body });
    assert.deepEqual([http, apiVersion, uid, yes], [200, "admission.k8s.io/v1beta1", UID, false]);
  });

  it("counts what it could not read", async () => {
    const line =
      'berth_admission_reviews_total{route="/validate/claims",operation="",outcome="unreadable",code="415"} 1';
    await bench.review({ path: "/validate/claims", headers: { "Content-Type": "text/plain" } });
    assert.ok((await bench.metrics.expose()).body.split("\n").includes(line));
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
        const { http, uid, allowed: yes } = await bench.review({ body: text });
        const sent: unknown = JSON.parse(text)?.request?.uid;
        const expected = typeof sent === "string" && sent.length <= 128 ? sent : "";
        // a key __proto__ is refused before decoding: the uid comes from the beginning then, or not at all
        if (!text.includes("__proto__")) assert.equal(uid, expected);
        assert.equal(typeof yes, "boolean");
        assert.ok(http === 200 || http === 400);
      }),
      { numRuns: runsOf(60, 6) },
    );
  });
});
