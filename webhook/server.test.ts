// SPDX-License-Identifier: Apache-2.0
import "./reflect-metadata.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { Agent } from "node:https";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { afterEach, beforeEach, describe, it } from "node:test";
import { connect } from "node:tls";
import { PemConverter, X509CertificateGenerator } from "@peculiar/x509";
import { BerthError } from "../allocator/errors.ts";
import { type LogFields, type Logger, silent } from "../allocator/ports.ts";
import { createClock } from "../system/clock.ts";
import { createMetrics } from "../system/metrics.ts";
import { ManualClock } from "../system/testing/manual-clock.ts";
import { allowed, type Handler } from "./admission/review.ts";
import { createApp, ROUTES } from "./app.ts";
import { type CertificatePair, readCertificate } from "./certificate-pair.ts";
import { issueAuthority, issueLeaf } from "./certificates.ts";
import { serveTls, type TlsServer, type TlsServerOptions } from "./server.ts";
import { type Call, call, podReview, UID } from "./testing/api-server.ts";

const NAMES = { dnsNames: [], addresses: ["127.0.0.1"] };
const clock = createClock();
const authority = await issueAuthority(clock);
const leaf = await issueLeaf(authority, NAMES, clock);
const ca = authority.cert;

const serialOf = ({ cert }: CertificatePair) => readCertificate(cert).serialNumber;
const ok: RequestListener = (_request, response) => response.end("ok");

/** A client's certificate, signed by itself: trusting it trusts nobody else. */
async function issueClient(): Promise<CertificatePair> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: "CN=API server",
    notAfter: new Date(clock.now() + 3_600_000),
    signingAlgorithm: algorithm,
    keys,
  });
  const key = PemConverter.encode(await crypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  return { cert: certificate.toString("pem"), key };
}

