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
 * One connection over TLS that is kept open. It does as little as it can, because it shares the processors with what
 * is measured: no parser of HTTP but the length of the answer, and a look for the word that allows.
 */
export class ReviewLine {
  readonly #socket: TLSSocket;
  #received = "";
  #waiting: { resolve: () => void; reject: (error: Error) => void } | undefined;

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#take(text));
    socket.on("error", (error) => this.#settle(error));
    socket.on("close", () => this.#settle(new Error("the webhook hung up")));
  }

  /** The certificate must be signed by the endpoint's authority. */
  static open(endpoint: Endpoint): Promise<ReviewLine> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: "127.0.0.1", ...endpoint }, () => {
        socket.removeListener("error", reject);
        resolve(new ReviewLine(socket));
      });
      socket.once("error", reject);
    });
  }

  /** Resolves when the whole answer is there; rejects when it does not allow the pod. One request at a time. */
  ask(request: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
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
