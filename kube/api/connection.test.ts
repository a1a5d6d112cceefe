// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import { KubeConfig } from "@kubernetes/client-node";
import { createClock } from "../../system/clock.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { type Connection, connect } from "./connection.ts";

type Authenticator = Parameters<KubeConfig["addAuthenticator"]>[0];
type Handle = (request: IncomingMessage, response: ServerResponse) => void;

const ok: Handle = (_, response) => response.end("{}");

describe("connect", () => {
  let server: Server;
  let ca: string;
  let url: string;
  let handle: Handle;
  let sockets: number;
  let clock: ManualClock;
  const open: Connection[] = [];

  before(async () => {
    const authority = await issueAuthority(createClock());
    const names = { dnsNames: [], addresses: ["127.0.0.1"] };
    server = createServer(await issueServingCertificate(authority, names, createClock()), (...both) =>
      handle(...both),
    );
    server.on("secureConnection", () => {
      sockets++;
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    ca = authority.cert;
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  beforeEach(() => {
    sockets = 0;
    handle = ok;
    clock = new ManualClock();
  });
  afterEach(() => {
    for (const connection of open.splice(0)) connection.close();
  });

  function kubeConfig(to: { server?: string; ca?: string; authenticator?: Authenticator } = {}): KubeConfig {
    const config = new KubeConfig();
    if (to.authenticator !== undefined) config.addAuthenticator(to.authenticator);
    const caData = Buffer.from(to.ca ?? ca).toString("base64");
    const cluster = { name: "c", server: to.server ?? url, caData, skipTLSVerify: false };
    config.loadFromClusterAndUser(cluster, {
      name: "u",
      ...(to.authenticator === undefined ? { token: "secret" } : {}),
    });
    return config;
  }

  function connected(config = kubeConfig()): Connection {
    const connection = connect(config, { clock, userAgent: "berth-test" });
    open.push(connection);
    return connection;
  }

  const get = (connection: Connection, path = "/api") => connection.call({ method: "GET", path });

  /** Waits until the server has the request. */
  async function arrived(count: () => number, wanted: number): Promise<void> {
    for (let i = 0; count() < wanted; i++) {
      assert.ok(i < 10_000, "never arrived");
      await eventLoopTurns(1);
    }
  }

  it("sends what it is given, with credentials, and gives back what is answered", async () => {
    const seen: unknown[] = [];
    handle = async (request, response) => {
      const body = (await request.toArray()).join("");
      const { authorization, accept, "content-type": type, "user-agent": agent } = request.headers;
      seen.push({ line: `${request.method} ${request.url}`, authorization, accept, type, agent, body });
      response.writeHead(409).end('{"reason": "AlreadyExists"}');
    };
    const answer = await connected().call({
      method: "PATCH",
      path: "/apis/berth.dev",
      query: { fieldSelector: "spec.pool=a b" },
      body: { name: "地址" },
      contentType: "application/merge-patch+json",
    });
    assert.deepEqual(answer, { status: 409, body: { reason: "AlreadyExists" } });
    assert.deepEqual(seen, [
      {
        line: "PATCH /apis/berth.dev?fieldSelector=spec.pool%3Da+b",
        authorization: "Bearer secret",
        accept: "application/json",
        type: "application/merge-patch+json",
        agent: "berth-test",
        body: '{"name":"地址"}',
      },
    ]);
  });

  it("gives what the API server warns of, and nothing of what is no warning", async () => {
    const warnings = [
      '299 - "claim \\"a\\" is new", 299 - "old"',
      "299 nonsense",
      '299 - "one more, and the last"',
    ];
    handle = (_, response) => response.setHeader("Warning", warnings).end("{}");
    const { warnings: found } = await get(connected());
    assert.deepEqual(found, ['claim "a" is new', "old", "one more, and the last"]);
  });

  it("gives the text of an answer that is not JSON", async () => {
    handle = (_, response) => response.writeHead(404).end("404 page not found\n");
    assert.deepEqual(await get(connected()), { status: 404, body: "404 page not found\n" });
  });

  it("leaves out who manages which field of a large answer", async () => {
    const managedFields = [{ fieldsV1: { "f:x": {} } }];
    const of = (all: unknown) => ({
      items: [{ metadata: { name: "a", managedFields: all } }],
      x: "x".repeat(99_999),
    });
    handle = (_, response) => response.end(JSON.stringify(of(managedFields)));
    assert.deepEqual(await get(connected()), { status: 200, body: of([]) });
  });

  it("uses a TLS connection again, and 64 at a time at most", async () => {
    const connection = connected();
    for (let i = 0; i < 5; i++) await get(connection);
    assert.equal(sockets, 1);
    await Promise.all(Array.from({ length: 200 }, () => get(connection)));
    assert.ok(sockets <= 64, `${sockets} connections`);
  });

  it("reads no more of an answer than it is told, and goes on with the next call", async () => {
    handle = (_, response) => response.end(JSON.stringify("x".repeat(5_000_000)));
    const connection = connected();
    const call = { method: "GET", path: "/apis" } as const;
    assert.deepEqual(await connection.call({ ...call, mostBytes: 1_000_000 }), {
      ...{ status: 200, body: undefined, isTooLarge: true },
    });
    const whole = await connection.call({ ...call, mostBytes: 5_000_002 });
    assert.deepEqual([whole.isTooLarge, whole.bytes], [undefined, 5_000_002]);
    assert.equal(String((await connection.call(call)).body).length, 5_000_000);
    assert.equal(sockets, 2);
  });

  it("asks below the path of a server that has one", async () => {
    const asked: unknown[] = [];
    handle = (request, response) => {
      asked.push(request.url);
      response.end("{}");
    };
    const connection = connected(kubeConfig({ server: `${url}/clusters/a/` }));
    await connection.call({ method: "GET", path: "/api", query: { limit: "1", continue: "a/b" } });
    await get(connection, "/version");
    assert.deepEqual(asked, ["/clusters/a/api?limit=1&continue=a%2Fb", "/clusters/a/version"]);
  });

  it("waits for nothing once it has the answer", async () => {
    await get(connected());
    assert.equal(clock.sleeping, 0);
  });

  it("says that an answer breaks off", async () => {
    handle = (_, response) => {
      response.write('{"items": [');
      setImmediate(() => response.destroy());
    };
    await assert.rejects(get(connected()), {
      code: "STORE_UNAVAILABLE",
      message: `the API server at ${url} cannot be reached: aborted`,
    });
    assert.equal(clock.sleeping, 0);
  });

  it("takes a change of protocol for no answer", { timeout: 10_000 }, async () => {
    handle = ({ socket }) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n");
    const connection = connected();
    await assert.rejects(get(connection), {
      code: "STORE_UNAVAILABLE",
      message: `the API server at ${url} cannot be reached: it answers in another protocol (101)`,
    });
    handle = ok;
    assert.equal((await get(connection)).status, 200);
  });

  it("goes on with the TLS session of the connection before", async () => {
    const reused: boolean[] = [];
    const look = (socket: TLSSocket) => reused.push(socket.isSessionReused());
    server.on("secureConnection", look);
    handle = (_, response) => response.end("line\n");
    const connection = connected();
    for (let i = 0; i < 2; i++) {
      const stream = await connection.stream({ method: "GET", path: "/api" }, new AbortController().signal);
      assert.ok("lines" in stream);
      await stream.lines.next();
      await stream.lines.next();
    }
    server.off("secureConnection", look);
    assert.deepEqual(reused, [false, true]);
  });

  it("gives up when there is no answer in time", async () => {
    let requests = 0;
    handle = () => requests++;
    const call = connected().call({ method: "GET", path: "/api", timeoutMs: 3_000 });
    await arrived(() => requests, 1);
    clock.advance(2_999);
    await eventLoopTurns();
    clock.advance(1);
    await assert.rejects(call, { code: "TIMED_OUT", message: `the API server at ${url} does not answer` });
  });

  it("gives up when an answer stops in the middle", async () => {
    let requests = 0;
    handle = (_, response) => {
      requests++;
      response.write('{"items": [');
    };
    const call = get(connected());
    await arrived(() => requests, 1);
    await eventLoopTurns(200);
    clock.advance(10_000);
    await assert.rejects(call, { code: "TIMED_OUT" });
  });

  it("says what broke", async () => {
    handle = (request) => request.socket.destroy();
    await assert.rejects(get(connected()), {
      code: "STORE_UNAVAILABLE",
      message: `the API server at ${url} cannot be reached: socket hang up`,
    });
    const { cert: other } = await issueAuthority(createClock());
    await assert.rejects(get(connected(kubeConfig({ ca: other }))), {
      code: "STORE_UNAVAILABLE",
      message: /cannot be reached: unable to verify|cannot be reached: certificate|cannot be reached: self/,
    });
    await assert.rejects(get(connected(kubeConfig({ server: "https://127.0.0.1:1" }))), {
      code: "STORE_UNAVAILABLE",
      message: "the API server at https://127.0.0.1:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1",
    });
  });

  it("comes again after 429, when it was told to, for as long as there is time", async () => {
    let requests = 0;
    handle = (_, response) => {
      requests++;
      if (requests > 2) response.end("{}");
      else response.writeHead(429, { "retry-after": "2" }).end();
    };
    const call = get(connected());
    for (const count of [1, 2]) {
      await arrived(() => clock.sleeping, 1);
      await arrived(() => requests, count);
      await eventLoopTurns(200);
      clock.advance(2_000);
    }
    assert.equal((await call).status, 200);
    handle = (_, response) => response.writeHead(429, { "retry-after": "60" }).end();
    assert.equal((await get(connected())).status, 429);
  });

  it("asks for credentials again after 401, once", async () => {
    let token = 0;
    const authenticator: Authenticator = {
      isAuthProvider: () => true,
      applyAuthentication: async (_, options) => {
        token++;
        options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
      },
    };
    handle = (request, response) =>
      response.writeHead(request.headers.authorization === "Bearer 2" ? 200 : 401).end();
    const connection = connected(kubeConfig({ authenticator }));
    assert.equal((await get(connection)).status, 200);
    assert.equal((await get(connection)).status, 200);
    assert.equal(token, 2);
    clock.advance(10_000); // they are old now
    assert.equal((await get(connection)).status, 401);
    assert.equal(token, 4);
  });

  it("says that there are no credentials", async () => {
    const authenticator: Authenticator = {
      isAuthProvider: () => true,
      applyAuthentication: async () => {
        throw new Error("the plugin is not installed");
      },
    };
    await assert.rejects(get(connected(kubeConfig({ authenticator }))), {
      code: "STORE_UNAVAILABLE",
      message: `no credentials for the API server at ${url}: the plugin is not installed`,
    });
  });

  it("says that credentials cannot be sent", async () => {
    const authenticator: Authenticator = {
      isAuthProvider: () => true,
      applyAuthentication: async (_, options) => {
        options.headers = { Authorization: "Bearer one\ntwo" };
      },
    };
    await assert.rejects(get(connected(kubeConfig({ authenticator }))), {
      code: "STORE_UNAVAILABLE",
      message: `no credentials for the API server at ${url}: Invalid character in header content ["Authorization"]`,
    });
  });

  it("throws a mistake of who calls as what it is", async () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const connection = connected();
    const circular = connection.call({ method: "POST", path: "/api", body: circle });
    await assert.rejects(circular, { name: "TypeError", message: /circular structure/ });
    await assert.rejects(get(connection, "/not encoded"), {
      name: "TypeError",
      code: "ERR_UNESCAPED_CHARACTERS",
    });
    const stream = connection.stream({ method: "GET", path: "/地址" }, new AbortController().signal);
    await assert.rejects(stream, { name: "TypeError", code: "ERR_UNESCAPED_CHARACTERS" });
    assert.equal(clock.sleeping, 0);
    assert.equal((await get(connection)).status, 200);
  });

  it("wants TLS", () => {
    assert.throws(() => connected(kubeConfig({ server: "http://127.0.0.1:8080" })), {
      code: "CONFIG_INVALID",
      message: /must have a server that begins with https:\/\/, not "http:\/\/127.0.0.1:8080"/,
    });
  });

  it("streams lines until its signal aborts", async () => {
    const responses: ServerResponse[] = [];
    handle = (_, response) => {
      responses.push(response);
      response.write('{"a":1}\n{"b"');
    };
    const stop = new AbortController();
    const stream = await connected().stream({ method: "GET", path: "/api" }, stop.signal);
    assert.ok("lines" in stream);
    assert.deepEqual(await stream.lines.next(), { done: false, value: '{"a":1}' });
    responses[0]?.write(":2}\n");
    assert.deepEqual(await stream.lines.next(), { done: false, value: '{"b":2}' });
    clock.advance(3_600_000); // a stream has no deadline
    const waiting = stream.lines.next();
    stop.abort();
    await assert.rejects(waiting, { code: "STORE_UNAVAILABLE" });
  });

  it("gives the answer instead of a stream that is refused", async () => {
    handle = (_, response) => response.writeHead(410).end('{"code": 410}');
    const stream = await connected().stream({ method: "GET", path: "/api" }, new AbortController().signal);
    assert.deepEqual(stream, { status: 410, body: { code: 410 } });
  });

  it("ends everything when it is closed, and is closed from then on", async () => {
    let requests = 0;
    handle = (request, response) => {
      requests++;
      if (request.url !== "/api") response.write("line\n");
    };
    const connection = connected();
    const call = get(connection);
    const read = get(connection, "/half");
    const stream = await connection.stream({ method: "GET", path: "/stream" }, new AbortController().signal);
    assert.ok("lines" in stream);
    await stream.lines.next();
    await arrived(() => requests, 3);
    const line = stream.lines.next();
    connection.close();
    connection.close();
    await assert.rejects(call, { code: "STORE_UNAVAILABLE" });
    await assert.rejects(read, { code: "STORE_UNAVAILABLE" });
    await assert.rejects(line, { code: "STORE_UNAVAILABLE" });
    await assert.rejects(get(connection), { message: "the connection to the API server is closed" });
    assert.equal(clock.sleeping, 0);
  });

  it("sends nothing when it was closed while it waited for credentials", async () => {
    let requests = 0;
    handle = () => requests++;
    const { promise, resolve } = Promise.withResolvers<void>();
    const applyAuthentication = () => promise;
    const connection = connected(
      kubeConfig({ authenticator: { isAuthProvider: () => true, applyAuthentication } }),
    );
    const call = get(connection);
    connection.close();
    resolve();
    await assert.rejects(call, { message: "the connection to the API server is closed" });
    assert.equal(requests, 0);
  });
});
