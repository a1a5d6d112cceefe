// SPDX-License-Identifier: Apache-2.0
import { constants } from "node:crypto";
import type { RequestListener, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import {
  CONNECTION_LIMITS,
  type ConnectionLimits,
  Connections,
  UNPROVEN_LIMITS,
} from "../../system/connections.ts";
import { HANDSHAKE_MS } from "../../system/handshakes.ts";
import { type ListeningPlace, listenAt, placeWords } from "../../system/listening.ts";
import { ONE_REQUEST } from "../../system/one-request.ts";
import { type CertificatePair, readPair, readWholePair } from "../../system/pem/pair.ts";
import { readAuthorities } from "../certificates/ca-bundle.ts";
import { readServingPair } from "../certificates/serving-pair.ts";
import { fitLine } from "../review/warnings.ts";
import {
  certificateObjection,
  clientObjection,
  TRUSTED_CLIENTS,
  type TrustedClients,
} from "./client-check.ts";
import { answerEarly } from "./early-answer.ts";
import { SlowClients } from "./slow-clients.ts";

export interface TlsServerOptions extends ListeningPlace {
  readonly app: RequestListener;
  readonly certificate: CertificatePair;
  /**
   * PEM of the authority whose clients may change something, or of several. Absent: anyone may. Reading stays open to all, because
   * probes and scrapes bring no certificate.
   */
  readonly clientAuthority?: string;
  /** Which clients of that authority; `TRUSTED_CLIENTS` if absent. */
  readonly trusted?: TrustedClients;
  /** If absent `CONNECTION_LIMITS`, with `UNPROVEN_LIMITS` where clients are asked for a certificate. */
  readonly connections?: ConnectionLimits;
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

export const HTTP_TIMES = {
  /** The API server keeps idle connections for 90 s (Go, net/http DefaultTransport) and must be first to close them. */
  keepAliveTimeout: 125_000,
  /** Above it: Node counts the silence of a connection that was opened and not used yet as a slow request; see `SlowClients`. */
  headersTimeout: 130_000,
  /** Beyond which Node cuts a request off; the app bounds admission bodies much sooner, and answers. */
  requestTimeout: 150_000,
} as const;
/** What Go's clients have, and one for whoever may use nothing below it. Others that OpenSSL takes cost two to three times as much. */
const GROUPS = "X25519MLKEM768:X25519:P-256:P-384";
/**
 * A handshake that a client of TLS 1.2 asks for on a connection that stands would wait for no turn, and its chain of certificates have no
 * bound: one of 90 KiB takes a second. Go's clients ask for none.
 */
const OPTIONS = constants.SSL_OP_NO_RENEGOTIATION;
/** A session that is taken up again shows no certificate: neither its end nor who signed it would be looked at. */
const ASKING_OPTIONS = OPTIONS | constants.SSL_OP_NO_TICKET;
/** Bytes of a refusal: a name that is quoted in it may be of any length. */
const LONGEST_WORDS = 1_024;
/** Of the body of a review that is refused for who sends it: as long as most are, for whoever set up an API server without a certificate. */
const STRANGERS_BYTES = 64 * 1024;
/** Below the 30 s that Kubernetes gives a pod to end. */
export const DRAIN_MS = 10_000;

/**
 * Serves the app over TLS.
 * @throws BerthError CERTIFICATE_INVALID for the pair, CONFIG_INVALID when host and port cannot be listened on
 */
export async function serveTls(options: TlsServerOptions): Promise<TlsServer> {
  const { log, clock, trusted = TRUSTED_CLIENTS } = options;
  let { certificate, clientAuthority } = options;
  readServingPair(certificate, clock.now());
  const server = createServer({
    ...ONE_REQUEST,
    ...contextOf({ certificate, clientAuthority }),
    // judged request by request: refusing the handshake would refuse probes
    requestCert: clientAuthority !== undefined,
    rejectUnauthorized: false,
    ...HTTP_TIMES,
    handshakeTimeout: HANDSHAKE_MS,
  });
  const asked = clientAuthority === undefined ? {} : { unproven: UNPROVEN_LIMITS };
  const connections = new Connections(server, options.connections ?? { ...CONNECTION_LIMITS, ...asked });
  server.on("secureConnection", (socket) => {
    if (clientAuthority !== undefined && certificateObjection(socket, trusted, clock.now()) === undefined)
      connections.prove(socket);
  });
  new SlowClients(server, clock);
  server.on("request", (request, response) => {
    connections.enter(response);
    const objection =
      clientAuthority === undefined ? undefined : clientObjection(request, trusted, clock.now());
    if (objection === undefined) options.app(request, response);
    else refuse(response, objection, clock);
  });
  server.on("tlsClientError", (error) => {
    log.debug("handshake failed", { error });
  });
  await listenAt(server, options).catch((cause: unknown) => {
    const message = `cannot listen on ${placeWords(options)}: ${messageOf(cause)}`;
    throw new BerthError("CONFIG_INVALID", message, { cause });
  });
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
      closing ??= connections.drain(clock, options.drainMs ?? DRAIN_MS, log);
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
  readWholePair(certificate);
  const { cert, key } = certificate;
  // each by itself, as it was read: of a text with several OpenSSL may take fewer
  const ca = clientAuthority === undefined ? {} : { ca: readAuthorities(clientAuthority).map(String) };
  const secureOptions = clientAuthority === undefined ? OPTIONS : ASKING_OPTIONS;
  const taken = { minVersion: "TLSv1.2", ecdhCurve: GROUPS, secureOptions } as const;
  const context: SecureContextOptions = { cert, key, ...taken, ...ca };
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

/** As text: of an answer that is no review, that is what an API server passes on to whoever asked it. */
function refuse(response: ServerResponse, words: string, clock: Clock): void {
  response.statusCode = 403;
  response.setHeader("Content-Type", "text/plain; charset=utf-8");
  response.setHeader("Connection", "close");
  answerEarly(response, fitLine(words, LONGEST_WORDS), clock, STRANGERS_BYTES);
}

function addressOf(server: Server): TlsServer["address"] {
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new BerthError("INTERNAL", "no address to serve on");
  return { host: address.address, port: address.port };
}
