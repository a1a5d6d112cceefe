// SPDX-License-Identifier: Apache-2.0
import "../certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { afterEach, before, describe, it } from "node:test";
import { connect, type TLSSocket } from "node:tls";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventually } from "../../test/support/eventually.ts";
import { TlsBench } from "../testing/tls-bench.ts";
import { HEADERS_MS, TAKE_MS } from "./slow-clients.ts";
import type { TlsServerOptions } from "./tls-server.ts";

let bench: TlsBench;
let clock: ManualClock;
const clients: TLSSocket[] = [];

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    bench = await TlsBench.open();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await bench.clear();
  });
}

/** A client of a server whose time stands still. */
async function open(over: Partial<TlsServerOptions> = {}): Promise<TLSSocket> {
  clock = new ManualClock();
  const server = await bench.serve({ clock, ...over });
  const client = connect({ host: "127.0.0.1", port: server.address.port, ca: bench.authority.cert });
  clients.push(client);
  client.on("error", () => {});
  client.resume();
  await once(client, "secureConnect");
  return client;
}

/** Lets so much time pass, in steps that the server sees. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) await passSecond(() => false);
}

/** A server whose connections have ended looks no more. */
async function passSecond(isOver: () => boolean): Promise<void> {
  await eventually("the server looks", () => (clock.sleeping > 0 || isOver() ? true : undefined));
  clock.advance(1_000);
  await new Promise((turn) => setImmediate(turn));
}

/** Time passes until all connections have ended; the runner bounds it. */
async function passing(): Promise<void> {
  const opened = [...clients];
  const isOver = () => opened.every(({ destroyed }) => destroyed);
  while (!isOver()) await passSecond(isOver);
}

async function answerOf(client: TLSSocket): Promise<string> {
  const [chunk]: Buffer[] = await once(client, "data");
  return String(chunk);
}

/** With an error or without one: who writes when it ends has one. */
function endOf(client: TLSSocket): Promise<void> {
  return new Promise((resolve) => client.once("close", () => resolve()));
}

const LINE = "GET / HTTP/1.1\r\nHost: berth\r\n";

describe("headers that do not end", () => {
  setUp();

  it("end the connection, however many of them come", async () => {
    const client = await open();
    const closed = endOf(client);
    client.write(LINE);
    const dripping = setInterval(() => client.write("X-Slow: 1\r\n"), 5);
    try {
      await Promise.race([closed, passing()]);
    } finally {
      clearInterval(dripping);
    }
  });

  it("do so between two requests as well", async () => {
    const client = await open();
    client.write(`${LINE}\r\n`);
    assert.match(await answerOf(client), /^HTTP\/1\.1 200 /);
    const closed = endOf(client);
    client.write(LINE);
    await Promise.race([closed, passing()]);
  });

  it("a connection that says nothing, or nothing more, is left alone", async () => {
    const client = await open();
    await pass(3 * HEADERS_MS);
    client.write(`${LINE}\r\n`);
    assert.match(await answerOf(client), /^HTTP\/1\.1 200 /);
    await pass(3 * HEADERS_MS);
    client.write(`${LINE}\r\n`);
    assert.match(await answerOf(client), /^HTTP\/1\.1 200 /);
  });
});

describe("an answer that is not taken", () => {
  setUp();

  /** More than a kernel keeps for whoever does not read. */
  const ANSWER = Buffer.alloc(16 * 1024 * 1024, "x");

  it("ends the connection, also where a little of it is taken now and then", async () => {
    for (const isSipping of [false, true]) {
      const { promise: over, resolve } = Promise.withResolvers<boolean>();
      const client = await open({
        app(_request, response) {
          response.once("close", () => resolve(response.writableFinished));
          response.end(ANSWER);
        },
      });
      client.pause();
      client.write(`${LINE}\r\n`);
      const sipping = setInterval(() => isSipping && client.read(1), 5);
      try {
        assert.equal(await Promise.race([over, passing()]), false);
      } finally {
        clearInterval(sipping);
      }
    }
  });

  it("is waited for while it is being made, and while it may still be taken", async () => {
    const { promise: asked, resolve: ask } = Promise.withResolvers<() => void>();
    const client = await open({ app: (_request, response) => ask(() => response.end("late")) });
    client.write(`${LINE}\r\n`);
    const answer = await asked;
    await pass(3 * TAKE_MS);
    answer();
    assert.match(await answerOf(client), /late$/);
    await pass(3 * TAKE_MS);
    assert.equal(client.destroyed, false);
  });
});
