// SPDX-License-Identifier: Apache-2.0
import { createServer, type Server, type Socket } from "node:net";

/** Whoever listens in the place of an agent, and what it does to those who come. One at a time. */
export class AgentStandIn {
  readonly #sockets: Socket[] = [];
  #server: Server | undefined;

  /** Undefined while nobody listens. */
  get server(): Server | undefined {
    return this.#server;
  }

  async listen(path: string, act: (socket: Socket) => void): Promise<void> {
    const server = createServer((socket) => {
      this.#sockets.push(socket);
      socket.on("error", () => {});
      act(socket);
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(path, resolve));
  }

  /** Listens no more; connections that stand are waited for. */
  async close(): Promise<void> {
    const server = this.#server;
    await new Promise((resolve) => (server === undefined ? resolve(0) : server.close(resolve)));
    this.#server = undefined;
  }

  /** The same, and hangs up on everybody. */
  async end(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.close();
  }
}
