// SPDX-License-Identifier: Apache-2.0
import "../certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Agent } from "node:https";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, before, describe, it } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createMetrics } from "../../system/metrics.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import {
  type ClientName,
  issueAuthority,
  issueClient,
  issueServingCertificate,
} from "../certificates/issue.ts";
import { type CertificatePair, readCertificate } from "../certificates/pair.ts";
import { allowed, type Handler, ROUTES } from "../review/admission-review.ts";
import { podReview, UID } from "../testing/api-server.ts";
import { TlsBench } from "../testing/tls-bench.ts";
import { createApp } from "./app.ts";

const LOOPBACK = { dnsNames: [], addresses: ["127.0.0.1"] };
const serialOf = ({ cert }: CertificatePair) => readCertificate(cert).serialNumber;

let bench: TlsBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    bench = await TlsBench.open();
  });
  afterEach(() => bench.clear());
}

const API_SERVER: ClientName = { name: "kube-apiserver", organization: "berth.dev:reviewers" };

/** A client's certificate of an authority of its own, whose certificate comes with it. */
async function clientOf(who: ClientName = API_SERVER, authority?: CertificatePair) {
  const signer = authority ?? (await issueAuthority(bench.clock));
  return { ...(await issueClient(signer, who, bench.clock)), authority: signer };
}

