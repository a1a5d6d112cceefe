// SPDX-License-Identifier: Apache-2.0
import "../certificates/reflect-metadata.ts";
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { afterEach, before, describe, it } from "node:test";
import { connect } from "node:tls";
import { eventually } from "../../test/support/eventually.ts";
import { issueAuthority, issueClient } from "../certificates/issue.ts";
import { TlsBench } from "../testing/tls-bench.ts";
import type { TlsServer } from "./tls-server.ts";

let bench: TlsBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  before(async () => {
    bench = await TlsBench.open();
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await bench.clear();
  });
}
const sockets: Socket[] = [];

/** A connection from an address of the loopback that says nothing; or to another one, and from the port of another. */
async function mute(
  { address }: TlsServer,
  from: string,
  { to = "127.0.0.1", as }: { readonly to?: string; readonly as?: Socket } = {},
): Promise<Socket> {
  const at = as?.localPort === undefined ? {} : { localPort: as.localPort };
  const socket = connectTcp({ host: to, port: address.port, localAddress: from, ...at });
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** A connection whose client asked for the metrics and reads nothing but the beginning. */
async function unread({ address }: TlsServer, from: string): Promise<Socket> {
  const to = { host: "127.0.0.1", port: address.port, localAddress: from };
  const socket = connect({ ...to, ca: bench.authority.cert });
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "secureConnect");
  socket.write("GET /metrics HTTP/1.1\r\nHost: berth\r\n\r\n");
  await once(socket, "readable");
  return socket;
}

async function isCut(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket.resume(), "close");
}

