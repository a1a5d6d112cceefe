// SPDX-License-Identifier: Apache-2.0
import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Clock } from "../../allocator/base/ports.ts";

/** From the first byte of a request on. Whoever means it sends all of its headers at once. */
export const HEADERS_MS = 10_000;
/** How often it is looked at. */
const LOOK_MS = 1_000;

interface Watched {
  /** Bytes that had come when the last request was answered. */
  answered: number;
  /** When bytes of the next one were first seen. */
  since?: number;
  /** Requests without an answer, whose headers are there. */
  requests: number;
}

/**
 * Ends connections on which a request began whose headers do not end. Node's own bound counts the silence of a connection that was
 * opened and not used yet as well, which an API server may keep for 90 s; here the time runs from the first byte.
 */
export class HeaderWatch {
  readonly #clock: Clock;
  readonly #watched = new Map<Socket, Watched>();
  #looking: AbortController | undefined;

  constructor(server: HttpServer | HttpsServer, clock: Clock) {
    this.#clock = clock;
    const opened = server instanceof TlsServer ? "secureConnection" : "connection";
    server.on(opened, (socket: Socket) => this.#watch(socket));
    server.on("request", (request: IncomingMessage, response: ServerResponse) =>
      this.#enter(request, response),
    );
  }

  #watch(socket: Socket): void {
    this.#watched.set(socket, { answered: socket.bytesRead, requests: 0 });
    socket.once("close", () => {
      this.#watched.delete(socket);
      if (this.#watched.size === 0) this.#looking?.abort("nothing is left"); // a reason of one's own costs no stack trace
    });
    if (this.#looking === undefined) void this.#look();
  }

  #enter({ socket }: IncomingMessage, response: ServerResponse): void {
    const watched = this.#watched.get(socket);
    if (watched === undefined) return;
    watched.requests++;
    delete watched.since;
    response.once("close", () => {
      watched.requests--;
      watched.answered = socket.bytesRead;
    });
  }

  async #look(): Promise<void> {
    const looking = new AbortController();
    this.#looking = looking;
    while (!looking.signal.aborted) {
      await this.#clock.sleep(LOOK_MS, looking.signal);
      const now = this.#clock.monotonic();
      for (const [socket, watched] of this.#watched) {
        if (watched.requests > 0 || socket.bytesRead === watched.answered) continue;
        watched.since ??= now;
        if (now - watched.since >= HEADERS_MS) socket.destroy();
      }
    }
    this.#looking = undefined;
    if (this.#watched.size > 0) void this.#look();
  }
}
