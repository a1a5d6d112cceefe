// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import { createSecureContext, type SecureContextOptions, TLSSocket } from "node:tls";
import { BerthError, messageOf } from "../allocator/errors.ts";
import type { Clock, Logger } from "../allocator/ports.ts";
import { type CertificatePair, readCertificate, readPair, readServingPair } from "./certificate-pair.ts";

export interface TlsServerOptions {
  readonly app: RequestListener;
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly certificate: CertificatePair;
  /**
   * PEM of the authority whose clients may change something. Absent: anyone may. Reading stays open to all, because
   * probes and scrapes bring no certificate.
   */
  readonly clientAuthority?: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** How long `close` waits for answers that are under way. */
  readonly drainMs?: number;
}

export interface TlsServer {
  readonly address: { readonly host: string; readonly port: number };
  /**
   * New handshakes get the new certificate, connections that stand live on.
   * @throws BerthError CERTIFICATE_INVALID, and the old one stays
   */
  reload(certificate: CertificatePair): void;
  /**
   * From the next handshake on, clients of this authority may change something; those that stand may go on.
   * @throws BerthError CERTIFICATE_INVALID, and the old one stays; for a server that asks for none
   */
  trustClients(authority: string): void;
  /**
   * Stops accepting, answers what is under way, closes the rest. Whoever calls it has said before that he is not
   * ready, and waited until nobody sends any more. Idempotent; never rejects.
   */
  close(): Promise<void>;
}

/** The API server keeps idle connections for 90 s (Go, net/http DefaultTransport) and must be first to close them. */
const KEEP_ALIVE_MS = 125_000;
/** Above it: Node counts the silence of a connection that was opened and not used yet as a slow request. */
const HEADERS_MS = 130_000;
/** Beyond which Node cuts a request off; the app bounds admission bodies much sooner, and answers. */
const REQUEST_MS = 150_000;
/** Below the 30 s that Kubernetes gives a pod to end. */
const DRAIN_MS = 10_000;

/**
 * Serves the app over TLS.
 * @throws BerthError CERTIFICATE_INVALID for the pair, CONFIG_INVALID when host and port cannot be listened on
 */
export async function serveTls(options: TlsServerOptions): Promise<TlsServer> {
  const { log, clock } = options;
  let { certificate, clientAuthority } = options;
  readServingPair(certificate, clock.now());
  const server = createServer({
    ...contextOf({ certificate, clientAuthority }),
    // judged request by request: refusing the handshake would refuse probes
    requestCert: clientAuthority !== undefined,
    rejectUnauthorized: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: HEADERS_MS,
    requestTimeout: REQUEST_MS,
  });
  const traffic = new Traffic(server);
  server.on("request", (request, response) => {
    traffic.enter(response);
    if (clientAuthority !== undefined && !mayPass(request)) refuse(request, response);
    else options.app(request, response);
  });
  server.on("tlsClientError", (error) => {
    log.debug("handshake failed", { error });
  });
  await listen(server, options);
  server.on("error", (error) => log.error("server failed", { error }));
  let closing: Promise<void> | undefined;
  return {
    address: addressOf(server),
    reload(next) {
      if (!outlives(next, certificate)) readServingPair(next, clock.now());
      server.setSecureContext(contextOf({ certificate: next, clientAuthority }));
      certificate = next;
    },
    trustClients(next) {
      if (clientAuthority === undefined) throw invalid("this server asks no client for a certificate");
      server.setSecureContext(contextOf({ certificate, clientAuthority: next }));
      clientAuthority = next;
    },
    close() {
      closing ??= traffic.drain(clock, options.drainMs ?? DRAIN_MS, log);
      return closing;
    },
  };
}

/** Checks before it hands over: `setSecureContext` takes an expired certificate, and half of one that is broken. */
function contextOf(from: {
  readonly certificate: CertificatePair;
  readonly clientAuthority: string | undefined;
}): SecureContextOptions {
  const { certificate, clientAuthority } = from;
  readPair(certificate);
  if (clientAuthority !== undefined) readCertificate(clientAuthority);
  const { cert, key } = certificate;
  const ca = clientAuthority === undefined ? {} : { ca: clientAuthority };
  const context: SecureContextOptions = { cert, key, minVersion: "TLSv1.2", ...ca };
  try {
    createSecureContext(context);
  } catch (cause) {
    throw invalid(`the certificate cannot be used: ${messageOf(cause)}`, cause);
  }
  return context;
}

/** By a clock that is wrong both have expired: the one that ends later serves longer by every other clock. */
function outlives(next: CertificatePair, served: CertificatePair): boolean {
  return readPair(next).validToDate > readPair(served).validToDate;
}

function invalid(message: string, cause?: unknown): BerthError {
  return new BerthError("CERTIFICATE_INVALID", message, { cause });
}

function mayPass({ method, socket }: IncomingMessage): boolean {
  if (method === "GET" || method === "HEAD") return true;
  return socket instanceof TLSSocket && socket.authorized;
}

/** As text: of an answer that is no review, that is what an API server passes on to whoever asked it. */
function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  response.writeHead(403, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  response.end(wordsFor(request.socket));
}

function wordsFor(socket: IncomingMessage["socket"]): string {
  const brought = socket instanceof TLSSocket && Object.keys(socket.getPeerCertificate()).length > 0;
  return brought
    ? "berth does not trust the authority of this client certificate; see BERTH_CLIENT_CA"
    : "berth takes reviews only from a client with a certificate, and this one brought none";
}

function listen(server: Server, { host, port }: TlsServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      const message = `cannot listen on ${host} port ${port}: ${messageOf(cause)}`;
      reject(new BerthError("CONFIG_INVALID", message, { cause }));
    });
    server.listen({ host, port }, () => {
      server.removeAllListeners("error");
      resolve();
    });
  });
}

function addressOf(server: Server): TlsServer["address"] {
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new BerthError("INTERNAL", "no address to serve on");
  return { host: address.address, port: address.port };
}

/** What is under way: connections from their first byte on, handshakes too, and requests without an answer. */
class Traffic {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #answers = new Set<ServerResponse>();
  #draining = false;

  constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  enter(response: ServerResponse): void {
    this.#answers.add(response);
    if (this.#draining) response.setHeader("Connection", "close");
    response.once("close", () => {
      this.#answers.delete(response);
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
    if (this.#sockets.size > 0) {
      log.warn("connections cut off", { connections: this.#sockets.size, answers: this.#answers.size });
    }
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
