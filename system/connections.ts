// SPDX-License-Identifier: Apache-2.0
import type { Server as HttpServer, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { Server as TlsServer } from "node:tls";
import type { Clock, Logger } from "../allocator/base/ports.ts";
import { BoundedHandshake, carrierOf } from "./bounded-handshake.ts";
import { Handshakes } from "./handshakes.ts";
import { addressOf, peerOf } from "./peer.ts";
import { victimOf } from "./victim.ts";

/** A bound for all callers together and one for each peer, which is what `peerOf` makes of a remote address. */
export interface Bound {
  readonly inAll: number;
  readonly perPeer: number;
}

/** An API server opens one for each review under way and keeps it; it changes 200 objects at a time unless told otherwise. */
export const CONNECTION_LIMITS: Bound = { inAll: 2_048, perPeer: 512 };
/** Of those that brought no certificate to a server that asks for one: probes, scrapes, and strangers. */
export const UNPROVEN_LIMITS: Bound = { inAll: 512, perPeer: 64 };
/** Addresses of which somebody proved himself are remembered, the last of them. */
const MOST_PROVEN = 64;
/** Of the event loop, each with a look at all sockets: one for what arrives, one for its handshake, one for its request. */
const TURNS = 3;
interface Connection {
  readonly socket: Socket;
  readonly address: string;
  readonly peer: string;
  hasAsked: boolean;
  /** When it was opened or used, among all. */
  used: number;
  /** Answers that are not out. */
  readonly answers: Set<ServerResponse>;
  /** Whether its certificate may change something. */
  isProven: boolean;
}

export interface ConnectionLimits extends Bound {
  /** Where callers prove themselves: of those that did not, or not yet. */
  readonly unproven?: Bound;
}

type Server = HttpServer | HttpsServer;

/**
 * What is under way: connections from their first byte on, handshakes too, and requests without an answer. Connections are
 * bounded for each peer and in all; at either bound one goes on which nothing is being answered (`victimOf`), so that nobody keeps
 * others out with connections that he does not use, or with answers that he does not take. Peers take turns in beginning. Where
 * callers prove themselves, those who have not share fewer places, and an address of which somebody has comes before all others.
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #provenAddresses = new Set<string>();
  #unproven = 0;
  #uses = 0;
  /** By peer, each in the order in which they were last used. */
  readonly #peers = new Map<string, Set<Connection>>();
  /**
   * By what was accepted, and not by its address and port: one that the client has reset may still be here when the next one comes from
   * the same port, and a server with several addresses may have several from one port.
   */
  readonly #open = new Map<Socket, Connection>();
  readonly #answers = new Set<ServerResponse>();
  readonly #begin: (stream: Duplex) => void;
  /** Those that have not begun, of a server that makes any. */
  readonly #handshakes: Handshakes | undefined;
  #draining = false;
  /** What came before the drain was read: a connection that looks idle from here on is. */
  #hasRead = false;

  constructor(server: Server, limits: ConnectionLimits = CONNECTION_LIMITS) {
    this.#server = server;
    this.#limits = limits;
    // the listeners that begin the handshake; from here on they are called when it is a connection's turn
    const listeners = server.listeners("connection");
    server.removeAllListeners("connection");
    this.#begin = (stream) => {
      for (const listener of listeners) listener.call(server, stream);
    };
    if (server instanceof TlsServer) this.#handshakes = this.#handshakesOf(server);
    server.on("connection", (socket: Socket) => this.#arrive(socket));
    // What a request expects that nobody knows may be passed over (RFC 9110, 10.1.1). Node would answer it by itself, past all who
    // listen to requests and bound them, and read its body for as long as it comes.
    server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  }

  /** Its certificate may change something. */
  prove(socket: Socket): void {
    const connection = this.#open.get(carrierOf(socket));
    if (connection === undefined || connection.isProven) return;
    connection.isProven = true;
    this.#unproven--;
    this.#provenAddresses.delete(connection.address);
    this.#provenAddresses.add(connection.address);
    const [oldest] = this.#provenAddresses;
    if (this.#provenAddresses.size > MOST_PROVEN && oldest !== undefined)
      this.#provenAddresses.delete(oldest);
  }

  enter(response: ServerResponse): void {
    this.#answers.add(response);
    const connection = this.#open.get(carrierOf(response.req.socket));
    if (connection !== undefined) {
      connection.hasAsked = true;
      connection.answers.add(response);
      this.#use(connection);
    }
    if (this.#draining) response.setHeader("Connection", "close");
    response.once("close", () => {
      this.#answers.delete(response);
      if (connection?.answers.delete(response) === true) this.#use(connection);
      // an answer whose headers were out before the drain began leaves its connection open
      if (this.#hasRead) this.#server.closeIdleConnections();
    });
  }

  /**
   * Takes no more connections, and ends when all answers under way are out, or cuts them off after that time. What came before is read
   * first: on a busy machine that may be a while, and a request on a connection that looks idle would be cut off unread.
   */
  async drain(clock: Clock, drainMs: number, log: Logger): Promise<void> {
    this.#draining = true;
    for (let n = 0; n < TURNS; n++) await turn();
    this.#hasRead = true;
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const answer of this.#answers) {
      if (!answer.headersSent) answer.setHeader("Connection", "close");
    }
    this.#server.closeIdleConnections();
    const drainTimer = new AbortController();
    const isClosed = closed.then(() => true);
    const inTime = await Promise.race([isClosed, clock.sleep(drainMs, drainTimer.signal).then(() => false)]);
    drainTimer.abort();
    if (!inTime) this.#cutOff(log);
    await closed;
  }

  #cutOff(log: Logger): void {
    log.warn("connections cut off", { connections: this.#open.size, answers: this.#answers.size });
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #handshakesOf(server: TlsServer): Handshakes {
    // nobody sends a certificate that is not asked for, and without one no handshake costs much more than another
    const isAsked = this.#limits.unproven !== undefined;
    BoundedHandshake.watch(server);
    const handshakes = new Handshakes((socket, peer) => {
      const tell = (partMs: number, wholeMs: number) => {
        if (isAsked) handshakes.took(peer, partMs, wholeMs);
      };
      BoundedHandshake.begin(socket, this.#begin, tell);
    }, this.#provenAddresses);
    return handshakes;
  }

  #arrive(socket: Socket): void {
    const address = addressOf(socket);
    // a proven one shares its bounds with nobody of its network
    const peer = this.#provenAddresses.has(address) ? address : peerOf(socket);
    if (!this.#hasRoom(peer, address)) {
      socket.destroy();
      return;
    }
    const fresh = {
      answers: new Set<ServerResponse>(),
      hasAsked: false,
      used: ++this.#uses,
      isProven: false,
    };
    const connection: Connection = { socket, address, peer, ...fresh };
    this.#unproven++;
    // one that was displaced may have been its last
    const its = this.#peers.get(peer) ?? new Set();
    this.#peers.set(peer, its.add(connection));
    this.#open.set(socket, connection);
    socket.once("close", () => this.#leave(connection));
    // until its handshake begins nobody else listens
    socket.on("error", () => socket.destroy());
    if (this.#handshakes === undefined) this.#begin(socket);
    else this.#handshakes.expect(peer, socket);
  }

  /** Nothing of TLS was done for it yet. */
  #hasRoom(peer: string, address: string): boolean {
    const { inAll, perPeer, unproven } = this.#limits;
    const its = this.#peers.get(peer) ?? new Set();
    // whoever proved himself here will do it again
    const asStranger = this.#provenAddresses.has(address) ? undefined : unproven;
    const most = Math.min(perPeer, asStranger?.perPeer ?? perPeer);
    // others may hold connections from the same address, behind a tunnel or on the same node, or from the same network
    const byAddress = () => Map.groupBy(its, (connection) => connection.address).values();
    if (its.size >= most && !this.#displace(byAddress(), address)) return false;
    const isFull =
      this.#open.size >= inAll || (asStranger !== undefined && this.#unproven >= asStranger.inAll);
    return !isFull || this.#displace(this.#peers.values());
  }

  /**
   * Whether one went for the one that comes. Those that proved themselves stay, and whoever comes from where they do, unless for one that
   * comes from there as well.
   */
  #displace(groups: IteratorObject<Iterable<Connection>>, newcomer?: string): boolean {
    const mayGo = ({ answers, isProven, address }: Connection) =>
      !isProven &&
      (answers.size === 0 || [...answers].every((answer) => answer.writableEnded)) &&
      (address === newcomer || !this.#provenAddresses.has(address));
    const victim = victimOf(groups.map((its) => [...its].filter(mayGo)));
    if (victim === undefined) return false;
    this.#leave(victim);
    victim.socket.destroy();
    return true;
  }

  #use(connection: Connection): void {
    connection.used = ++this.#uses;
    const its = this.#peers.get(connection.peer);
    if (its?.delete(connection)) its.add(connection);
  }

  #leave(connection: Connection): void {
    // one that was displaced has left when it closes
    if (!this.#open.delete(connection.socket)) return;
    if (!connection.isProven) this.#unproven--;
    const its = this.#peers.get(connection.peer);
    if (its?.delete(connection) && its.size === 0) this.#peers.delete(connection.peer);
  }
}
