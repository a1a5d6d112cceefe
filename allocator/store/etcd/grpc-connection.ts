// SPDX-License-Identifier: Apache-2.0
// gRPC over HTTP/2 (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) to one endpoint.
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { messageOf } from "../../base/errors.ts";
import type { Clock } from "../../base/ports.ts";
import { framed, GRPC, GrpcError, messagesOf } from "./grpc-frames.ts";

/** What proves who each side is; all of it PEM. */
export interface TlsMaterial {
  /** Absent: the certificate authorities of this host's Node.js. */
  readonly ca?: Buffer | string[];
  readonly cert?: Buffer | string;
  readonly key?: Buffer | string;
}

interface CallOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

const CONNECT_MS = 3_000;
/** etcd takes pings at most every 5 s (--grpc-keepalive-min-time). */
const PING_EVERY_MS = 10_000;
const PING_ANSWER_MS = 5_000;
/** A page of a list comes without waiting for leave to send the rest. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** One HTTP/2 session, made by the first call. When it has ended, the next call makes another one. */
export class GrpcConnection {
  readonly origin: string;
  readonly #clock: Clock;
  readonly #material: () => TlsMaterial;
  #session: Promise<ClientHttp2Session> | undefined;
  #retiring = new AbortController(); // of the session
  readonly #closing = new AbortController();

  /** `origin` is http://host:port or https://host:port; `material` is asked for each session. */
  constructor(origin: string, material: () => TlsMaterial, clock: Clock) {
    this.origin = origin;
    this.#material = material;
    this.#clock = clock;
  }

  /** One message there, one back. Throws GrpcError. */
  async unary(path: string, message: Uint8Array, options: CallOptions): Promise<Buffer> {
    const session = await this.#open();
    const stream = this.#request(session, path, {
      ...options.headers,
      "grpc-timeout": `${Math.max(1, Math.ceil(options.timeoutMs))}m`,
    });
    const late = setTimeout(() => {
      stream.destroy(new GrpcError(GRPC.deadlineExceeded, `no answer in ${options.timeoutMs} ms`, true));
    }, options.timeoutMs);
    try {
      stream.end(framed(message));
      const messages: Buffer[] = [];
      for await (const one of messagesOf(stream)) messages.push(one);
      const [first] = messages;
      if (first === undefined) throw new GrpcError(GRPC.internal, "an answer without a message", true);
      return first;
    } finally {
      clearTimeout(late);
    }
  }

  /** One message there, and messages back until `signal` aborts, which ends them, or the other side ends it. */
  async *follow(
    path: string,
    message: Uint8Array,
    { headers, signal }: { headers: CallOptions["headers"]; signal: AbortSignal },
  ): AsyncGenerator<Buffer, void, void> {
    const session = await this.#open();
    const ends = AbortSignal.any([signal, this.#retiring.signal]);
    if (ends.aborted) return;
    const stream = this.#request(session, path, headers);
    const cancel = () => stream.close(constants.NGHTTP2_CANCEL);
    ends.addEventListener("abort", cancel, { once: true });
    try {
      stream.write(framed(message));
      yield* messagesOf(stream);
    } catch (error) {
      if (!ends.aborted) throw error;
    } finally {
      ends.removeEventListener("abort", cancel);
      stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  /** The next call makes a new session, with new certificates. Calls of the old one end as they would, streams now. */
  async retire(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    this.#retiring.abort();
    this.#retiring = new AbortController();
    (await session?.catch(() => undefined))?.close();
  }

  /** Ends what is under way. */
  async close(): Promise<void> {
    this.#closing.abort();
    const session = await this.#session?.catch(() => undefined);
    session?.destroy(new GrpcError(GRPC.unavailable, "the connection is closed", true));
  }

  #open(): Promise<ClientHttp2Session> {
    if (this.#closing.signal.aborted) {
      return Promise.reject(new GrpcError(GRPC.unavailable, "the connection is closed", false));
    }
    if (this.#session !== undefined) return this.#session;
    const forget = () => {
      if (this.#session === opening) this.#session = undefined;
    };
    const opening = openSession(this.origin, this.#material, forget);
    this.#session = opening;
    opening.then((session) => void this.#keepAlive(session), forget);
    return opening;
  }

  #request(
    session: ClientHttp2Session,
    path: string,
    headers: Readonly<Record<string, string>>,
  ): ClientHttp2Stream {
    try {
      const head = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
      const stream = session.request({ ...head, ...headers });
      stream.on("error", () => {}); // whoever reads it is told; it may have been read already
      return stream;
    } catch (error) {
      throw new GrpcError(GRPC.unavailable, messageOf(error), false);
    }
  }

  /** A host that is gone says nothing, and neither does a watch of what never changes. */
  async #keepAlive(session: ClientHttp2Session): Promise<void> {
    const ended = new AbortController();
    session.once("close", () => ended.abort());
    for (;;) {
      await this.#clock.sleep(PING_EVERY_MS, ended.signal);
      if (session.destroyed || ended.signal.aborted) return;
      const answered = new AbortController();
      session.ping(() => answered.abort());
      await this.#clock.sleep(PING_ANSWER_MS, AbortSignal.any([answered.signal, ended.signal]));
      if (answered.signal.aborted || session.destroyed) continue;
      session.destroy(new GrpcError(GRPC.unavailable, "it answers no ping", true));
      return;
    }
  }
}

/** `over` is called when the session takes no more calls. */
function openSession(
  origin: string,
  material: () => TlsMaterial,
  over: () => void,
): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const refuse = (error: unknown) =>
      reject(new GrpcError(GRPC.unavailable, messageOf(error).trim(), false));
    let session: ClientHttp2Session;
    try {
      const tls = origin.startsWith("https:") ? { ...material(), minVersion: "TLSv1.2" as const } : {};
      session = connect(origin, { ...tls, settings: { initialWindowSize: WINDOW_BYTES, enablePush: false } });
    } catch (error) {
      refuse(error);
      return;
    }
    const end = (words: string) => {
      clearTimeout(late);
      refuse(new Error(words));
      over();
      if (!session.destroyed) session.destroy();
    };
    const late = setTimeout(() => end(`no connection in ${CONNECT_MS} ms`), CONNECT_MS);
    session.on("error", refuse); // after the connection the streams tell
    session.once("close", () => end("the connection was closed"));
    session.once("goaway", over);
    // a server that refuses the client's certificate does so after the handshake, and then the session does not tell
    session.once("connect", (_, socket) => {
      socket.once("error", refuse);
      socket.once("close", () => end("the connection was closed, perhaps for the client's certificate"));
    });
    // the settings of the other side: a process that hangs is connected by its kernel
    session.once("remoteSettings", () => {
      clearTimeout(late);
      session.setLocalWindowSize(WINDOW_BYTES);
      resolve(session);
    });
  });
}
