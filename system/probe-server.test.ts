// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { listenForProbes, PROBE_CONNECTIONS } from "./probe-server.ts";

const ASK = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

async function serving(work: (port: number, requests: () => number) => Promise<void>): Promise<void> {
  let requests = 0;
  const server = await listenForProbes({
    host: "127.0.0.1",
    port: 0,
    answer(_request, response) {
      requests++;
      response.end("ok\n");
    },
  });
  try {
    await work(server.port, () => requests);
  } finally {
    await server.close();
  }
}

async function open(port: number, from: string): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, localAddress: from });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

const closeOf = (socket: Socket) =>
  new Promise<void>((resolve) => {
    if (socket.closed) resolve();
    else socket.resume().once("close", () => resolve());
  });

describe("what serves probes", () => {
  it("takes one request of a connection at a time", async () => {
    await serving(async (port, requests) => {
      const client = await open(port, "127.0.0.1");
      client.write(ASK.repeat(2_000));
      await closeOf(client);
      assert.equal(requests(), 1);
    });
  });

  it("answers a request that expects what nobody knows as one that expects nothing", async () => {
    await serving(async (port, requests) => {
      const client = await open(port, "127.0.0.1");
      client.end(`GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: the-unexpected\r\nConnection: close\r\n\r\n`);
      assert.match(await text(client), /^HTTP\/1\.1 200 .*ok\n$/s);
      assert.equal(requests(), 1);
    });
  });

  it("parses no body, and answers nobody who sends one", async (t) => {
    let pieces = 0;
    const { push } = IncomingMessage.prototype;
    t.mock.method(IncomingMessage.prototype, "push", function (this: IncomingMessage, chunk: unknown) {
      if (this.method === "PUT" && chunk !== null) pieces++;
      return push.call(this, chunk);
    });
    const body = "1\r\n \r\n".repeat(5_000);
    await serving(async (port, requests) => {
      for (const [header, rest] of [
        ["Transfer-Encoding: chunked", body],
        ["Content-Length: 30000", body],
      ] as const) {
        const client = await open(port, "127.0.0.1");
        client.write(`PUT /healthz HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n${rest}`);
        await closeOf(client);
      }
      assert.deepEqual([requests(), pieces], [0, 0]);
      const empty = await fetch(`http://127.0.0.1:${port}/healthz`, { method: "POST" });
      assert.equal(await empty.text(), "ok\n"); // with a length of 0
    });
  });

  it("answers the kubelet however many connections strangers hold, from one address or from many", async () => {
    for (const addresses of [1, 200]) {
      await serving(async (port) => {
        const crowd: Socket[] = [];
        for (let n = 0; n < PROBE_CONNECTIONS.inAll + 20; n++)
          crowd.push(await open(port, `127.0.0.${10 + (n % addresses)}`));
        // those beyond were closed at once, or others for them
        await Promise.any(crowd.map(closeOf));
        const response = await fetch(`http://127.0.0.1:${port}/healthz`);
        assert.equal(await response.text(), "ok\n");
        const held = crowd.filter(({ closed }) => !closed).length;
        assert.ok(held <= PROBE_CONNECTIONS.inAll, `${held} are open`);
        for (const socket of crowd) socket.destroy();
      });
    }
  });
});
