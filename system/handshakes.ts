// SPDX-License-Identifier: Apache-2.0
import type { Socket } from "node:net";
import { WaitingLine } from "./waiting-line.ts";

/** As Go's: an API server has its own limit of 10 s for a handshake (net/http, TLSHandshakeTimeout). */
export const HANDSHAKE_MS = 10_000;
/**
 * From one handshake of a stranger to the next, which is some 0.6 ms of the event loop: four fifths of it are left for the reviews that
 * are under way, and what a crowd sends once it is in comes over a longer time.
 */
const REST_MS = 3;
/** Times what one took, if that is longer: for the same four fifths. */
const RESTS = 4;
/** With more addresses waiting there is no rest: probes have 3 s, and would wait behind all of them. */
const MOST_RESTED = 256;
/** Times what one took of an address whose handshakes are costly: so few that one review in a hundred meets none of them. */
const COSTLY_RESTS = 200;
/** From one of those to the next at the least: what it costs is known when the client has sent its certificates. */
const COSTLY_REST_MS = 1_000;

/** Of the processor, of one handshake: an honest one takes a third of it, with a chain of three certificates. */
const COSTLY_MS = 3;
/** The last addresses of such are remembered, each for so long. */
const MOST_COSTLY = 4_096;
const REMEMBERED_MS = 600_000;

/**
 * TLS handshakes that have not begun: one begins in a turn of the event loop, so that what came before does not wait behind a crowd
 * that comes now. Peers take turns. Who proved himself before goes first, at once. Those whose handshakes are costly go last, and rest
 * together, for much longer; so does not who proved himself, behind whose address others may be.
 */
export class Handshakes {
  readonly #begin: (socket: Socket, peer: string) => void;
  readonly #proven: ReadonlySet<string>;
  readonly #line = new WaitingLine();
  readonly #costlyLine = new WaitingLine();
  readonly #costly = new CostlyPeers();
  #scheduled: NodeJS.Immediate | undefined;
  readonly #rest = new Pause(() => this.#schedule());
  readonly #costlyRest = new Pause(() => this.#schedule());
  readonly #provenRest = new Pause(() => this.#schedule());

  constructor(begin: (socket: Socket, peer: string) => void, proven: ReadonlySet<string>) {
    this.#begin = begin;
    this.#proven = proven;
  }

  /** Begins when the client has spoken and it is his turn: what is begun before is done when he does, with all others that speak then. */
  expect(peer: string, socket: Socket): void {
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
    socket.once("readable", () => {
      this.#lineOf(peer).add(peer, socket);
      this.#schedule();
    });
  }

  /** So much of the processor's time a part of a handshake took, and so much all of it until now. */
  took(peer: string, partMs: number, wholeMs: number): void {
    if (this.#costly.judge(peer, wholeMs)) this.#costlyLine.takeOver(peer, this.#line);
    if (!this.#costly.has(peer)) this.#rest.last(RESTS * partMs);
    else if (this.#proven.has(peer)) this.#provenRest.last(RESTS * partMs);
    else this.#costlyRest.last(COSTLY_RESTS * partMs);
  }

  #lineOf(peer: string): WaitingLine {
    return this.#costly.has(peer) ? this.#costlyLine : this.#line;
  }

  #schedule(): void {
    if (this.#next() !== undefined) this.#scheduled ??= setImmediate(() => this.#beginOne());
  }

  #beginOne(): void {
    this.#scheduled = undefined;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { line, peer } = next;
      const socket = line.take(peer);
      if (socket === undefined || socket.destroyed) continue;
      if (!this.#proven.has(peer) && this.#line.size < MOST_RESTED) this.#rest.last(REST_MS);
      if (!this.#proven.has(peer) && line === this.#costlyLine) this.#costlyRest.last(COSTLY_REST_MS);
      socket.setTimeout(0);
      this.#begin(socket, peer);
      break;
    }
    this.#schedule();
  }

  #next(): { readonly line: WaitingLine; readonly peer: string } | undefined {
    for (const peer of this.#proven) {
      if (this.#line.has(peer)) return { line: this.#line, peer };
      if (this.#costlyLine.has(peer) && !this.#provenRest.isOn) return { line: this.#costlyLine, peer };
    }
    if (this.#rest.isOn) return undefined;
    const peer = this.#line.first;
    if (peer !== undefined) return { line: this.#line, peer };
    const last = this.#costlyRest.isOn ? undefined : this.#costlyLine.first;
    return last === undefined ? undefined : { line: this.#costlyLine, peer: last };
  }
}

/** Addresses of which a handshake was costly. */
class CostlyPeers {
  /** Until when, in that order. */
  readonly #until = new Map<string, number>();

  has(peer: string): boolean {
    return (this.#until.get(peer) ?? 0) > performance.now();
  }

  /** Whether the peer is one from now on, and was not before. */
  judge(peer: string, handshakeMs: number): boolean {
    if (handshakeMs < COSTLY_MS) return false;
    const isNew = !this.has(peer);
    this.#until.delete(peer);
    this.#until.set(peer, performance.now() + REMEMBERED_MS);
    const [oldest] = this.#until.keys();
    if (this.#until.size > MOST_COSTLY && oldest !== undefined) this.#until.delete(oldest);
    return isNew;
  }
}

/** A time in which something is not done; a longer one replaces what is left of it. */
class Pause {
  readonly #onEnd: () => void;
  #timer: NodeJS.Timeout | undefined;
  #until = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  get isOn(): boolean {
    return this.#timer !== undefined;
  }

  last(ms: number): void {
    const until = performance.now() + ms;
    if (this.isOn && until <= this.#until) return;
    this.#until = until;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onEnd();
    }, ms).unref();
  }
}