describe("TLS server", () => {
  setUp();

  it("serves on any free port and says which", async () => {
    const server = await bench.serve();
    assert.equal(server.address.host, "127.0.0.1");
    assert.ok(server.address.port > 0);
    const reply = await bench.get(server);
    assert.deepEqual([reply.status, reply.text, reply.serial], [200, "ok", serialOf(bench.leaf)]);
  });

  it("keeps an idle connection for longer than the API server does", async () => {
    const reply = await bench.get(await bench.serve(), { agent: bench.keepAlive() });
    assert.equal(reply.headers["keep-alive"], "timeout=125");
    assert.equal(reply.headers.connection, "keep-alive");
  });

  it("speaks no TLS before 1.2", async () => {
    const { port } = (await bench.serve()).address;
    const old = {
      host: "127.0.0.1",
      port,
      ca: bench.authority.cert,
      minVersion: "TLSv1",
      maxVersion: "TLSv1.1",
    } as const;
    const client = connect({ ...old, ciphers: "DEFAULT@SECLEVEL=0" });
    const [error] = await once(client, "error");
    assert.match(String(error), /protocol version|unsupported protocol/);
  });

  it("refuses a pair that it cannot use, and a port that is taken, before it serves", async () => {
    const other = await bench.issueLeaf();
    await assert.rejects(bench.serve({ certificate: { cert: bench.leaf.cert, key: other.key } }), {
      code: "CERTIFICATE_INVALID",
      message: "the private key is not that of the certificate",
    });
    const { port } = (await bench.serve()).address;
    await assert.rejects(bench.serve({ port }), {
      code: "CONFIG_INVALID",
      message: `cannot listen on 127.0.0.1 port ${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
    });
  });

  it("survives clients that speak no TLS, or hang up in the handshake", async () => {
    const server = await bench.serve();
    for (const bytes of ["GET / HTTP/1.1\r\n\r\n", "\u0016\u0003\u0001", ""]) {
      const client = connectTcp(server.address.port, "127.0.0.1");
      client.on("error", () => {});
      await once(client, "connect");
      client.end(bytes);
      client.resume();
      await once(client, "close");
    }
    assert.equal((await bench.get(server)).status, 200);
  });

  it("takes no second request before the first has its answer, also from the API server", async () => {
    const certificate = await clientOf();
    let asked = 0;
    const server = await bench.serve({
      clientAuthority: certificate.authority.cert,
      app: (_request, response) => {
        asked++;
        response.end("ok");
      },
    });
    const { cert, key } = certificate;
    const its = { host: "127.0.0.1", port: server.address.port, ca: bench.authority.cert };
    for (const as of [{}, { cert, key }]) {
      const client = connect({ ...its, ...as });
      client.on("error", () => {});
      client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2_000));
      await new Promise((resolve) => client.resume().once("close", resolve));
    }
    assert.equal(asked, 2);
  });

  describe("reload", () => {
    it("shows the new certificate to new connections while old ones live on", async () => {
      const server = await bench.serve();
      const agent = bench.keepAlive();
      assert.equal((await bench.get(server, { agent })).serial, serialOf(bench.leaf));
      const next = await bench.issueLeaf();
      server.reload(next);
      assert.equal((await bench.get(server)).serial, serialOf(next));
      assert.equal((await bench.get(server, { agent })).serial, serialOf(bench.leaf));
    });

    it("keeps the old certificate when the new one is of no use", async () => {
      const server = await bench.serve();
      const other = await bench.issueLeaf();
      const long = new ManualClock(bench.clock.now() - 100 * 24 * 60 * 60 * 1000);
      const expired = await issueServingCertificate(
        await issueAuthority(long),
        { dnsNames: [], addresses: ["127.0.0.1"] },
        long,
      );
      for (const bad of [
        { cert: other.cert, key: bench.leaf.key },
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
        assert.equal((await bench.get(server)).serial, serialOf(bench.leaf));
      }
    });

    it("fails no request while certificates change under load", async () => {
      const handlers = Object.fromEntries(
        ROUTES.map((route): [string, Handler] => [route, async (request) => allowed(request.uid)]),
      ) as Record<(typeof ROUTES)[number], Handler>;
      const metrics = createMetrics(noopLogger);
      const server = await bench.serve({
        app: createApp({
          handlers,
          metrics,
          log: noopLogger,
          clock: bench.clock,
          ready: () => ({ ready: true, reason: "" }),
        }),
      });
      const leaves = [bench.leaf];
      let over = false;
      const serials = new Set<string>();
      let asked = 0;
      const work = async (agent: Agent | false) => {
        while (!over) {
          const body = JSON.stringify(podReview({ uid: `${UID}-${++asked}` }));
          const uid = `${UID}-${asked}`;
          const reply = await bench.get(server, { method: "POST", path: "/mutate/pods", body, agent });
          assert.deepEqual([reply.status, JSON.parse(reply.text).response], [200, { uid, allowed: true }]);
          serials.add(reply.serial);
        }
      };
      const workers = [work(false), work(false), work(bench.keepAlive()), work(bench.keepAlive())];
      while (leaves.length < 8) {
        const next = await bench.issueLeaf();
        server.reload(next);
        leaves.push(next);
        const before = asked;
        while (asked < before + 8) await bench.clock.sleep(1);
      }
      over = true;
      await Promise.all(workers);
      for (const serial of serials) assert.ok(leaves.some((one) => serialOf(one) === serial));
      assert.ok(serials.size > 2, `${serials.size} certificates seen`);
    });
  });

  describe("client certificates", () => {
    it("lets only clients of the authority change something, and everybody read", async () => {
      const [certificate, stranger] = [await clientOf(), await clientOf()];
      const server = await bench.serve({ clientAuthority: certificate.authority.cert });
      const nobody = "berth takes reviews only from a client with a certificate, and this one brought none";
      const refused = "berth does not trust the authority of this client certificate; see BERTH_CLIENT_CA";
      for (const { method, as, status, text } of [
        { method: "POST", as: certificate, status: 200, text: "ok" },
        { method: "POST", as: stranger, status: 403, text: refused },
        { method: "POST", as: undefined, status: 403, text: nobody },
        { method: "DELETE", as: undefined, status: 403, text: nobody },
        { method: "GET", as: undefined, status: 200, text: "ok" },
        { method: "GET", as: certificate, status: 200, text: "ok" },
      ]) {
        const reply = await bench.get(server, { method, ...(as === undefined ? {} : { certificate: as }) });
        assert.deepEqual(
          [reply.status, reply.text],
          [status, text],
          `${method} ${as === undefined ? "" : "as"}`,
        );
      }
    });

    it("lets only clients of the authority that have one of the names and one of the organizations", async () => {
      const { authority, ...apiServer } = await clientOf();
      const server = await bench.serve({ clientAuthority: authority.cert });
      const post = async (certificate: CertificatePair) => {
        const { status, text } = await bench.get(server, { method: "POST", certificate });
        return `${status} ${text}`;
      };
      assert.equal(await post(apiServer), "200 ok");
      for (const { name, organization } of [
        { name: "evil-developer", organization: "developers" },
        { name: "evil-developer", organization: "berth.dev:reviewers" },
        { name: "kube-apiserver", organization: "developers" },
        { name: "kube-apiserver,", organization: "berth.dev:reviewers" },
        { name: "x".repeat(60), organization: "y".repeat(60) },
      ]) {
        const words = `berth takes no reviews from a client certificate with CN=${name} and O=${organization}; see BERTH_CLIENT_NAMES and BERTH_CLIENT_ORGANIZATIONS`;
        assert.equal(await post(await clientOf({ name, organization }, authority)), `403 ${words}`);
      }
      // a server's certificate of that authority says who it serves as, and nothing of who it asks as
      assert.match(await post(await issueServingCertificate(authority, LOOPBACK, bench.clock)), /^403 /);
      const manual = new ManualClock(bench.clock.now() - 100 * 24 * 60 * 60 * 1000);
      assert.match(await post(await issueClient(authority, API_SERVER, manual)), /^403 berth does not trust/);
    });

    it("lets nobody past who expects what Node would answer by itself", async () => {
      const { authority } = await clientOf();
      const server = await bench.serve({ clientAuthority: authority.cert });
      const headers = { Expect: "the-unexpected" };
      const reply = await bench.get(server, { method: "POST", headers, agent: bench.keepAlive() });
      assert.deepEqual([reply.status, reply.headers.connection], [403, "close"]);
    });

    it("goes by the names and organizations that it is given", async () => {
      const mine = { name: "mine", organization: "us" };
      const { authority, ...client } = await clientOf(mine);
      const trusted = { names: ["mine"], organizations: ["us", "them"] };
      const server = await bench.serve({ clientAuthority: authority.cert, trusted });
      assert.equal((await bench.get(server, { method: "POST", certificate: client })).status, 200);
      const usual = await clientOf(API_SERVER, authority);
      assert.equal((await bench.get(server, { method: "POST", certificate: usual })).status, 403);
    });

    it("lets nobody else read either where it is told so, and says where a certificate is", async () => {
      const { authority, ...client } = await clientOf();
      const given = { readers: "trusted", advice: "use the one in the folder" } as const;
      const trusted = { names: [API_SERVER.name], organizations: [API_SERVER.organization], ...given };
      const server = await bench.serve({ clientAuthority: authority.cert, trusted });
      const renamed = await clientOf({ ...API_SERVER, name: "other" }, authority);
      const others = [{ certificate: await clientOf() }, { certificate: renamed }, {}];
      for (const method of ["GET", "HEAD", "POST"]) {
        assert.equal((await bench.get(server, { method, certificate: client })).status, 200);
        for (const other of others) {
          const { status, text } = await bench.get(server, { method, ...other });
          assert.equal(status, 403);
          assert.match(text, method === "HEAD" ? /^$/ : /; use the one in the folder$/);
        }
      }
    });

    it("refuses an authority of clients that cannot be read", async () => {
      await assert.rejects(bench.serve({ clientAuthority: "nonsense" }), { code: "CERTIFICATE_INVALID" });
    });

    it("goes by another authority of clients from the next connection on", async () => {
      const [first, second] = [await clientOf(), await clientOf()];
      const server = await bench.serve({ clientAuthority: first.authority.cert });
      const damaged = first.authority.cert.replace(/\n.{10}/, "\n!!!!!");
      for (const bad of ["nonsense", second.authority.cert + damaged])
        assert.throws(() => server.trustClients(bad), { code: "CERTIFICATE_INVALID" });
      const post = async (certificate: CertificatePair) =>
        (await bench.get(server, { method: "POST", certificate })).status;
      assert.deepEqual([await post(first), await post(second)], [200, 403]);
      server.trustClients(second.authority.cert.trimEnd() + first.authority.cert);
      assert.deepEqual([await post(first), await post(second)], [200, 200]);
      server.trustClients(second.authority.cert);
      assert.deepEqual([await post(first), await post(second)], [403, 200]);
      server.reload(await bench.issueLeaf());
      assert.deepEqual([await post(first), await post(second)], [403, 200]);
      const open = await bench.serve();
      assert.throws(() => open.trustClients(first.authority.cert), { code: "CERTIFICATE_INVALID" });
    });

    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      it(`takes up no session of ${version} again, which would be without one`, async () => {
        const { authority, cert, key } = await clientOf();
        const server = await bench.serve({ clientAuthority: authority.cert });
        const post = async (more: ConnectionOptions) => {
          const { port, host } = server.address;
          const versions = { minVersion: version, maxVersion: version } as const;
          const socket = connect({ port, host, ca: bench.authority.cert, ...versions, ...more });
          let session: Buffer | undefined;
          socket.on("session", (given) => {
            session = given;
          });
          let reused = false;
          socket.on("secureConnect", () => {
            reused = socket.isSessionReused();
          });
          socket.end("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
          const said = await text(socket);
          return { said: said.split("\r\n", 1)[0], reused, session };
        };
        const first = await post({ cert, key });
        assert.match(first.said ?? "", / 200 /);
        const again = await post(first.session === undefined ? {} : { session: first.session });
        assert.match(again.said ?? "", / 403 /);
        assert.equal(again.reused, false);
      });
    }

    it("takes no more reviews on a connection when the certificate that it began with has ended", async () => {
      const { authority, ...certificate } = await clientOf();
      const clock = new ManualClock(bench.clock.now());
      const server = await bench.serve({ clientAuthority: authority.cert, clock });
      const agent = bench.keepAlive();
      const post = async () => await bench.get(server, { method: "POST", certificate, agent });
      assert.equal((await post()).status, 200);
      clock.advance(91 * 24 * 60 * 60 * 1000);
      const { status, text: words } = await post();
      assert.deepEqual(
        [status, words],
        [403, "this client certificate has ended; the API server needs a new one"],
      );
    });

    it("still asks for them after a reload", async () => {
      const certificate = await clientOf();
      const server = await bench.serve({ clientAuthority: certificate.authority.cert });
      server.reload(await bench.issueLeaf());
      assert.equal((await bench.get(server, { method: "POST" })).status, 403);
      assert.equal((await bench.get(server, { method: "POST", certificate })).status, 200);
    });
  });
});
