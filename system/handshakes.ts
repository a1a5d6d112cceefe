// SPDX-License-Identifier: Apache-2.0
import type { Socket } from "node:net";

/** As Go's: an API server has its own limit of 10 s for a handshake (net/http, TLSHandshakeTimeout). */
export const HANDSHAKE_MS = 10_000;
/**
 * From one handshake of a stranger to the next, which is some 0.6 ms of the event loop: four fifths of it are left for the reviews that
 * are under way, and what a crowd sends once it is in comes over a longer time.
 */
const REST_MS = 3;
/** With more addresses waiting there is no rest: probes have 3 s, and would wait behind all of them. */
const MOST_RESTED = 256;

/**
 * TLS handshakes that have not begun: one begins in a turn of the event loop, so that what came before does not wait behind a crowd
 * that comes now. Peers take turns. Who proved himself before goes first, at once.
 */
export class Handshakes {
  readonly #begin: (socket: Socket) => void;
  readonly #proven: ReadonlySet<string>;
  /** By peer. */
  readonly #waiting = new Map<string, Socket[]>();
  #turn: NodeJS.Immediate | undefined;
  #isResting = false;

  constructor(begin: (socket: Socket) => void, proven: ReadonlySet<string>) {
    this.#begin = begin;
    this.#proven = proven;
  }

  /** Begins when the client has spoken and it is his turn: what is begun before is done when he does, with all others that speak then. */
  expect(peer: string, socket: Socket): void {
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
    socket.once("readable", () => {
      const waiting = this.#waiting.get(peer);
      if (waiting === undefined) this.#waiting.set(peer, [socket]);
      else waiting.push(socket);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#next() !== undefined) this.#turn ??= setImmediate(() => this.#beginOne());
  }

  #beginOne(): void {
    this.#turn = undefined;
    for (let peer = this.#next(); peer !== undefined; peer = this.#next()) {
      const [socket, ...others] = this.#waiting.get(peer) ?? [];
      this.#waiting.delete(peer);
      if (others.length > 0) this.#waiting.set(peer, others); // at the end of the line
      if (socket === undefined || socket.destroyed) continue;
      if (!this.#proven.has(peer) && this.#waiting.size < MOST_RESTED) this.#rest();
      socket.setTimeout(0);
      this.#begin(socket);
      break;
    }
    this.#schedule();
  }

  #next(): string | undefined {
    for (const address of this.#proven) if (this.#waiting.has(address)) return address;
    if (this.#isResting) return undefined;
    const [first] = this.#waiting.keys();
    return first;
  }

  #rest(): void {
    this.#isResting = true;
    setTimeout(() => {
      this.#isResting = false;
      this.#schedule();
    }, REST_MS).unref();
  }
}
