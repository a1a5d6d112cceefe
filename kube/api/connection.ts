// SPDX-License-Identifier: Apache-2.0
import type { Agent, IncomingMessage } from "node:http";
import { request } from "node:https";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { type ApiAccess, type Credentials, TokenSource } from "./credentials.ts";
import { LargeBodies } from "./large-bodies.ts";
import { linesOf } from "./lines.ts";
import { parsedWithoutManagedFields } from "./managed-fields.ts";

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
}

const TIMEOUT_MS = 10_000;
const RETRY_MS = 1_000;

/**
 * Connects with the server, authority and credentials of a KubeConfig. client-node's own typed calls are not used:
 * in 2.0 each makes a TLS connection of its own, and none has a deadline.
 */
export function connect(kubeConfig: ApiAccess, deps: ConnectionDeps): Connection {
  return new HttpsConnection(kubeConfig, deps);
}

/** Where a request goes, and until when (monotonic). */
interface Way {
  readonly credentials: Credentials;
  readonly agent: Agent;
  readonly until: number;
  readonly ends: AbortSignal;
}

class HttpsConnection implements Connection {
  readonly #tokens: TokenSource;
  readonly #clock: Clock;
  readonly #userAgent: string;
  readonly #onTime: ((serverMs: number) => void) | undefined;
  readonly #bodies: LargeBodies;
  readonly #closing = new AbortController();

  constructor(kubeConfig: ApiAccess, deps: ConnectionDeps) {
    this.#tokens = new TokenSource(kubeConfig, deps.clock);
    this.#clock = deps.clock;
    this.#bodies = new LargeBodies(deps.clock);
    this.#userAgent = deps.userAgent;
    this.#onTime = deps.onTime;
  }

  async call(call: Call): Promise<Answer> {
    const until = this.#clock.monotonic() + (call.timeoutMs ?? TIMEOUT_MS);
    let refused = false;
    for (;;) {
      const { answer, retryMs } = await this.#exchange(call, until);
      if (answer.status === 401 && !refused) {
        refused = true; // a token may have been exchanged since it was read
        this.#tokens.refused();
      } else if (answer.status === 429 && this.#clock.monotonic() + retryMs < until) {
        await this.#clock.sleep(retryMs, this.#closing.signal);
      } else {
        return answer;
      }
    }
  }

  async stream(call: Call, signal: AbortSignal): Promise<Stream | Answer> {
    const credentials = await this.#credentials();
    const until = this.#clock.monotonic() + (call.timeoutMs ?? TIMEOUT_MS);
    const ends = AbortSignal.any([signal, this.#closing.signal]);
    const response = await this.#send(call, { credentials, agent: credentials.streams, until, ends });
    if (response.statusCode === 200) return { lines: linesOf(response, (error) => this.#unreachable(error)) };
    if (response.statusCode === 401) this.#tokens.refused();
    return await this.#read(response, until, call.mostBytes);
  }

  close(): void {
    this.#closing.abort();
    this.#tokens.close();
  }

  async #credentials(): Promise<Credentials> {
    if (this.#closing.signal.aborted)
      throw new BerthError("STORE_UNAVAILABLE", "the connection to the API server is closed");
    return await this.#tokens.current();
  }

  async #exchange(call: Call, until: number): Promise<{ answer: Answer; retryMs: number }> {
    const credentials = await this.#credentials();
    const way = { credentials, agent: credentials.calls, until, ends: this.#closing.signal };
    const response = await this.#send(call, way);
    const answer = await this.#read(response, until, call.mostBytes);
    const seconds = Number(response.headers["retry-after"]);
    return { answer, retryMs: seconds > 0 ? seconds * 1000 : RETRY_MS };
  }

  /** Sends, and waits for the head of the answer. */
  async #send(call: Call, { credentials, agent, until, ends }: Way): Promise<IncomingMessage> {
    const url = new URL(this.#tokens.server + call.path);
    for (const [key, value] of Object.entries(call.query ?? {})) url.searchParams.set(key, value);
    const body = call.body === undefined ? undefined : Buffer.from(JSON.stringify(call.body));
    const about = {
      "content-type": call.contentType ?? "application/json",
      "content-length": body?.length ?? 0,
    };
    const headers = {
      ...credentials.options.headers,
      accept: "application/json",
      "user-agent": this.#userAgent,
      ...(body === undefined ? {} : about),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = { ...credentials.options, method: call.method, agent, signal: ends, headers };
    const sent = request(url, options, resolve);
    sent.on("error", reject);
    sent.end(body);
    const response = await this.#within(promise, until, (late) => sent.destroy(late));
    const serverMs = Date.parse(response.headers.date ?? "");
    if (!Number.isNaN(serverMs)) this.#onTime?.(serverMs);
    return response;
  }

  async #read(response: IncomingMessage, until: number, mostBytes?: number): Promise<Answer> {
    const whole = this.#bodies.read(response, mostBytes);
    const bytes = await this.#within(whole, until, (late) => response.destroy(late));
    const status = response.statusCode ?? 0;
    if (bytes === undefined) return { status, body: undefined, isTooLarge: true };
    const warnings = warningsIn(response.headersDistinct["warning"] ?? []);
    const size = mostBytes === undefined ? {} : { bytes: bytes.length };
    const answer = { status, body: parsed(bytes.toString("utf8")), ...size };
    return warnings.length === 0 ? answer : { ...answer, warnings };
  }

  /** Waits until the deadline, and then gives up in a way that makes the work fail. */
  async #within<T>(work: Promise<T>, until: number, giveUp: (late: Error) => void): Promise<T> {
    let late: BerthError | undefined; // made when it is needed: every call passes here twice
    const done = new AbortController();
    const timer = this.#clock.sleep(until - this.#clock.monotonic(), done.signal).then(() => {
      if (done.signal.aborted) return;
      late = new BerthError("TIMED_OUT", `the API server at ${this.#tokens.server} does not answer`);
      giveUp(late);
    });
    try {
      return await work;
    } catch (error) {
      throw late !== undefined && error === late ? late : this.#unreachable(error);
    } finally {
      done.abort("done");
      await timer;
    }
  }

  #unreachable(error: unknown): BerthError {
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

/** `299 - "text"`, one or more in each header (RFC 7234, 5.5); what looks otherwise is passed over. */
function warningsIn(headers: readonly string[]): readonly string[] {
  return headers.flatMap((header) => {
    const found = header.matchAll(/\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g);
    return [...found].map(([, text = ""]) => text.replaceAll(/\\(.)/g, "$1"));
  });
}
