// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Agent } from "node:https";
import { after, before, beforeEach, describe, it } from "node:test";
import { allowed } from "../review/admission-review.ts";
import { Intake } from "../review/intake.ts";
import { podReview } from "../testing/api-server.ts";
import { AppBench } from "../testing/app-bench.ts";

const MIB = 1024 * 1024;
const text = JSON.stringify(podReview());

let bench: AppBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    const limits = { reviews: { inAll: 4, perPeer: 3 }, bytes: { inAll: 4 * MIB, perPeer: 2 * MIB } };
    bench = await AppBench.open(new Intake(limits));
  });
  after(() => bench?.close());
  beforeEach(() => bench.reset());
}

/** A body of which so much comes, and the rest when it is let go. */
function unfinished(bytes: number) {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const { promise: sent, resolve: send } = Promise.withResolvers<void>();
  async function* parts() {
    yield Buffer.alloc(bytes, " ");
    send();
    await gate;
    yield text;
  }
  return { parts, headers: { "Content-Length": bytes + Buffer.byteLength(text) }, sent, release };
}

async function until(fact: () => boolean): Promise<void> {
  while (!fact()) await new Promise((tick) => setTimeout(tick, 5));
}

describe("app: overload", () => {
  setUp();

  it("is answered at once: 429 to who has as many reviews as he may, and all is well afterwards", async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    bench.handler = async ({ uid }) => {
      await gate;
      return allowed(uid);
    };
    const asking = [1, 2, 3].map(() => bench.review());
    await until(() => bench.asked.length === 3);
    const { status, headers, text: words } = await bench.request();
    assert.deepEqual([status, headers["retry-after"], headers.connection], [429, "1", "close"]);
    assert.equal(words, "berth decides as many reviews of this address as it may have at a time; try again");
    release();
    for (const answer of await Promise.all(asking)) assert.equal(answer.allowed, true);
    assert.equal((await bench.review()).allowed, true);
    assert.deepEqual([bench.intake.reviews, bench.intake.bytes], [0, 0]);
  });

  it("is answered at once: 503 to who may have more, while all together have as many as they may", async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    bench.handler = async ({ uid }) => {
      await gate;
      return allowed(uid);
    };
    const elsewhere = new Agent({ localAddress: "127.0.0.2" });
    const asking = [bench.review(), bench.review(), bench.review(), bench.review({ agent: elsewhere })];
    await until(() => bench.asked.length === 4);
    const { status, headers, text: words } = await bench.request({ agent: elsewhere });
    assert.deepEqual([status, headers["retry-after"], headers.connection], [503, "1", "close"]);
    assert.equal(words, "berth decides as many reviews as it can at a time; try again");
    release();
    for (const answer of await Promise.all(asking)) assert.equal(answer.allowed, true);
    elsewhere.destroy();
    assert.deepEqual([bench.intake.reviews, bench.intake.bytes], [0, 0]);
  });

  it("is answered so to bodies that take too much, in the middle of them", async () => {
    bench.clockFactor = 10; // its time for a body is not over, however slow the machine is
    const slow = unfinished(MIB);
    const asking = bench.review({ headers: slow.headers, body: slow.parts() });
    await slow.sent;
    await until(() => bench.intake.bytes >= MIB);
    assert.equal((await bench.request({ body: " ".repeat(MIB + 1) + text })).status, 429);
    assert.equal((await bench.request()).status, 200);
    slow.release();
    assert.equal((await asking).allowed, true);
    assert.equal(bench.intake.bytes, 0);
  });

  it("leaves no place taken by clients that hang up, before and after their body is there", async () => {
    bench.clockFactor = 10;
    for (let i = 0; i < 10; i++) {
      const client = new AbortController();
      const slow = unfinished(1_000);
      const asking = bench.request({ headers: slow.headers, body: slow.parts(), signal: client.signal });
      await slow.sent;
      await until(() => bench.intake.bytes > 0);
      client.abort();
      await assert.rejects(asking, { name: "AbortError" });
      slow.release();
      await until(() => bench.intake.reviews === 0);
    }
    for (let i = 0; i < 10; i++) {
      const client = new AbortController();
      bench.handler = (_, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      const asking = bench.request({ signal: client.signal });
      await until(() => bench.asked.length === i + 1);
      client.abort();
      await assert.rejects(asking, { name: "AbortError" });
      await until(() => bench.intake.reviews === 0);
    }
    assert.equal(bench.intake.bytes, 0);
  });

  it("writes a bounded number of lines about what it could not read", async () => {
    for (let i = 0; i < 100; i++) await bench.request({ body: "nonsense" });
    // on a machine that is very slow one of them may be refused unread
    assert.ok(bench.lines.length > 0 && bench.lines.length <= 20, `${bench.lines.length} lines`);
  });

  it("closes a connection whose body nobody reads", async () => {
    for (const { method, path } of [
      { method: "POST", path: "/healthz" },
      { method: "GET", path: "/healthz" },
      { method: "PUT", path: "/mutate/pods" },
    ]) {
      const { headers } = await bench.request({ method, path, body: "nonsense" });
      assert.equal(headers.connection, "close", path);
    }
  });
});
