// SPDX-License-Identifier: Apache-2.0
// A webhook's port and clients from many addresses of both families, in a network namespace that has them on its loopback. Prints, for each
// scene, the clients whose connection was ended, in the order in which they came.
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import type { ConnectionLimits } from "../../system/connections.ts";
import { issueAuthority, issueClient, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { serveTls, type TlsServer } from "../../webhook/http/tls-server.ts";

/** Scene -> clients that were cut, as address#number. */
export type Cut = Readonly<Record<string, readonly string[]>>;

const LIMITS: ConnectionLimits = { inAll: 6, perPeer: 3 };

const clock = createClock();
const ca = await issueAuthority(clock);
const names = { dnsNames: [], addresses: ["::1"] };
const certificate = await issueServingCertificate(ca, names, clock);
const reviewer = { name: "kube-apiserver", organization: "berth.dev:reviewers" };
const proof = await issueClient(ca, reviewer, clock);

class Scene {
  readonly #server: TlsServer;
  readonly #clients: { readonly name: string; readonly socket: Socket }[] = [];

  private constructor(server: TlsServer) {
    this.#server = server;
  }

  static async open(connections: ConnectionLimits, clientAuthority?: string): Promise<Scene> {
    const asks = clientAuthority === undefined ? {} : { clientAuthority };
    // of both families, as the chart has it
    const where = { host: "::", port: 0, certificate, log: noopLogger, clock, connections, ...asks };
    return new Scene(await serveTls({ app: (_request, response) => response.end("ok"), ...where }));
  }

  /** Connections that say nothing, one after the other. */
  async come(...addresses: readonly string[]): Promise<void> {
    for (const from of addresses) {
      const socket = connectTcp(this.#to(from));
      this.#keep(from, socket);
      await once(socket, "connect");
    }
  }

  /** One that shows the API server's certificate. */
  async prove(from: string): Promise<void> {
    const socket = connect({ ...this.#to(from), ...proof, rejectUnauthorized: false });
    this.#keep(from, socket);
    await once(socket, "secureConnect");
    socket.write("POST / HTTP/1.1\r\nHost: berth\r\nContent-Length: 0\r\n\r\n");
    await once(socket, "data");
  }

  async end(): Promise<readonly string[]> {
    // what was ended is known once a further connection is there, and each of them is told at once
    await pause(200);
    const cut = this.#clients.filter(({ socket }) => socket.destroyed).map(({ name }) => name);
    for (const { socket } of this.#clients) socket.destroy();
    await this.#server.close();
    return cut;
  }

  #to(from: string) {
    const host = from.includes(":") ? "::1" : "127.0.0.1";
    return { host, port: this.#server.address.port, localAddress: from };
  }

  #keep(from: string, socket: Socket): void {
    const number = this.#clients.filter(({ name }) => name.startsWith(`${from}#`)).length + 1;
    this.#clients.push({ name: `${from}#${number}`, socket });
    socket.on("error", () => {});
    socket.resume();
  }
}

async function played(play: (scene: Scene) => Promise<void>, proven?: ConnectionLimits) {
  const scene = await Scene.open(proven ?? LIMITS, proven === undefined ? undefined : ca.cert);
  await play(scene);
  return await scene.end();
}

const cut: Cut = {
  "a network's addresses, one connection each": await played((scene) =>
    scene.come("fd00:1::1", "fd00:1::2", "fd00:1::3", "fd00:1::4", "fd00:1::5"),
  ),
  "a network's address with the most": await played((scene) =>
    scene.come("fd00:1::1", "fd00:1::2", "fd00:1::2", "fd00:1::3"),
  ),
  "another network": await played((scene) =>
    scene.come("fd00:1::1", "fd00:1::2", "fd00:1::3", "fd00:2::1", "fd00:2::2", "fd00:2::3"),
  ),
  "a network that comes when all places are taken": await played((scene) =>
    scene.come("fd00:1::1", "fd00:1::2", "fd00:1::3", "fd00:2::1", "fd00:2::2", "127.0.0.2", "fd00:3::1"),
  ),
  "an address of IPv4": await played((scene) =>
    scene.come("127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.2"),
  ),
  "both families": await played((scene) =>
    scene.come("127.0.0.2", "127.0.0.2", "127.0.0.2", "fd00:1::1", "fd00:1::2", "fd00:1::3", "fd00:2::1"),
  ),
  "strangers of the network of an API server": await played(
    async (scene) => {
      await scene.prove("fd00:1::1");
      await scene.come(
        "fd00:1::2",
        "fd00:1::3",
        "fd00:1::4",
        "fd00:1::5",
        "fd00:2::1",
        "fd00:2::2",
        "fd00:2::3",
      );
      await scene.prove("fd00:1::1");
      await scene.prove("fd00:1::1");
    },
    { inAll: 20, perPeer: 3, unproven: { inAll: 4, perPeer: 2 } },
  ),
  "strangers at the address of an API server": await played(
    async (scene) => {
      await scene.prove("fd00:1::1");
      await scene.come("fd00:1::1", "fd00:1::1", "fd00:1::1", "fd00:1::1");
      await scene.prove("fd00:1::1");
    },
    { inAll: 20, perPeer: 3, unproven: { inAll: 4, perPeer: 2 } },
  ),
};
console.log(JSON.stringify(cut));
