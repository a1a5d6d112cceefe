// SPDX-License-Identifier: Apache-2.0
import "../certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Agent } from "node:https";
import { connect as connectTcp } from "node:net";
import { describe, it } from "node:test";
import { connect } from "node:tls";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createMetrics } from "../../system/metrics.ts";
import { type CertificatePair, readCertificate } from "../../system/pem/pair.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { issueAuthority, issueServingCertificate } from "../certificates/issue.ts";
import { allowed, type Handler, ROUTES } from "../review/admission-review.ts";
import { podReview, UID } from "../testing/api-server.ts";
import { bench, clientOf, setUp } from "../testing/tls-clients.ts";
import { createApp } from "./app.ts";

const serialOf = ({ cert }: CertificatePair) => readCertificate(cert).serialNumber;

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
});