describe("connections", () => {
  setUp();

  it("of one address are bounded: at the bound the silent one that it has longest goes, and others are served", async () => {
    const server = await bench.serve({ connections: { inAll: 100, perPeer: 3 } });
    const its = [];
    for (let i = 0; i < 5; i++) its.push(await mute(server, "127.0.0.2"));
    await isCut(its[1] ?? assert.fail());
    assert.equal((await bench.get(server)).status, 200);
    assert.deepEqual(
      its.map(({ destroyed }) => destroyed),
      [true, true, false, false, false],
    );
  });

  it("of one address give way to a caller behind it, which strangers behind it would keep out", async () => {
    const server = await bench.serve({ connections: { inAll: 100, perPeer: 3 } });
    for (let i = 0; i < 3; i++) await mute(server, "127.0.0.1");
    const agent = bench.keepAlive();
    for (let i = 0; i < 3; i++) {
      assert.equal((await bench.get(server, { agent })).status, 200);
      await mute(server, "127.0.0.1");
    }
  });

  it("of one address are refused beyond the bound while it waits for an answer on all of them", async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    let asked = 0;
    const server = await bench.serve({
      connections: { inAll: 100, perPeer: 3 },
      app: (_request, response) => {
        if (++asked === 3) enter();
        void gate.then(() => response.end("done"));
      },
    });
    const asking = [0, 1, 2].map(() => bench.get(server));
    await entered;
    await isCut(await mute(server, "127.0.0.1"));
    release();
    for (const one of asking) assert.equal((await one).text, "done");
    await eventually("there is room again", async () => {
      const next = await mute(server, "127.0.0.1");
      const cut = isCut(next).then(() => undefined);
      return await Promise.race([cut, bench.clock.sleep(100).then(() => true as const)]);
    });
  });

  it("on which an answer is not taken go for one that comes", async () => {
    const server = await bench.serve({
      connections: { inAll: 3, perPeer: 3 },
      app: ({ url }, response) => {
        response.end(url === "/metrics" ? Buffer.alloc(16 * 1024 * 1024) : "ok");
      },
    });
    const crowd = [];
    for (const from of ["127.0.0.2", "127.0.0.2", "127.0.0.3"]) crowd.push(await unread(server, from));
    assert.equal((await bench.get(server)).text, "ok");
    await isCut(crowd[0] ?? assert.fail());
  });

  it("are bounded in all: the address with the most loses the one that was not used for longest", async () => {
    const server = await bench.serve({ connections: { inAll: 4, perPeer: 4 } });
    const crowd = [];
    for (let i = 0; i < 4; i++) crowd.push(await mute(server, "127.0.0.2"));
    assert.equal((await bench.get(server)).status, 200);
    await isCut(crowd[0] ?? assert.fail());
    assert.deepEqual(
      crowd.map(({ destroyed }) => destroyed),
      [true, false, false, false],
    );
  });

  it("at that bound one goes that never asked, though every address has but one", async () => {
    const server = await bench.serve({ connections: { inAll: 4, perPeer: 4 } });
    const agent = bench.keepAlive();
    assert.equal((await bench.get(server, { agent })).status, 200);
    const crowd = [];
    for (let i = 0; i < 3; i++) crowd.push(await mute(server, `127.0.0.${10 + i}`));
    crowd.push(await mute(server, "127.0.0.20"));
    await isCut(crowd[0] ?? assert.fail());
    assert.equal((await bench.get(server)).status, 200);
    await isCut(crowd[1] ?? assert.fail());
    assert.deepEqual(
      crowd.map(({ destroyed }) => destroyed),
      [true, true, false, false],
    );
    assert.equal((await bench.get(server, { agent })).status, 200);
  });

  it("at that bound one goes that waits for nothing, though the address with the most has none", async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    let asked = 0;
    const server = await bench.serve({
      connections: { inAll: 4, perPeer: 4 },
      app: ({ url }, response) => {
        if (url !== "/slow") {
          response.end("ok");
          return;
        }
        if (++asked === 3) enter();
        void gate.then(() => response.end("done"));
      },
    });
    const slow = [0, 1, 2].map(() => bench.get(server, { path: "/slow" }));
    await entered;
    const idle = await mute(server, "127.0.0.2");
    const next = await mute(server, "127.0.0.3");
    await isCut(idle);
    assert.equal(next.destroyed, false);
    release();
    for (const one of slow) assert.equal((await one).text, "done");
  });

  describe("where callers prove themselves", () => {
    const few = { inAll: 20, perPeer: 10, unproven: { inAll: 4, perPeer: 2 } };

    async function proving(host = "127.0.0.1") {
      const authority = await issueAuthority(bench.clock);
      const certificate = await issueClient(
        authority,
        { name: "kube-apiserver", organization: "berth.dev:reviewers" },
        bench.clock,
      );
      const server = await bench.serve({ host, clientAuthority: authority.cert, connections: few });
      const agents = Array.from({ length: 5 }, () => bench.keepAlive());
      const post = async (agent = bench.keepAlive()) =>
        (await bench.get(server, { method: "POST", certificate, agent })).status;
      return { server, agents, post };
    }

    it("share fewer places without a certificate, of one address and in all", async () => {
      const { server } = await proving();
      for (let i = 0; i < 3; i++) await mute(server, "127.0.0.2");
      const [first, second, third] = sockets;
      await isCut(first ?? assert.fail());
      for (let i = 0; i < 2; i++) await mute(server, "127.0.0.3");
      // one that is new takes the place of whoever has most, and has it longest
      await mute(server, "127.0.0.4");
      await isCut(second ?? assert.fail());
      // and its second one that of whoever has most then
      const last = await mute(server, "127.0.0.4");
      await isCut(sockets[3] ?? assert.fail());
      assert.deepEqual([third?.destroyed, last.destroyed], [false, false]);
    });

    it("give their places back, each its own, where two came from one port", async () => {
      const { server } = await proving("0.0.0.0");
      for (let n = 0; n < 4; n++) {
        const one = await mute(server, "127.0.0.2");
        const other = await mute(server, "127.0.0.2", { to: "127.0.0.3", as: one });
        await bench.clock.sleep(20);
        one.destroy();
        await bench.clock.sleep(20);
        other.destroy();
      }
      await bench.clock.sleep(20);
      const crowd: Socket[] = [];
      for (let n = 0; n < 4; n++) crowd.push(await mute(server, `127.0.0.${10 + n}`));
      const cut = async () => {
        await bench.clock.sleep(20);
        return crowd.map(({ destroyed }) => destroyed);
      };
      assert.deepEqual(await cut(), [false, false, false, false]);
      await mute(server, "127.0.0.20");
      await isCut(crowd[0] ?? assert.fail());
      assert.deepEqual(await cut(), [true, false, false, false]);
    });

    it("have room with one, however many strangers there are", async () => {
      const { server, agents, post } = await proving();
      for (let i = 0; i < 8; i++) await mute(server, `127.0.0.${10 + i}`);
      for (const agent of agents) assert.equal(await post(agent), 200);
      for (let i = 0; i < 8; i++) await mute(server, `127.0.0.${20 + i}`);
      // those that stand were not cut, and there is room for more
      for (const agent of agents) assert.equal(await post(agent), 200);
      assert.equal(await post(), 200);
    });
  });

  it("whose request is under way are not cut for others", async () => {
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    const { promise: entered, resolve: enter } = Promise.withResolvers<void>();
    const server = await bench.serve({
      connections: { inAll: 3, perPeer: 3 },
      app: (_request, response) => {
        enter();
        void gate.then(() => response.end("done"));
      },
    });
    const asking = bench.get(server);
    await entered;
    for (let i = 0; i < 2; i++) await mute(server, "127.0.0.1");
    await mute(server, "127.0.0.2");
    release();
    assert.equal((await asking).text, "done");
  });
});
