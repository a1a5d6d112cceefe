// SPDX-License-Identifier: Apache-2.0
import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Clock } from "../../allocator/base/ports.ts";

/** From the first byte of a request on. Whoever means it sends all of its headers at once. */
export const HEADERS_MS = 10_000;
/** From when an answer is written on. Whoever wants it takes it as fast as it comes. */
export const TAKE_MS = 10_000;
/** How often they are looked at. */
const LOOK_MS = 1_000;

interface Watched {
  /** Bytes that had come when the last request was answered. */
  answered: number;
  /** When bytes of the next one, or an answer that is not taken, were first seen. */
  since?: number;
  /** Answers that are not out, of requests whose headers are there. */
  readonly answers: Set<ServerResponse>;
}

/**
 * Ends connections on which a request began whose headers do not end, or whose client does not take an answer that is written: its
 * bytes are kept for as long as he likes. Node's own bound of headers counts the silence of a connection that was opened and not used
 * yet as well, which an API server may keep for 90 s; here the time runs from the first byte. Of answers Node has none but one of silence, and
 * whoever takes a byte now and then is not silent.
 */
export class SlowClients {
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
    this.#watched.set(socket, { answered: socket.bytesRead, answers: new Set() });
    socket.once("close", () => {
      this.#watched.delete(socket);
      if (this.#watched.size === 0) this.#looking?.abort("nothing is left"); // a reason of one's own costs no stack trace
    });
    if (this.#looking === undefined) void this.#look();
  }

  #enter({ socket }: IncomingMessage, response: ServerResponse): void {
    const watched = this.#watched.get(socket);
    if (watched === undefined) return;
    watched.answers.add(response);
    delete watched.since;
    response.once("close", () => {
      watched.answers.delete(response);
      watched.answered = socket.bytesRead;
      delete watched.since;
    });
  }

  async #look(): Promise<void> {
    const looking = new AbortController();
    this.#looking = looking;
    while (!looking.signal.aborted) {
      await this.#clock.sleep(LOOK_MS, looking.signal);
      const now = this.#clock.monotonic();
      for (const [socket, watched] of this.#watched) {
        const limitMs = timeLimitOf(watched, socket);
        if (limitMs === undefined) continue;
        watched.since ??= now;
        if (now - watched.since >= limitMs) socket.destroy();
      }
    }
    this.#looking = undefined;
    if (this.#watched.size > 0) void this.#look();
  }
}

/** How long the client has for what he does now; undefined: he waits, or nothing has begun. */
function timeLimitOf({ answers, answered }: Watched, socket: Socket): number | undefined {
  if (answers.size > 0) return [...answers].some((answer) => answer.writableEnded) ? TAKE_MS : undefined;
  return socket.bytesRead === answered ? undefined : HEADERS_MS;
}
