// SPDX-License-Identifier: Apache-2.0
import type { Server as HttpServer, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import type { Bound } from "../review/intake.ts";

/** An API server opens one for each review under way and keeps it; it changes 200 objects at a time unless told otherwise. */
export const CONNECTION_LIMITS: Bound = { inAll: 2_048, perPeer: 512 };
/** Of those that brought no certificate to a server that asks for one: probes, scrapes, and strangers. */
export const UNPROVEN_LIMITS: Bound = { inAll: 512, perPeer: 64 };
/** Addresses of which somebody proved himself are remembered, the last of them. */
const MOST_PROVEN_PEERS = 64;
/** As Go's: an API server has its own limit of 10 s for a handshake (net/http, TLSHandshakeTimeout). */
export const HANDSHAKE_MS = 10_000;
/** Handshakes that begin in one turn of the event loop: what came before is not to wait behind a crowd that comes now. */
const HANDSHAKES_A_TURN = 1;

/** Fewer than any that has one. */
const NOTHING = -1;

interface Connection {
  readonly key: unknown;
  readonly socket: Socket;
  readonly peer: string;
  /** Requests without an answer. */
  answers: number;
  /** Whether its certificate may change something. */
  isProven: boolean;
}

export interface ConnectionLimits extends Bound {
  /** Where callers prove themselves: of those that did not, or not yet. */
  readonly unproven?: Bound;
}

type Server = HttpServer | HttpsServer;
type Begin = (socket: Socket) => void;

/**
 * What is under way: connections from their first byte on, handshakes too, and requests without an answer. Connections are
 * bounded for each peer and in all; at the latter bound the peer with the most of them loses the one that was not used for
 * longest, so that one peer cannot keep the others out. Peers take turns in beginning. Where callers prove themselves, those who have not share
 * fewer places, and an address of which somebody has comes before all others.
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #provenPeers = new Set<string>();
  #unproven = 0;
  /** By peer, each in the order in which they were last used. */
  readonly #peers = new Map<string, Set<Connection>>();
  /** By what `keyOf` makes of a socket. */
  readonly #open = new Map<unknown, Connection>();
  readonly #waiting = new Map<string, Socket[]>(); // peer -> its connections whose handshake has not begun
  readonly #answers = new Set<ServerResponse>();
  readonly #begin: Begin;
  readonly #isSecure: boolean;
  #turn: NodeJS.Immediate | undefined;
  #draining = false;

  constructor(server: Server, limits: ConnectionLimits = CONNECTION_LIMITS) {
    this.#server = server;
    this.#limits = limits;
    this.#isSecure = server instanceof TlsServer;
    // the listeners that begin the handshake; from here on they are called when it is a connection's turn
    const listeners = server.listeners("connection");
    server.removeAllListeners("connection");
    this.#begin = (socket) => {
      for (const listener of listeners) listener.call(server, socket);
    };
    server.on("connection", (socket: Socket) => this.#arrive(socket));
  }

  /** Its certificate may change something. */
  prove(socket: Socket): void {
    const connection = this.#open.get(keyOf(socket));
    if (connection === undefined || connection.isProven) return;
    connection.isProven = true;
    this.#unproven--;
    this.#provenPeers.delete(connection.peer);
    this.#provenPeers.add(connection.peer);
    const [oldest] = this.#provenPeers;
    if (this.#provenPeers.size > MOST_PROVEN_PEERS && oldest !== undefined) this.#provenPeers.delete(oldest);
  }

  get size(): number {
    return this.#open.size;
  }

  enter(response: ServerResponse): void {
    this.#answers.add(response);
    const connection = this.#open.get(keyOf(response.req.socket));
    if (connection !== undefined) this.#use(connection, 1);
    if (this.#draining) response.setHeader("Connection", "close");
    response.once("close", () => {
      this.#answers.delete(response);
      if (connection !== undefined) this.#use(connection, -1);
      // an answer whose headers were out before the drain began leaves its connection open
      if (this.#draining) this.#server.closeIdleConnections();
    });
  }

  async drain(clock: Clock, drainMs: number, log: Logger): Promise<void> {
    this.#draining = true;
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const answer of this.#answers) {
      if (!answer.headersSent) answer.setHeader("Connection", "close");
    }
    this.#server.closeIdleConnections();
    const patience = new AbortController();
    await Promise.race([closed, clock.sleep(drainMs, patience.signal)]);
    patience.abort();
    if (this.#open.size > 0) {
      log.warn("connections cut off", { connections: this.#open.size, answers: this.#answers.size });
    }
    for (const { socket } of this.#open.values()) socket.destroy();
    await closed;
  }

  #arrive(socket: Socket): void {
    const peer = socket.remoteAddress ?? "local";
    const its = this.#peers.get(peer) ?? new Set();
    if (!this.#hasRoom(peer, its)) {
      socket.destroy();
      return;
    }
    const key = keyOf(socket);
    const connection: Connection = { key, socket, peer, answers: 0, isProven: false };
    this.#unproven++;
    this.#peers.set(peer, its.add(connection));
    this.#open.set(key, connection);
    socket.once("close", () => this.#leave(connection));
    // until its handshake begins nobody else listens
    socket.on("error", () => socket.destroy());
    if (!this.#isSecure) {
      this.#begin(socket);
      return;
    }
    // what is begun before the client has spoken is done when it does, with all others that speak then
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
    socket.once("readable", () => this.#enqueue(peer, socket));
  }

  #enqueue(peer: string, socket: Socket): void {
    const waiting = this.#waiting.get(peer) ?? [];
    waiting.push(socket);
    this.#waiting.set(peer, waiting);
    this.#turn ??= setImmediate(() => this.#beginSome());
  }

  /** Nothing of TLS was done for it yet. */
  #hasRoom(peer: string, its: ReadonlySet<Connection>): boolean {
    const { inAll, perPeer, unproven } = this.#limits;
    if (its.size >= perPeer) return false;
    const isProven = this.#provenPeers.has(peer);
    // whoever proved himself here will do it again, and whoever is new may be about to: he has the place of any stranger
    const has = isProven || (unproven !== undefined && its.size === 0) ? NOTHING : its.size;
    if (unproven !== undefined && !isProven) {
      if (its.size >= unproven.perPeer) return false;
      if (this.#unproven >= unproven.inAll && !this.#displace(has)) return false;
    }
    return this.#open.size < inAll || this.#displace(has);
  }

  /** One of each peer, and those that have more go to the end of the line. */
  #beginSome(): void {
    this.#turn = undefined;
    for (let begun = 0; begun < HANDSHAKES_A_TURN && this.#waiting.size > 0; ) {
      const [peer, sockets] = this.#next();
      this.#waiting.delete(peer);
      const socket = sockets.shift();
      if (sockets.length > 0) this.#waiting.set(peer, sockets);
      if (socket === undefined || socket.destroyed) continue;
      socket.setTimeout(0);
      this.#begin(socket);
      begun++;
    }
    if (this.#waiting.size > 0) this.#turn = setImmediate(() => this.#beginSome());
  }

  #next(): [string, Socket[]] {
    for (const peer of this.#provenPeers) {
      const sockets = this.#waiting.get(peer);
      if (sockets !== undefined) return [peer, sockets];
    }
    const [first = ["", []]] = this.#waiting;
    return first;
  }

  /** Whether a peer with more connections than the one that comes lost one that waits for nothing. */
  #displace(has: number): boolean {
    let most: ReadonlySet<Connection> = new Set();
    for (const [peer, connections] of this.#peers) {
      if (connections.size > most.size && !this.#provenPeers.has(peer)) most = connections;
    }
    if (most.size <= has + 1) return false;
    for (const connection of most) {
      if (connection.answers > 0) continue;
      this.#leave(connection);
      connection.socket.destroy();
      return true;
    }
    return false;
  }

  #use(connection: Connection, answers: number): void {
    connection.answers += answers;
    const its = this.#peers.get(connection.peer);
    if (its?.delete(connection)) its.add(connection);
  }

  #leave(connection: Connection): void {
    if (this.#open.get(connection.key) === connection) {
      this.#open.delete(connection.key);
      if (!connection.isProven) this.#unproven--;
    }
    const its = this.#peers.get(connection.peer);
    if (its?.delete(connection) && its.size === 0) this.#peers.delete(connection.peer);
  }
}

/** The same for a connection and for what TLS makes of it; a unix socket has no port, and no TLS. */
function keyOf(socket: Socket): unknown {
  const { remoteAddress, remotePort } = socket;
  return remotePort === undefined ? socket : `${remoteAddress}|${remotePort}`;
}
