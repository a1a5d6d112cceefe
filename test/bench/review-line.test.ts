// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createServer, type Server } from "node:https";
import { after, before, describe, it } from "node:test";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { ReviewLine } from "./review-line.ts";

const CLOCK = { now: () => Date.now() };

describe("a line to a webhook", () => {
  let server: Server;
  let line: ReviewLine;
  let answered = 0;
  let refused = 0;

  before(async () => {
    const ca = await issueAuthority(CLOCK);
    const names = { dnsNames: [], addresses: ["127.0.0.1"] };
    server = createServer(await issueServingCertificate(ca, names, CLOCK), (request, response) => {
      if (request.url === "/never") {
        request.socket.destroy();
        refused++;
        return;
      }
      answered++;
      response.end('{"allowed":true}');
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    line = await ReviewLine.open({ port: address.port, ca: ca.cert });
  });
  after(() => {
    line?.close();
    server?.closeAllConnections();
    server?.close();
  });

  it("is made anew when it was ended between two reviews, and when it is as one is asked", async () => {
    const request = Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await line.ask(request);
    server.closeAllConnections();
    await line.ask(request);
    await line.ask(request);
    server.closeAllConnections();
    await new Promise((resolve) => setImmediate(resolve));
    await line.ask(request);
    assert.equal(answered, 4);
  });

  it("asks no third time", async () => {
    await assert.rejects(line.ask(Buffer.from("GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n")), {
      message: "the webhook hung up",
    });
    assert.equal(refused, 2);
  });
});
