// SPDX-License-Identifier: Apache-2.0
import type { Socket } from "node:net";

/** Connections that wait for something, by peer: whose turn it was goes to the end. */
export class WaitingLine {
  readonly #peers = new Map<string, Socket[]>();

  /** Of peers. */
  get size(): number {
    return this.#peers.size;
  }

  get first(): string | undefined {
    const [peer] = this.#peers.keys();
    return peer;
  }

  has(peer: string): boolean {
    return this.#peers.has(peer);
  }

  add(peer: string, ...sockets: readonly Socket[]): void {
    const its = this.#peers.get(peer);
    if (its === undefined) this.#peers.set(peer, [...sockets]);
    else its.push(...sockets);
  }

  take(peer: string): Socket | undefined {
    const [socket, ...others] = this.#peers.get(peer) ?? [];
    this.#peers.delete(peer);
    if (others.length > 0) this.#peers.set(peer, others);
    return socket;
  }

  /** All of the peer that wait in another line. */
  takeOver(peer: string, from: WaitingLine): void {
    const its = from.#peers.get(peer);
    from.#peers.delete(peer);
    if (its !== undefined) this.add(peer, ...its);
  }
}
