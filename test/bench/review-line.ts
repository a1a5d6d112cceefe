// SPDX-License-Identifier: Apache-2.0
import { connect, type TLSSocket } from "node:tls";
import type { Endpoint } from "./running-stack.ts";

/** The bytes of one POST, made before the clock runs. */
export function reviewRequest(review: object): Buffer {
  const body = JSON.stringify(review);
  const head = [
    "POST /mutate/pods?timeout=10s HTTP/1.1",
    "Host: localhost",
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}

/**
 * One connection over TLS that is kept open, and made anew when the webhook ended it between two reviews, as an API server
 * does. It does as little as it can, because it shares the processors with what is measured: no parser of HTTP but the
 * length of the answer, and a look for the word that allows.
 */
export class ReviewLine {
  readonly #endpoint: Endpoint;
  #socket: TLSSocket;
  #received = "";
  #waiting: { resolve: () => void; reject: (error: Error) => void } | undefined;

  private constructor(endpoint: Endpoint, socket: TLSSocket) {
    this.#endpoint = endpoint;
    this.#socket = this.#listen(socket);
  }

  /** The certificate must be signed by the endpoint's authority. */
  static async open(endpoint: Endpoint): Promise<ReviewLine> {
    return new ReviewLine(endpoint, await connected(endpoint));
  }

  /** Resolves when the whole answer is there; rejects when it does not allow the pod. One request at a time. */
  async ask(request: Buffer): Promise<void> {
    const isKept = !this.#socket.destroyed;
    if (isKept && (await this.#send(request)) === "answered") return;
    // whoever ended it while nothing was asked, or as this was asked, has not read the request
    this.#socket = this.#listen(await connected(this.#endpoint));
    if ((await this.#send(request)) === "hung up") throw new Error("the webhook hung up");
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  async #send(request: Buffer): Promise<"answered" | "hung up"> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#waiting = { resolve, reject };
        this.#socket.write(request);
      });
      return "answered";
    } catch (error) {
      if (error !== HUNG_UP) throw error;
      return "hung up";
    }
  }

  #listen(socket: TLSSocket): TLSSocket {
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#take(text));
    socket.on("error", () => {}); // `close` comes after it
    socket.on("close", () => this.#settle(this.#received === "" ? HUNG_UP : new Error("half an answer")));
    return socket;
  }

  #take(text: string): void {
    this.#received += text;
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(this.#received.slice(0, end))?.[1]);
    if (this.#received.length < end + 4 + length) return;
    const answer = this.#received;
    this.#received = "";
    this.#settle(answer.includes('"allowed":true') ? undefined : new Error(`the pod was refused: ${answer}`));
  }

  #settle(error: Error | undefined): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (error === undefined) waiting?.resolve();
    else waiting?.reject(error);
  }
}

/** The connection was ended, and nothing had been answered. */
const HUNG_UP = new Error("the webhook hung up");

function connected(endpoint: Endpoint): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", ...endpoint }, () => {
      socket.removeListener("error", reject);
      resolve(socket);
    });
    socket.once("error", reject);
  });
}
