// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { answerEarly } from "./early-answer.ts";

const MIB = 1024 * 1024;
const HEAD = "POST / HTTP/1.1\r\nHost: berth\r\n";

describe("answerEarly", () => {
  let server: Server;
  let clock: ManualClock;
  let clients: Socket[] = [];
  /** Requests whose answers are out and whose connections are not closed yet. */
  let lingering = 0;
  let most: number | undefined;

  beforeEach(async () => {
    clock = new ManualClock();
    most = undefined;
    server = createServer((_request, response) => {
      lingering++;
      response.once("close", () => lingering--);
      response.statusCode = 429;
      answerEarly(response, "try again", clock, most);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    for (const client of clients) client.destroy();
    clients = [];
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  /** A client that reads nothing until it is told to. */
  async function ask(start: string): Promise<Socket> {
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    clients.push(client);
    client.pause();
    await once(client, "connect");
    client.write(start);
    await until(() => lingering > 0);
    return client;
  }

  async function until(fact: () => boolean): Promise<void> {
    while (!fact()) await new Promise((tick) => setTimeout(tick, 2));
  }

  /** Everything until the end; rejects when the connection is reset. */
  async function read(client: Socket): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of client) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  const write = (client: Socket, bytes: number) =>
    new Promise<void>((resolve) => client.write(Buffer.alloc(bytes, " "), () => resolve()));

  it("lets a client that writes all of its body first read the answer", async () => {
    const client = await ask(`${HEAD}Content-Length: ${MIB}\r\n\r\n`);
    await write(client, MIB);
    await until(() => lingering === 0);
    const answer = await read(client);
    assert.match(answer, /^HTTP\/1\.1 429 .*\r\nConnection: close\r\n/s);
    assert.match(answer, /\r\n\r\ntry again$/);
    assert.equal(clock.sleeping, 0);
  });

  it("waits for a body no longer than a second", async () => {
    const client = await ask(`${HEAD}Content-Length: 10\r\n\r\n`);
    clock.advance(999);
    await write(client, 1);
    assert.equal(lingering, 1);
    clock.advance(1);
    await until(() => lingering === 0);
    assert.match(await read(client), /try again$/);
  });

  it("drops no more than a MiB of it", async () => {
    const client = await ask(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const closed = once(client, "close").catch(() => {});
    client.on("error", () => {});
    client.write(`${(64 * MIB).toString(16)}\r\n`);
    for (let sent = 0; sent < 64 && lingering > 0; sent++) void write(client, MIB);
    await until(() => lingering === 0);
    client.resume();
    await closed;
    assert.ok(client.bytesWritten < 64 * MIB || client.destroyed);
    assert.equal(clock.sleeping, 0);
  });

  it("counts what comes over the wire, and not what is in the chunks", async () => {
    most = 64 * 1024;
    const client = await ask(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    client.on("error", () => {});
    for (let sent = 0; sent < 20 && lingering > 0; sent++) client.write(`1;${"x".repeat(4_000)}\r\n \r\n`); // 20 bytes in the chunks
    await until(() => lingering === 0);
    assert.equal(clock.sleeping, 0);
  });

  it("ends a connection at once whose body comes in very many pieces", async () => {
    const client = await ask(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    client.on("error", () => {});
    client.write("1\r\n \r\n".repeat(257));
    await until(() => lingering === 0);
    assert.equal(clock.sleeping, 0);
  });

  it("reads nothing of a body where it is told so", async () => {
    most = 0;
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    clients.push(client);
    client.write(`${HEAD}Content-Length: 10\r\n\r\n`);
    assert.match(await read(client), /\r\nConnection: close\r\n.*try again$/s);
    assert.equal(clock.sleeping, 0);
  });

  it("keeps nothing of a client that goes", async () => {
    const client = await ask(`${HEAD}Content-Length: 10\r\n\r\n`);
    client.destroy();
    await until(() => lingering === 0);
    assert.equal(clock.sleeping, 0);
  });

  for (const rest of ["\r\n", "Content-Length: 0\r\n\r\n"]) {
    it(`leaves a connection open that brings no body: ${JSON.stringify(rest)}`, async () => {
      const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
      clients.push(client);
      for (let i = 0; i < 2; i++) {
        client.write(HEAD + rest);
        const [answer] = await once(client, "data");
        assert.match(String(answer), /\r\nConnection: keep-alive\r\n.*try again$/s);
      }
      assert.equal(clock.sleeping, 0);
    });
  }
});
