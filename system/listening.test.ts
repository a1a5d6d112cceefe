// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createServer, Server } from "node:net";
import { describe, it } from "node:test";
import { listenAt, placeWords } from "./listening.ts";

/** On a host whose kernel has no IPv6. */
class WithoutIPv6 extends Server {
  readonly tried: unknown[] = [];

  override listen(...given: unknown[]): this {
    const [port, host, done] = given as [number, string, () => void];
    this.tried.push(host);
    if (!host.includes(":")) return super.listen(port, host, done);
    const error = Object.assign(new Error(`listen EAFNOSUPPORT ${host}`), { code: "EAFNOSUPPORT" });
    this.once("listening", done);
    setImmediate(() => this.emit("error", error));
    return this;
  }
}

describe("a server that is to listen", () => {
  it("on every address listens on those of IPv4 where there is no IPv6", async () => {
    const server = new WithoutIPv6();
    await listenAt(server, { port: 0 });
    assert.deepEqual(server.tried, ["::", "0.0.0.0"]);
    const address = server.address();
    assert.equal(typeof address === "object" && address?.address, "0.0.0.0");
    assert.deepEqual([server.listenerCount("error"), server.listenerCount("listening")], [0, 0]);
    await new Promise((done) => server.close(done));
  });

  it("on an address that it was given listens on no other", async () => {
    const server = new WithoutIPv6();
    await assert.rejects(listenAt(server, { host: "::", port: 0 }), { code: "EAFNOSUPPORT" });
    assert.deepEqual(server.tried, ["::"]);
  });

  it("on a port that is taken is told so", async () => {
    const [first, second] = [createServer(), createServer()];
    await listenAt(first, { port: 0 });
    const address = first.address();
    assert.ok(typeof address === "object" && address !== null);
    await assert.rejects(listenAt(second, { port: address.port }), { code: "EADDRINUSE" });
    await new Promise((done) => first.close(done));
  });

  it("is told of by its address and port", () => {
    assert.equal(placeWords({ port: 1 }), "every address port 1");
    assert.equal(placeWords({ host: "10.0.0.1", port: 1 }), "10.0.0.1 port 1");
  });
});
