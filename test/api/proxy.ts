// SPDX-License-Identifier: Apache-2.0
import { connect, createServer, type Server, type Socket } from "node:net";
import { listening, portOf } from "./ports.ts";

/** A piece of network between a client and the API server, which can fail. */
export class TcpProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #refusing = false;
  /** Connections that came so far. */
  connections = 0;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  /** In front of that port of 127.0.0.1; `port` is its own. */
  static async start(target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await listening(proxy.#server);
    return proxy;
  }

  get port(): number {
    return portOf(this.#server);
  }

  /** Every connection breaks; new ones are as before. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** New connections break at once. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing;
  }

  /** Nothing comes through what is connected now, ever, and nobody is told; new connections are as before. */
  silence(): void {
    for (const socket of this.#sockets) socket.pause();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.cut();
    await closed;
  }

  #accept(client: Socket): void {
    this.connections++;
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(this.#target, "127.0.0.1");
    this.#join(client, server);
    this.#join(server, client);
  }

  #join(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on("data", (chunk) => to.write(chunk));
    from.on("error", () => {}); // the other end is told by close
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
