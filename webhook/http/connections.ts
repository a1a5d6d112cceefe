// SPDX-License-Identifier: Apache-2.0
import type { Server as HttpServer, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import type { Bound } from "../review/intake.ts";

/** An API server opens one for each review under way and keeps it; it changes 200 objects at a time unless told otherwise. */
export const CONNECTION_LIMITS: Bound = { inAll: 2_048, perPeer: 512 };
/** Handshakes that begin in one turn of the event loop: what came before is not to wait behind a crowd that comes now. */
const HANDSHAKES_A_TURN = 4;

interface Connection {
  readonly key: unknown;
  readonly socket: Socket;
  readonly peer: string;
  /** Requests without an answer. */
  answers: number;
}

type Server = HttpServer | HttpsServer;
type Begin = (socket: Socket) => void;

/**
 * What is under way: connections from their first byte on, handshakes too, and requests without an answer. Connections are
 * bounded for each peer and in all; at the latter bound the peer with the most of them loses the one that was not used for
 * longest, so that one peer cannot keep the others out. Peers take turns in beginning.
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: Bound;
  /** By peer, each in the order in which they were last used. */
  readonly #peers = new Map<string, Set<Connection>>();
  /** By what `keyOf` makes of a socket. */
  readonly #open = new Map<unknown, Connection>();
  readonly #waiting = new Map<string, Socket[]>(); // peer -> its connections whose handshake has not begun
  readonly #answers = new Set<ServerResponse>();
  readonly #begin: Begin;
  #turn: NodeJS.Immediate | undefined;
  #draining = false;

  constructor(server: Server, limits: Bound = CONNECTION_LIMITS) {
    this.#server = server;
    this.#limits = limits;
    // the listeners that begin the handshake; from here on they are called when it is a connection's turn
    const listeners = server.listeners("connection");
    server.removeAllListeners("connection");
    this.#begin = (socket) => {
      for (const listener of listeners) listener.call(server, socket);
    };
    server.on("connection", (socket: Socket) => this.#arrive(socket));
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
    const isFull = this.#open.size >= this.#limits.inAll;
    if (its.size >= this.#limits.perPeer || (isFull && !this.#displace(its.size))) {
      socket.destroy();
      return;
    }
    const key = keyOf(socket);
    const connection: Connection = { key, socket, peer, answers: 0 };
    this.#peers.set(peer, its.add(connection));
    this.#open.set(key, connection);
    socket.once("close", () => this.#leave(connection));
    // until its handshake begins nobody else listens
    socket.on("error", () => socket.destroy());
    const waiting = this.#waiting.get(peer) ?? [];
    waiting.push(socket);
    this.#waiting.set(peer, waiting);
    this.#turn ??= setImmediate(() => this.#beginSome());
  }

  /** One of each peer, and those that have more go to the end of the line. */
  #beginSome(): void {
    this.#turn = undefined;
    for (let begun = 0; begun < HANDSHAKES_A_TURN && this.#waiting.size > 0; ) {
      const [[peer, sockets] = ["", []]] = this.#waiting;
      this.#waiting.delete(peer);
      const socket = sockets.shift();
      if (sockets.length > 0) this.#waiting.set(peer, sockets);
      if (socket === undefined || socket.destroyed) continue;
      this.#begin(socket);
      begun++;
    }
    if (this.#waiting.size > 0) this.#turn = setImmediate(() => this.#beginSome());
  }

  /** Whether a peer with more connections than the one that comes lost one that waits for nothing. */
  #displace(has: number): boolean {
    let most: ReadonlySet<Connection> = new Set();
    for (const connections of this.#peers.values()) if (connections.size > most.size) most = connections;
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
    if (this.#open.get(connection.key) === connection) this.#open.delete(connection.key);
    const its = this.#peers.get(connection.peer);
    if (its?.delete(connection) && its.size === 0) this.#peers.delete(connection.peer);
  }
}

/** The same for a connection and for what TLS makes of it; a unix socket has no port, and no TLS. */
function keyOf(socket: Socket): unknown {
  const { remoteAddress, remotePort } = socket;
  return remotePort === undefined ? socket : `${remoteAddress}|${remotePort}`;
}
