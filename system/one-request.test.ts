// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, type RequestListener, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { ONE_REQUEST } from "./one-request.ts";

const ASK = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

async function serving(app: RequestListener, work: (port: number) => Promise<void>): Promise<void> {
  const server = createServer(ONE_REQUEST, app);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await work((server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** What comes back for these bytes, written at once, until the connection is closed. */
async function answerTo(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += String(chunk);
  });
  socket.write(bytes);
  await closeOf(socket);
  return text;
}

/** Reset or not. */
function closeOf(socket: Socket): Promise<void> {
  socket.on("error", () => {});
  return new Promise((resolve) => void socket.resume().once("close", () => resolve()));
}

describe("one request at a time", () => {
  it("a second one, before the first is answered, closes the connection, and what follows is not parsed", async () => {
    let requests = 0;
    const { promise: closed, resolve: close } = Promise.withResolvers<void>();
    const app: RequestListener = (_request, response) => {
      requests++;
      response.once("close", close);
    };
    await serving(app, async (port) => {
      assert.equal(await answerTo(port, ASK.repeat(2_000)), "");
      await closed; // whoever works on the first is told
    });
    assert.equal(requests, 1);
  });

  it("in one read also when each is answered at once, by the app or by Node", async () => {
    let requests = 0;
    const app: RequestListener = (_request, response) => {
      requests++;
      response.end("ok");
    };
    await serving(app, async (port) => {
      await answerTo(port, ASK.repeat(2_000));
      assert.equal(requests, 1);
      for (const line of ["Expect: what", "A: b"]) {
        const text = await answerTo(port, `GET / HTTP/1.1\r\n${line}\r\nHost: a\r\n\r\n`.repeat(2_000));
        assert.ok(text.split("HTTP/1.1").length <= 2, text);
      }
      const noHost = await answerTo(port, "GET / HTTP/1.1\r\n\r\n".repeat(2_000));
      assert.ok(noHost.split("HTTP/1.1").length <= 2, noHost);
    });
  });

  it("also in a later read", async () => {
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    let requests = 0;
    const app: RequestListener = () => {
      requests++;
      enter();
    };
    await serving(app, async (port) => {
      const socket = connect(port, "127.0.0.1");
      const closed = closeOf(socket);
      socket.write(ASK);
      await entered;
      socket.write(ASK);
      await closed;
    });
    assert.equal(requests, 1);
  });

  it("whoever waits for each answer keeps the connection, wherever the answer is written", async () => {
    const ports = new Set<number | undefined>();
    const app: RequestListener = ({ socket, url }, response) => {
      ports.add(socket.remotePort);
      const end = () => void response.end("ok");
      if (url === "/0") end();
      else if (url === "/1") setImmediate(end);
      else setTimeout(end, 1);
    };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const get = async (port: number, path: string): Promise<void> => {
      const call = request({ port, host: "127.0.0.1", path, agent, method: "POST" }).end("{}");
      const [response] = await once(call, "response");
      await once(response.resume(), "end");
    };
    await serving(app, async (port) => {
      for (let n = 0; n < 300; n++) await get(port, `/${n % 3}`);
    });
    agent.destroy();
    assert.equal(ports.size, 1);
  });
});
