// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { listening, portOf } from "../api/ports.ts";

/** What does not come through, of the connections that there are. */
export type Loss = "answers" | "requests" | "nothing";

/** A piece of network before a member of etcd, in which one direction can be lost. */
export class OneWayProxy {
  readonly #server: Server;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  /** Counts for connections that are there and new ones. */
  loses: Loss = "nothing";

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(targetUrl: string): Promise<OneWayProxy> {
    const proxy = new OneWayProxy(Number(new URL(targetUrl).port));
    await listening(proxy.#server);
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${portOf(this.#server)}`;
  }

  /** Every connection breaks; new ones lose nothing. */
  cut(): void {
    this.loses = "nothing";
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cut();
    await closed;
  }

  #accept(client: Socket): void {
    const server = connect(this.#target, "127.0.0.1");
    this.#join(client, server, "requests");
    this.#join(server, client, "answers");
  }

  #join(from: Socket, to: Socket, carries: Loss): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on("data", (chunk) => {
      if (this.loses !== carries) to.write(chunk);
    });
    from.on("error", () => {}); // the other end is told by close
    from.on("close", () => {
      this.#sockets.delete(from);
      to.destroy();
    });
  }
}
