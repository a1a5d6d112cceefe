// SPDX-License-Identifier: Apache-2.0
import type { Agent, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { type RequestOptions, request } from "node:https";
import { urlToHttpOptions } from "node:url";
import { alarmOf } from "../../allocator/base/alarm.ts";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { type ApiAccess, type Credentials, TokenSource } from "./credentials.ts";
import { Exchange } from "./exchange.ts";
import { LargeBodies } from "./large-bodies.ts";
import { linesOf } from "./lines.ts";
import { parsedWithoutManagedFields } from "./managed-fields.ts";
import { warningsIn } from "./warnings.ts";

/** One HTTP call to the API server. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Encoded: `/apis/berth.dev/v1alpha1/ippools/db`. */
  readonly path: string;
  /** Not encoded. */
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default application/json. */
  readonly contentType?: string;
  /** For all of a call, for the head of a stream; default 10 s. */
  readonly timeoutMs?: number;
  /** No more of the answer's body is read. Without it all of it. */
  readonly mostBytes?: number;
}

/** Any HTTP status is an answer. `body` is parsed JSON, a large one without its `managedFields`, or the text when it is none. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
  /** Of the body, where the call bounds it. */
  readonly bytes?: number;
  /** The body has more bytes than the call may get, and is left out. */
  readonly isTooLarge?: true;
  /** What the API server, and its webhooks, warn of; absent when of nothing. */
  readonly warnings?: readonly string[];
}

/** A body that goes on, line by line. */
export interface Stream {
  readonly lines: AsyncGenerator<string, void, void>;
}

/**
 * HTTP to one API server. Throws BerthError STORE_UNAVAILABLE when it cannot be reached, TIMED_OUT when it does not
 * answer in time; after either the call may have been carried out.
 */
export interface Connection {
  /** A 429 says that nothing was done: it is waited for and repeated while there is time. */
  call(call: Call): Promise<Answer>;
  /** A stream for 200, the answer for any other status. When `signal` aborts, the lines throw. */
  stream(call: Call, signal: AbortSignal): Promise<Stream | Answer>;
  /** Ends what is under way. May be called twice. */
  close(): void;
}

interface ConnectionDeps {
  readonly clock: Clock;
  /** What the API server's audit log calls us: `berth-webhook/0.1.0`. */
  readonly userAgent: string;
  /** Told of the API server's time, in milliseconds since 1970, with each answer that says it. */
  readonly onTime?: (serverMs: number) => void;
  /** How long a plugin may take for which a person logs in, before a call's own time begins; 0 if absent. */
  readonly loginMs?: number;
}

const TIMEOUT_MS = 10_000;
const RETRY_MS = 1_000;
/** No SyntaxError: Node has one for a server's certificate that it cannot read. */
const MISTAKES = [TypeError, RangeError, ReferenceError];

/**
 * Connects with the server, authority and credentials of a KubeConfig. client-node's own typed calls are not used:
 * in 2.0 each makes a TLS connection of its own, and none has a deadline.
 */
export function connect(kubeConfig: ApiAccess, deps: ConnectionDeps): Connection {
  return new HttpsConnection(kubeConfig, deps);
}

/** By whom a request is sent. */
interface Way {
  readonly credentials: Credentials;
  readonly agent: Agent;
  /** Of a stream: when to end it. A call is broken off as its exchange, which costs less. */
  readonly signal?: AbortSignal;
}

class HttpsConnection implements Connection {
  readonly #tokens: TokenSource;
  readonly #clock: Clock;
  readonly #userAgent: string;
  readonly #onTime: ((serverMs: number) => void) | undefined;
  readonly #loginMs: number | undefined;
  readonly #bodies: LargeBodies;
  /** Host and port of the API server, and the path before all others. */
  readonly #server: RequestOptions;
  readonly #underWay = new Set<Exchange>();
  readonly #closing = new AbortController();

  constructor(kubeConfig: ApiAccess, deps: ConnectionDeps) {
    this.#tokens = new TokenSource(kubeConfig, deps.clock, deps.loginMs);
    this.#server = urlToHttpOptions(new URL(this.#tokens.server));
    this.#clock = deps.clock;
    this.#bodies = new LargeBodies(deps.clock);
    this.#userAgent = deps.userAgent;
    this.#onTime = deps.onTime;
    this.#loginMs = deps.loginMs;
  }

