// SPDX-License-Identifier: Apache-2.0
import { connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { listening, portOf } from "./ports.ts";

/** Between two looks of the kubelet; a Service hears of it a moment later. */
const LOOK_MS = 100;

/** Whether whoever listens on that port is to get new connections; undefined: it gave no answer in time. */
export type Look = (port: number) => Promise<boolean | undefined>;

/**
 * What a Service is to the API server: a new connection goes to the next of the ports that are ready; connections that
 * stand stay with whom they have. Readiness is asked for again and again, as kubelet does.
 */
export class TestService {
  readonly #server: Server;
  readonly #ports: readonly number[];
  readonly #ready = new Set<number>();
  readonly #sockets = new Set<Socket>();
  readonly #stop = new AbortController();
  #looking: Promise<void> = Promise.resolve();
  #next = 0;

  private constructor(ports: readonly number[]) {
    this.#ports = ports;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async start(ports: readonly number[], look: Look): Promise<TestService> {
    const service = new TestService(ports);
    await listening(service.#server, "localhost");
    service.#looking = Promise.all(ports.map((port) => service.#follow(port, look))).then(() => undefined);
    return service;
  }

  get port(): number {
    return portOf(this.#server);
  }

  /** Whether whoever listens there gets new connections. */
  has(port: number): boolean {
    return this.#ready.has(port);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all([closed, this.#looking]);
  }

  async #follow(port: number, look: Look): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const ready = await look(port);
      // one answer that is late is not yet a failure to kubelet
      if (ready === true) this.#ready.add(port);
      else if (ready === false) this.#ready.delete(port);
      await pause(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }

  #accept(client: Socket): void {
    this.#keep(client);
    const ready = this.#ports.filter((port) => this.#ready.has(port));
    const port = ready[this.#next++ % Math.max(ready.length, 1)];
    if (port === undefined) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(port, "127.0.0.1");
    this.#keep(server);
    client.pipe(server).pipe(client);
    client.once("close", () => server.destroy());
    server.once("close", () => client.destroy());
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {}); // the other end is told by close
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
