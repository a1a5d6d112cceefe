// SPDX-License-Identifier: Apache-2.0
import { connect, createServer, type Server, type Socket } from "node:net";
import { listening, portOf } from "./ports.ts";

/** What a Service is to the API server: each connection goes to the next of the ports that accepts it. */
export class Front {
  readonly #server: Server;
  readonly #ports: Set<number>;
  readonly #sockets = new Set<Socket>();
  #next = 0;

  private constructor(ports: readonly number[]) {
    this.#ports = new Set(ports);
    this.#server = createServer((client) => this.#reach(client, this.#ports.size));
  }

  static async start(ports: readonly number[]): Promise<Front> {
    const front = new Front(ports);
    await listening(front.#server);
    return front;
  }

  get port(): number {
    return portOf(this.#server);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Connections that stand stay. */
  leave(port: number): void {
    this.#ports.delete(port);
  }

  join(port: number): void {
    this.#ports.add(port);
  }

  #reach(client: Socket, tries: number): void {
    this.#keep(client);
    if (tries <= 0 || this.#ports.size === 0) {
      client.resetAndDestroy();
      return;
    }
    const server = connect([...this.#ports][this.#next++ % this.#ports.size] ?? 0, "127.0.0.1");
    const again = () => this.#reach(client, tries - 1);
    server.once("error", again);
    server.once("connect", () => {
      server.removeListener("error", again);
      this.#keep(server);
      client.pipe(server).pipe(client);
      client.once("close", () => server.destroy());
      server.once("close", () => client.destroy());
    });
  }

  #keep(socket: Socket): void {
    if (this.#sockets.has(socket)) return;
    this.#sockets.add(socket);
    // or the rest of a message waits 40 ms for the acknowledgement of its beginning
    socket.setNoDelay(true);
    socket.on("error", () => {}); // the other end is told by close
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