  async call(call: Call): Promise<Answer> {
    if (this.#loginMs !== undefined) await this.#credentials(this.#clock.monotonic() + this.#loginMs);
    const until = this.#clock.monotonic() + (call.timeoutMs ?? TIMEOUT_MS);
    let refused = false;
    for (;;) {
      const { answer, retryMs, credentials } = await this.#exchange(call, until);
      if (answer.status === 401 && !refused) {
        refused = true; // a token may have been exchanged since it was read
        this.#tokens.refused(credentials);
      } else if (answer.status === 429 && this.#clock.monotonic() + retryMs < until) {
        await this.#clock.sleep(retryMs, this.#closing.signal);
      } else {
        return answer;
      }
    }
  }

  async stream(call: Call, signal: AbortSignal): Promise<Stream | Answer> {
    if (this.#loginMs !== undefined) await this.#credentials(this.#clock.monotonic() + this.#loginMs);
    const until = this.#clock.monotonic() + (call.timeoutMs ?? TIMEOUT_MS);
    const ends = AbortSignal.any([signal, this.#closing.signal]);
    const credentials = await this.#credentials(until);
    return await this.#within(until, async (exchange) => {
      const way = { credentials, agent: credentials.streams, signal: ends };
      const response = await this.#send(call, way, exchange);
      if (response.statusCode === 200) return { lines: linesOf(response, (error) => this.#faultOf(error)) };
      if (response.statusCode === 401) this.#tokens.refused(credentials);
      return await this.#read(response, call.mostBytes);
    });
  }

  close(): void {
    this.#closing.abort();
    this.#tokens.close();
    for (const exchange of this.#underWay) exchange.breakOff(new Error("the connection is closed"));
  }

  async #credentials(until: number): Promise<Credentials> {
    this.#mustBeOpen();
    try {
      return await this.#tokens.current(until);
    } finally {
      this.#mustBeOpen();
    }
  }

  #mustBeOpen(): void {
    if (this.#closing.signal.aborted)
      throw new BerthError("STORE_UNAVAILABLE", "the connection to the API server is closed");
  }

  async #exchange(
    call: Call,
    until: number,
  ): Promise<{ answer: Answer; retryMs: number; credentials: Credentials }> {
    const credentials = await this.#credentials(until);
    return await this.#within(until, async (exchange) => {
      const response = await this.#send(call, { credentials, agent: credentials.calls }, exchange);
      const answer = await this.#read(response, call.mostBytes);
      const seconds = Number(response.headers["retry-after"]);
      return { answer, retryMs: seconds > 0 ? seconds * 1000 : RETRY_MS, credentials };
    });
  }

  /** Sends, and waits for the head of the answer. */
  async #send(call: Call, { credentials, agent, signal }: Way, exchange: Exchange): Promise<IncomingMessage> {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const options = {
      ...this.#server,
      ...credentials.options,
      ...(signal === undefined ? {} : { signal }),
      agent,
      method: call.method,
      path: this.#pathOf(call),
      headers: this.#headersOf(call, credentials, body),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request(options, resolve);
    sent.on("error", reject);
    sent.on("upgrade", (_, socket) => {
      socket.destroy(); // without a listener Node does this, and says nothing to whoever waits
      reject(new Error("it answers in another protocol (101)"));
    });
    exchange.waitsFor(sent);
    sent.end(body); // as text it is sent together with the head
    const response = await promise;
    exchange.waitsFor(response);
    const serverMs = Date.parse(response.headers.date ?? "");
    if (!Number.isNaN(serverMs)) this.#onTime?.(serverMs);
    return response;
  }

  #pathOf({ path, query }: Call): string {
    const { pathname = "/" } = this.#server as { pathname?: string };
    const whole = pathname === "/" ? path : pathname + path;
    return query === undefined ? whole : `${whole}?${new URLSearchParams(query).toString()}`;
  }

  #headersOf(call: Call, { options }: Credentials, body: string | undefined): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = {
      ...(options.headers as OutgoingHttpHeaders | undefined),
      accept: "application/json",
      "user-agent": this.#userAgent,
    };
    if (body === undefined) return headers;
    headers["content-type"] = call.contentType ?? "application/json";
    headers["content-length"] = Buffer.byteLength(body);
    return headers;
  }

  async #read(response: IncomingMessage, mostBytes?: number): Promise<Answer> {
    const bytes = await this.#bodies.read(response, mostBytes);
    const status = response.statusCode ?? 0;
    if (bytes === undefined) return { status, body: undefined, isTooLarge: true };
    const size = mostBytes === undefined ? {} : { bytes: bytes.length };
    const answer = { status, body: parsed(bytes.toString("utf8")), ...size };
    if (response.headers["warning"] === undefined) return answer;
    const warnings = warningsIn(response.headersDistinct["warning"] ?? []);
    return warnings.length === 0 ? answer : { ...answer, warnings };
  }

  /** Breaks the exchange off when its time is over. Throws TIMED_OUT then, and for anything else that breaks it what `#faultOf` says. */
  async #within<T>(until: number, work: (exchange: Exchange) => Promise<T>): Promise<T> {
    const exchange = new Exchange();
    let late: BerthError | undefined; // made when it is needed: every call passes here
    const stop = alarmOf(this.#clock, until - this.#clock.monotonic(), () => {
      late = new BerthError("TIMED_OUT", `the API server at ${this.#tokens.server} does not answer`);
      exchange.breakOff(late);
    });
    this.#underWay.add(exchange);
    try {
      return await work(exchange);
    } catch (error) {
      throw late ?? this.#faultOf(error);
    } finally {
      stop();
      this.#underWay.delete(exchange);
    }
  }

  /** STORE_UNAVAILABLE, but a mistake of whoever calls is no fault of the API server's. */
  #faultOf(error: unknown): unknown {
    if (MISTAKES.some((kind) => error instanceof kind)) return error;
    // several addresses were tried: the words are in the parts
    const why = messageOf(error instanceof AggregateError ? error.errors[0] : error);
    const words = `the API server at ${this.#tokens.server} cannot be reached: ${why}`;
    return new BerthError("STORE_UNAVAILABLE", words, { cause: error });
  }
}

/** Most answers are JSON; a path that does not exist is answered in plain text. */
function parsed(text: string): unknown {
  try {
    return parsedWithoutManagedFields(text);
  } catch {
    return text;
  }
}