describe("TLS server", () => {
  let servers: TlsServer[] = [];
  let agents: Agent[] = [];
  beforeEach(() => {
    servers = [];
    agents = [];
  });
  afterEach(async () => {
    for (const agent of agents) agent.destroy();
    await Promise.all(servers.map((server) => server.close()));
  });

  async function serve(changes: Partial<TlsServerOptions> = {}): Promise<TlsServer> {
    const options = { app: ok, host: "127.0.0.1", port: 0, certificate: leaf, log: silent, clock };
    const server = await serveTls({ ...options, ...changes });
    servers.push(server);
    return server;
  }
  const get = (server: TlsServer, changes: Partial<Call> = {}) =>
    call({ port: server.address.port, ca, path: "/", method: "GET", ...changes });
  const keepAlive = () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    return agent;
  };

  it("serves on any free port and says which", async () => {
    const server = await serve();
    assert.equal(server.address.host, "127.0.0.1");
    assert.ok(server.address.port > 0);
    const reply = await get(server);
    assert.deepEqual([reply.status, reply.text, reply.serial], [200, "ok", serialOf(leaf)]);
  });

  it("keeps an idle connection for longer than the API server does", async () => {
    const reply = await get(await serve(), { agent: keepAlive() });
    assert.equal(reply.headers["keep-alive"], "timeout=125");
    assert.equal(reply.headers.connection, "keep-alive");
  });

  it("speaks no TLS before 1.2", async () => {
    const { port } = (await serve()).address;
    const old = { host: "127.0.0.1", port, ca, minVersion: "TLSv1", maxVersion: "TLSv1.1" } as const;
    const client = connect({ ...old, ciphers: "DEFAULT@SECLEVEL=0" });
    const [error] = await once(client, "error");
    assert.match(String(error), /protocol version|unsupported protocol/);
  });

  it("refuses a pair that it cannot use, and a port that is taken, before it serves", async () => {
    const other = await issueLeaf(authority, NAMES, clock);
    await assert.rejects(serve({ certificate: { cert: leaf.cert, key: other.key } }), {
      code: "CERTIFICATE_INVALID",
      message: "the private key is not that of the certificate",
    });
    const { port } = (await serve()).address;
    await assert.rejects(serve({ port }), {
      code: "CONFIG_INVALID",
      message: `cannot listen on 127.0.0.1 port ${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
    });
  });

  it("survives clients that speak no TLS, or hang up in the handshake", async () => {
    const server = await serve();
    for (const bytes of ["GET / HTTP/1.1\r\n\r\n", "\u0016\u0003\u0001", ""]) {
      const client = connectTcp(server.address.port, "127.0.0.1");
      client.on("error", () => {});
      await once(client, "connect");
      client.end(bytes);
      client.resume();
      await once(client, "close");
    }
    assert.equal((await get(server)).status, 200);
  });

  describe("reload", () => {
    it("shows the new certificate to new connections while old ones live on", async () => {
      const server = await serve();
      const agent = keepAlive();
      assert.equal((await get(server, { agent })).serial, serialOf(leaf));
      const next = await issueLeaf(authority, NAMES, clock);
      server.reload(next);
      assert.equal((await get(server)).serial, serialOf(next));
      assert.equal((await get(server, { agent })).serial, serialOf(leaf));
    });

    it("keeps the old certificate when the new one is of no use", async () => {
      const server = await serve();
      const other = await issueLeaf(authority, NAMES, clock);
      const long = new ManualClock(clock.now() - 100 * 24 * 60 * 60 * 1000);
      const expired = await issueLeaf(await issueAuthority(long), NAMES, long);
      for (const bad of [
        { cert: other.cert, key: leaf.key },
        { cert: "", key: "" },
        { cert: other.cert, key: "nonsense" },
        {
          cert: `${other.cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
          key: other.key,
        },
        expired,
      ]) {
        assert.throws(
          () => server.reload(bad),
          (error) => error instanceof BerthError && error.code === "CERTIFICATE_INVALID",
        );
        assert.equal((await get(server)).serial, serialOf(leaf));
      }
    });

    it("fails no request while certificates change under load", async () => {
      const handlers = Object.fromEntries(
        ROUTES.map((route): [string, Handler] => [route, async (request) => allowed(request.uid)]),
      ) as Record<(typeof ROUTES)[number], Handler>;
      const metrics = createMetrics(silent);
      const server = await serve({
        app: createApp({ handlers, metrics, log: silent, clock, ready: () => ({ ready: true, reason: "" }) }),
      });
      const leaves = [leaf];
      let over = false;
      const serials = new Set<string>();
      let asked = 0;
      const work = async (agent: Agent | false) => {
        while (!over) {
          const body = JSON.stringify(podReview({ uid: `${UID}-${++asked}` }));
          const uid = `${UID}-${asked}`;
          const reply = await get(server, { method: "POST", path: "/mutate/pods", body, agent });
          assert.deepEqual([reply.status, JSON.parse(reply.text).response], [200, { uid, allowed: true }]);
          serials.add(reply.serial);
        }
      };
      const workers = [work(false), work(false), work(keepAlive()), work(keepAlive())];
      while (leaves.length < 8) {
        const next = await issueLeaf(authority, NAMES, clock);
        server.reload(next);
        leaves.push(next);
        const before = asked;
        while (asked < before + 8) await clock.sleep(1);
      }
      over = true;
      await Promise.all(workers);
      for (const serial of serials) assert.ok(leaves.some((one) => serialOf(one) === serial));
      assert.ok(serials.size > 2, `${serials.size} certificates seen`);
    });
  });

  describe("client certificates", () => {
    it("lets only clients of the authority change something, and everybody read", async () => {
      const [certificate, stranger] = [await issueClient(), await issueClient()];
      const server = await serve({ clientAuthority: certificate.cert });
      const refused = '{"error":"a client certificate is required"}';
      for (const { method, as, status, text } of [
        { method: "POST", as: certificate, status: 200, text: "ok" },
        { method: "POST", as: stranger, status: 403, text: refused },
        { method: "POST", as: undefined, status: 403, text: refused },
        { method: "DELETE", as: undefined, status: 403, text: refused },
        { method: "GET", as: undefined, status: 200, text: "ok" },
        { method: "GET", as: certificate, status: 200, text: "ok" },
      ]) {
        const reply = await get(server, { method, ...(as === undefined ? {} : { certificate: as }) });
        assert.deepEqual(
          [reply.status, reply.text],
          [status, text],
          `${method} ${as === undefined ? "" : "as"}`,
        );
      }
    });

    it("refuses an authority of clients that cannot be read", async () => {
      await assert.rejects(serve({ clientAuthority: "nonsense" }), { code: "CERTIFICATE_INVALID" });
    });

    it("still asks for them after a reload", async () => {
      const certificate = await issueClient();
      const server = await serve({ clientAuthority: certificate.cert });
      server.reload(await issueLeaf(authority, NAMES, clock));
      assert.equal((await get(server, { method: "POST" })).status, 403);
      assert.equal((await get(server, { method: "POST", certificate })).status, 200);
    });
  });

  describe("close", () => {
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

    it("answers what is under way, and takes nothing new", async () => {
      const { app, entered, release } = held();
      const server = await serve({ app });
      const asking = get(server, { agent: keepAlive() });
      await entered;
      let closed = false;
      const closing = server.close().then(() => {
        closed = true;
      });
      await assert.rejects(get(server), { code: "ECONNREFUSED" });
      assert.equal(closed, false);
      release();
      const reply = await asking;
      assert.deepEqual([reply.status, reply.text, reply.headers.connection], [200, "done", "close"]);
      await closing;
    });

    it("still serves a connection that was open and not used yet, once", async () => {
      const server = await serve();
      const client = connect({ host: "127.0.0.1", port: server.address.port, ca });
      await once(client, "secureConnect");
      // the handshake ends later for the server than for the client
      await get(server);
      const closing = server.close();
      client.write("GET / HTTP/1.1\r\nHost: berth\r\n\r\n");
      const chunks: Buffer[] = [];
      client.on("data", (chunk: Buffer) => chunks.push(chunk));
      await once(client, "close");
      assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 200 OK\r\nConnection: close\r\n/);
      await closing;
    });

    it("does not wait for idle connections", async () => {
      const server = await serve({ clock: new ManualClock() });
      const agent = keepAlive();
      await get(server, { agent });
      await server.close();
      await assert.rejects(get(server), { code: "ECONNREFUSED" });
    });

    it("closes a connection whose answer had begun before", async () => {
      const { promise: gate, resolve: release } = Promise.withResolvers<void>();
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const server = await serve({
        clock: new ManualClock(),
        app: (_request, response) => {
          response.write("be");
          begin();
          void gate.then(() => response.end("gun"));
        },
      });
      const asking = get(server, { agent: keepAlive() });
      await begun;
      const closing = server.close();
      release();
      assert.equal((await asking).text, "begun");
      await closing;
    });

    it("cuts off what is still under way when the time is over, handshakes too", async () => {
      const manual = new ManualClock();
      const warned: (LogFields | undefined)[] = [];
      const log: Logger = { ...silent, warn: (_message, fields) => warned.push(fields) };
      const { app, entered, release } = held();
      const server = await serve({ app, clock: manual, log, drainMs: 2000 });
      const asking = get(server);
      const mute = connectTcp(server.address.port, "127.0.0.1");
      mute.on("error", () => {});
      await Promise.all([entered, once(mute, "connect")]);
      let closed = false;
      const closing = server.close().then(() => {
        closed = true;
      });
      manual.advance(1999);
      await clock.sleep(10);
      assert.equal(closed, false);
      const cut = assert.rejects(asking, { code: "ECONNRESET" });
      const hungUp = once(mute, "close");
      manual.advance(1);
      await Promise.all([closing, cut, hungUp]);
      assert.deepEqual(warned, [{ connections: 2, answers: 1 }]);
      release();
    });

    it("is idempotent, and leaves no timer behind", async () => {
      const manual = new ManualClock();
      const server = await serve({ clock: manual });
      const closing = server.close();
      assert.equal(server.close(), closing);
      await closing;
      await server.close();
      assert.equal(manual.sleeping, 0);
    });

    it("frees the port", async () => {
      const server = await serve();
      await server.close();
      const next = createServer();
      next.listen(server.address.port, "127.0.0.1");
      await once(next, "listening");
      assert.equal((next.address() as AddressInfo).port, server.address.port);
      next.close();
    });
  });
});
