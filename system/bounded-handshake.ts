// SPDX-License-Identifier: Apache-2.0
import { AsyncLocalStorage } from "node:async_hooks";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { TLSSocket, Server as TlsServer } from "node:tls";
import { TlsRecords } from "./tls-records.ts";

/**
 * Of a client, until its handshake is over: a hello of 2 KiB and three certificates with RSA keys of 4,096 bits. TLS checks each signature
 * of a chain, also of one that leads to no authority, before anybody is asked: 90 KiB of keys whose exponents are as long as they are
 * take a third of a second of the event loop.
 */
const MOST_BYTES = 8 * 1024;

/** Of what TLS is given at a time: as long as one of its records, and a quarter of what is read from the network. */
const PIECE_BYTES = 16 * 1024;

const NOTHING = Buffer.alloc(0);

/** Of the processor's time: a part of a handshake, and all of it until now. */
type Took = (partMs: number, wholeMs: number) => void;

/** Whose handshake the code runs for that TLS calls. */
const running = new AsyncLocalStorage<BoundedHandshake>();

/** What TLS made -> the connection that it is on. */
const carriers = new WeakMap<Socket, Socket>();

/** The connection that what TLS made of it is on; without TLS the same. */
export function carrierOf(socket: Socket): Socket {
  return carriers.get(socket) ?? socket;
}

/**
 * What TLS reads and writes in place of a connection: a handshake that needs more bytes than an honest one is never given them, and its
 * processor time is told; after it, what comes in many small records ends the connection.
 */
export class BoundedHandshake extends Duplex {
  readonly #socket: Socket;
  readonly #tell: Took;
  readonly #records = new TlsRecords();
  /** Once the handshake is over. */
  #secure: TLSSocket | undefined;
  /** What has come and was not passed on. */
  #rest: Buffer = NOTHING;
  /** The client sends nothing more. */
  #isEnded = false;
  #bytes = 0;
  #before: NodeJS.CpuUsage | undefined;
  #ms = 0;

  private constructor(socket: Socket, tell: Took) {
    super({ allowHalfOpen: socket.allowHalfOpen, readableHighWaterMark: PIECE_BYTES });
    this.#socket = socket;
    this.#tell = tell;
    socket.on("data", (chunk: Buffer) => this.#arrive(chunk));
    socket.on("end", () => this.#end());
    socket.on("close", () => this.destroy());
  }

  /** Has `begin` do it; `tell` is called whenever a part of it was done. */
  static begin(socket: Socket, begin: (stream: Duplex) => void, tell: Took): void {
    const handshake = new BoundedHandshake(socket, tell);
    running.run(handshake, begin, handshake);
  }

  /** Of what the server's handshakes make: its carrier, an address, which a stream has none of, and no bound. */
  static watch(server: TlsServer): void {
    server.on("secureConnection", (secure) => {
      const handshake = running.getStore();
      if (handshake === undefined) return;
      carriers.set(secure, handshake.#socket);
      const { remoteAddress, remotePort } = handshake.#socket;
      Object.defineProperties(secure, {
        remoteAddress: { value: remoteAddress },
        remotePort: { value: remotePort },
      });
      handshake.#tellPart();
      handshake.#secure = secure;
    });
  }

  #arrive(chunk: Buffer): void {
    if (!this.#records.take(chunk)) {
      this.#socket.destroy();
      return;
    }
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#secure === undefined) {
      this.#handshake(this.#rest.subarray(0, MOST_BYTES - this.#bytes));
      // behind it is the beginning of a request, of whoever asks as soon as he may
      if (this.#secure === undefined && this.#rest.length > 0) this.#socket.destroy();
    }
    if (this.#secure !== undefined) this.#pass();
  }

  /** TLS has done it when `push` returns, and what came behind it, which is no part of it, too. */
  #handshake(part: Buffer): void {
    this.#before = process.threadCpuUsage();
    this.#bytes += part.length;
    this.#rest = this.#rest.subarray(part.length);
    this.push(part);
    if (this.#secure === undefined) this.#tellPart();
  }

  #tellPart(): void {
    const { user, system } = process.threadCpuUsage(this.#before);
    const partMs = (user + system) / 1_000;
    this.#ms += partMs;
    this.#tell(partMs, this.#ms);
  }

  #end(): void {
    if (this.#rest.length === 0) this.push(null);
    else this.#isEnded = true;
  }

  /** In pieces, of which each is decrypted and parsed before the next one: whoever ends the connection meanwhile is spared the rest. */
  #pass(): void {
    while (this.#rest.length > 0 && this.#secure?.destroyed !== true) {
      const piece = this.#rest.subarray(0, PIECE_BYTES);
      this.#rest = this.#rest.subarray(PIECE_BYTES);
      if (this.push(piece)) continue;
      this.#socket.pause();
      return;
    }
    // at once, or some hundred KiB more are read of it in this turn
    if (this.#secure?.destroyed === true) this.#socket.destroy();
    this.#giveBack();
    if (this.#isEnded) this.push(null);
    this.#isEnded = false;
  }

  /** Memory that waits for a garbage collection makes more of them: what was read came in 64 KiB of its own. */
  #giveBack(): void {
    const { buffer } = this.#rest;
    this.#rest = NOTHING;
    if (this.readableLength === 0 && buffer instanceof ArrayBuffer && buffer.byteLength > PIECE_BYTES)
      buffer.transfer(0);
  }

  override _read(): void {
    if (this.#secure !== undefined) this.#pass();
    if (this.#rest.length === 0) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
