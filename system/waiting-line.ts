// SPDX-License-Identifier: Apache-2.0
import type { Socket } from "node:net";

/** Connections that wait for something, by peer: whose turn it was goes to the end. One that closes waits no more. */
export class WaitingLine {
  /** By peer, each in the order in which they came. */
  readonly #peers = new Map<string, Set<Socket>>();

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
    const its = this.#peers.get(peer) ?? new Set();
    this.#peers.set(peer, its);
    for (const socket of sockets) {
      its.add(socket);
      // it has left every bound by then: nothing of it may stay for as long as a line rests
      socket.once("close", () => this.#remove(peer, socket));
    }
  }

  take(peer: string): Socket | undefined {
    const its = this.#peers.get(peer);
    const [socket] = its ?? [];
    this.#peers.delete(peer);
    if (its === undefined || socket === undefined) return undefined;
    its.delete(socket);
    if (its.size > 0) this.#peers.set(peer, its);
    return socket;
  }

  /** All of the peer that wait in another line. */
  takeOver(peer: string, from: WaitingLine): void {
    const its = from.#peers.get(peer);
    from.#peers.delete(peer);
    if (its !== undefined) this.add(peer, ...its);
  }

  #remove(peer: string, socket: Socket): void {
    const its = this.#peers.get(peer);
    if (its?.delete(socket) === true && its.size === 0) this.#peers.delete(peer);
  }
}
