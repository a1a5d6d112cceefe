// SPDX-License-Identifier: Apache-2.0

/** Of the processor, of one handshake: an honest one takes a third of it, with a chain of three certificates. */
const COSTLY_MS = 3;
/** The last of them are remembered, each for so long. */
const MOST = 4_096;
const REMEMBERED_MS = 600_000;

/** Addresses of which a handshake was costly. */
export class CostlyPeers {
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
    if (this.#until.size > MOST && oldest !== undefined) this.#until.delete(oldest);
    return isNew;
  }
}
