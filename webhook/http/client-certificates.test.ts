// SPDX-License-Identifier: Apache-2.0

import "../certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { issueClient, issueServingCertificate } from "../certificates/issue.ts";
import { API_SERVER, bench, clientOf, setUp } from "../testing/tls-clients.ts";

const LOOPBACK = { dnsNames: [], addresses: ["127.0.0.1"] };

describe("TLS server", () => {
  setUp();

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
