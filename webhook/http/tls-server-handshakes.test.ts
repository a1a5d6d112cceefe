// SPDX-License-Identifier: Apache-2.0
// Clients whose handshakes cost much, where the server asks for a certificate, and those that only look so.
import "../certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, afterEach, before, describe, it } from "node:test";
import { type ConnectionOptions, connect } from "node:tls";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { COSTLY_CHAINS, chainOf } from "../../test/hostile/certificate-chains.ts";
import { eventually } from "../../test/support/eventually.ts";
import { issueAuthority, issueClient } from "../certificates/issue.ts";
import { TlsBench } from "../testing/tls-bench.ts";
import type { TlsServer, TlsServerOptions } from "./tls-server.ts";

const REQUEST = "POST /mutate/pods HTTP/1.1\r\nHost: berth\r\nContent-Length: 0\r\n\r\n";

/** Some more than are taken: what is under way when the connection is closed is changed as well. */
const MOST_CHANGES = 200;

describe("handshakes, where clients are asked for a certificate", () => {
  let bench: TlsBench;
  let authority: CertificatePair;
  before(async () => {
    bench = await TlsBench.open();
    authority = await issueAuthority(bench.clock);
  });
  afterEach(async () => await bench.clear());
  after(async () => await bench.clear());

  async function serve(options: Partial<TlsServerOptions> = {}): Promise<TlsServer> {
    return await bench.serve({ clientAuthority: authority.cert, ...options });
  }

  /** What the server says to a client that asks as soon as it may; empty: it hung up. */
  function answerTo(server: TlsServer, client: ConnectionOptions, request = REQUEST): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect({
        host: "127.0.0.1",
        port: server.address.port,
        ca: bench.authority.cert,
        ...client,
      });
      let answer = "";
      socket.on("data", (chunk: Buffer) => {
        answer += chunk.toString("latin1");
        socket.end();
      });
      socket.on("error", () => {});
      socket.once("close", () => resolve(answer));
      socket.write(request);
    });
  }

  for (const [name, make] of Object.entries(COSTLY_CHAINS)) {
    it(`end before a chain with ${name} is checked`, async () => {
      assert.equal(await answerTo(await serve(), make()), "");
    });
  }

  it("go on with a chain of the size that people have", async () => {
    // a certificate, and two authorities with keys of 4,096 bits and the usual exponent's length
    const answer = await answerTo(await serve(), chainOf(2, 4_096, 17));
    assert.match(answer, /^HTTP\/1.1 403 .*berth does not trust the authority/s);
  });

  it("are over for whoever sends a long request with the end of his own", async () => {
    const client = await issueClient(
      authority,
      { name: "kube-apiserver", organization: "berth.dev:reviewers" },
      bench.clock,
    );
    const app: TlsServerOptions["app"] = (request, response) => {
      let bytes = 0;
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      request.on("end", () => response.end(`${bytes} from ${request.socket.remoteAddress}`));
    };
    const length = 300_000;
    const request = `${REQUEST.replace("Content-Length: 0", `Content-Length: ${length}`)}${"a".repeat(length)}`;
    assert.match(
      await answerTo(await serve({ app }), client, request),
      /300000 from (?:::ffff:)?127\.0\.0\.1$/,
    );
  });

  for (const asked of [true, false]) {
    it(`are not begun again on a connection that stands, with ${asked ? "an" : "no"} authority of clients`, async () => {
      const { address } = await (asked ? serve() : bench.serve());
      const options = { host: "127.0.0.1", port: address.port, ca: bench.authority.cert } as const;
      const outcome = await new Promise<string>((resolve) => {
        const socket = connect({ ...options, maxVersion: "TLSv1.2" }, () => {
          socket.renegotiate({}, (error) => {
            resolve(error === null ? "a second handshake" : error.message);
            socket.destroy();
          });
        });
        socket.on("error", ({ message }) => resolve(message));
        socket.on("close", () => resolve("closed"));
      });
      assert.match(outcome, /no.renegotiation|closed/);
    });
  }

  for (const asked of [true, false]) {
    it(`are followed by a bounded number of changes of keys, with ${asked ? "an" : "no"} authority of clients`, async (t) => {
      const { address } = await (asked ? serve() : bench.serve());
      const client = spawn("openssl", ["s_client", "-connect", `127.0.0.1:${address.port}`, "-tls1_3"]);
      t.after(() => client.kill("SIGKILL"));
      client.stdin.on("error", () => {});
      let [changes, ended] = [0, false];
      client.on("close", () => {
        ended = true;
      });
      client.stderr.on("data", (some: Buffer) => {
        changes += String(some).split("KEYUPDATE").length - 1;
      });
      await once(client.stdout, "data");
      while (!ended && changes < MOST_CHANGES) {
        const before = changes;
        client.stdin.write("k\n");
        await eventually("the keys are changed, or the connection is closed", async () =>
          ended || changes > before ? true : undefined,
        );
      }
      assert.ok(ended, `${changes} changes of keys`);
    });
  }

  it("agree on no group that costs much more than the others", async () => {
    const server = await serve();
    const answered: string[] = [];
    const groups = ["X25519MLKEM768", "X25519", "P-256", "P-384", "P-521", "X448", "ffdhe2048", "ffdhe3072"];
    for (const ecdhCurve of groups) {
      if ((await answerTo(server, { ecdhCurve })) !== "") answered.push(ecdhCurve);
    }
    assert.deepEqual(answered, ["X25519MLKEM768", "X25519", "P-256", "P-384"]);
  });
});
