// SPDX-License-Identifier: Apache-2.0
import "../certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { afterEach, before, describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { connect } from "node:tls";
import { type LogFields, type Logger, noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { TlsBench } from "../testing/tls-bench.ts";
import type { TlsServer } from "./tls-server.ts";

const REQUEST = "GET / HTTP/1.1\r\nHost: berth\r\n\r\n";

let bench: TlsBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    bench = await TlsBench.open();
  });
  afterEach(() => bench.clear());
}

/** So many turns of the event loop that a server which closes has read what came before. */
async function turns(): Promise<void> {
  for (let n = 0; n < 5; n++) await turn();
}

describe("TLS server: close", () => {
  setUp();

  /** An app whose answers wait until they are let go. */
  function held() {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    const app: RequestListener = (_request, response) => {
      enter();
      void gate.then(() => response.end("done"));
    };
    return { app, entered, release };
  }

  /** A client whose connection stands after one answer, and all answers that it has. */
  async function idleClient({ address: { port } }: TlsServer) {
    const client = connect({ host: "127.0.0.1", port, ca: bench.authority.cert });
    await once(client, "secureConnect");
    const chunks: Buffer[] = [];
    client.on("data", (chunk: Buffer) => chunks.push(chunk));
    client.write(REQUEST);
    await once(client, "data");
    const answers = () => Buffer.concat(chunks).toString().split("HTTP/1.1 200 OK").slice(1);
    return { client, answers };
  }

  it("answers what is under way, and takes nothing new", async () => {
    const { app, entered, release } = held();
    const server = await bench.serve({ app });
    const asking = bench.get(server, { agent: bench.keepAlive() });
    await entered;
    let closed = false;
    const closing = server.close().then(() => {
      closed = true;
    });
    await turns();
    await assert.rejects(bench.get(server), { code: "ECONNREFUSED" });
    assert.equal(closed, false);
    release();
    const reply = await asking;
    assert.deepEqual([reply.status, reply.text, reply.headers.connection], [200, "done", "close"]);
    await closing;
  });

  it("still serves a connection that was open and not used yet, once", async () => {
    const server = await bench.serve();
    const client = connect({ host: "127.0.0.1", port: server.address.port, ca: bench.authority.cert });
    await once(client, "secureConnect");
    // the handshake ends later for the server than for the client
    await bench.get(server);
    const closing = server.close();
    client.write(REQUEST);
    const chunks: Buffer[] = [];
    client.on("data", (chunk: Buffer) => chunks.push(chunk));
    await once(client, "close");
    assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 200 OK\r\nConnection: close\r\n/);
    await closing;
  });

  it("answers what came on an idle connection before, and was not read yet", async () => {
    const warned: string[] = [];
    const log: Logger = { ...noopLogger, warn: (message) => warned.push(message) };
    const server = await bench.serve({ log });
    const { client, answers } = await idleClient(server);
    // both in one turn: the server has read nothing when it closes
    client.write(REQUEST);
    const closing = server.close();
    await Promise.all([closing, once(client, "close")]);
    assert.deepEqual(
      answers().map((answer) => /Connection: (\S+)/.exec(answer)?.[1]),
      ["keep-alive", "close"],
    );
    assert.deepEqual(warned, []);
  });

  it("answers that, too, where another answer goes out meanwhile", async () => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const server = await bench.serve({
      app: (request, response) => {
        if (request.url === "/last") response.once("finish", () => end(closeNow()));
        response.end("ok");
      },
    });
    const { client, answers } = await idleClient(server);
    /** That answer is written, and its end is told in this turn, before the request is read. */
    const closeNow = async () => {
      client.write(REQUEST);
      await server.close();
    };
    await Promise.all([bench.get(server, { path: "/last" }), ended, once(client, "close")]);
    assert.equal(answers().length, 2);
  });

  it("does not wait for idle connections", async () => {
    const server = await bench.serve({ clock: new ManualClock() });
    const agent = bench.keepAlive();
    await bench.get(server, { agent });
    await server.close();
    await assert.rejects(bench.get(server), { code: "ECONNREFUSED" });
  });

  it("closes a connection whose answer had begun before", async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const server = await bench.serve({
      clock: new ManualClock(),
      app: (_request, response) => {
        response.write("be");
        begin();
        void gate.then(() => response.end("gun"));
      },
    });
    const asking = bench.get(server, { agent: bench.keepAlive() });
    await begun;
    const closing = server.close();
    release();
    assert.equal((await asking).text, "begun");
    await closing;
  });

  it("cuts off what is still under way when the time is over, handshakes too", async () => {
    const manual = new ManualClock();
    const warned: (LogFields | undefined)[] = [];
    const log: Logger = { ...noopLogger, warn: (_message, fields) => warned.push(fields) };
    const { app, entered, release } = held();
    const server = await bench.serve({ app, clock: manual, log, drainMs: 2000 });
    const asking = bench.get(server);
    const mute = connectTcp(server.address.port, "127.0.0.1");
    mute.on("error", () => {});
    await Promise.all([entered, once(mute, "connect")]);
    let closed = false;
    const closing = server.close().then(() => {
      closed = true;
    });
    await turns();
    manual.advance(1999);
    await bench.clock.sleep(10);
    assert.equal(closed, false);
    const cut = assert.rejects(asking, { code: "ECONNRESET" });
    const hungUp = once(mute, "close");
    manual.advance(1);
    await Promise.all([closing, cut, hungUp]);
    assert.deepEqual(warned, [{ connections: 2, answers: 1 }]);
    release();
  });

  it("cuts off each of those that came from one port to several of its addresses", async () => {
    const manual = new ManualClock();
    const server = await bench.serve({ clock: manual, host: "0.0.0.0", drainMs: 2000 });
    const { port } = server.address;
    const open = async (host: string, from?: number) => {
      const at = from === undefined ? {} : { localPort: from };
      const socket = connectTcp({ host, port, localAddress: "127.0.0.1", ...at });
      socket.on("error", () => {});
      await once(socket, "connect");
      return socket;
    };
    const one = await open("127.0.0.1");
    const secure = connect({ socket: one, rejectUnauthorized: false });
    secure.on("error", () => {});
    await once(secure, "secureConnect");
    const other = await open("127.0.0.2", one.localPort);
    await bench.get(server);
    const cut = [one, other].map((socket) => once(socket, "close"));
    const closing = server.close();
    await turns();
    manual.advance(2000);
    await Promise.all([closing, ...cut]);
  });

  it("is idempotent, and leaves no timer behind", async () => {
    const manual = new ManualClock();
    const server = await bench.serve({ clock: manual });
    const closing = server.close();
    assert.equal(server.close(), closing);
    await closing;
    await server.close();
    assert.equal(manual.sleeping, 0);
  });

  it("frees the port", async () => {
    const server = await bench.serve();
    await server.close();
    const next = createServer();
    next.listen(server.address.port, "127.0.0.1");
    await once(next, "listening");
    assert.equal((next.address() as AddressInfo).port, server.address.port);
    next.close();
  });
});
