// SPDX-License-Identifier: Apache-2.0
import { type Agent as AnyAgent, validateHeaderValue } from "node:http";
import { Agent, type RequestOptions } from "node:https";
import { alarmOf } from "../../allocator/base/alarm.ts";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";

/** Where the API server is and how it is asked: a KubeConfig of client-node, or what does the same. */
export interface ApiAccess {
  getCurrentCluster(): { readonly server: string; readonly proxyUrl?: string } | null;
  /** Adds authority, certificates and the token of this moment. Nobody waits for them any more once the options' `signal` aborts. */
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
}

/** How requests are sent now. */
export interface Credentials {
  /** Headers and basic authentication. */
  readonly options: RequestOptions;
  /** Keeps connections, for calls. */
  readonly calls: AnyAgent;
  /** Makes a connection for each watch. */
  readonly streams: AnyAgent;
}

interface Known extends Credentials {
  /** What the agents were made of: another authority or client certificate needs other agents. */
  readonly identity: string;
  /** Monotonic. */
  readonly readAt: number;
}

/** What a pool and 64 allocators can use; more wait in line here instead of shaking hands there. */
const MOST_SOCKETS = 64;
/** The API server closes an idle connection after 90 s, and a request that is on its way then is lost. */
const IDLE_MS = 55_000;
/** Files and plugins are not asked at every call; a projected token is renewed minutes before it expires. */
const FRESH_MS = 10_000;

/**
 * An agent for one API server. By default an agent makes a name of the host and of all certificates at each request, 10 kB of text, and
 * looks up its connections by it.
 */
class OneServerAgent extends Agent {
  override getName(): string {
    return "server"; // under an empty name no TLS session is kept, and each handshake is a full one
  }
}

/** A plugin that takes longer is ended. */
const PLUGIN_MS = 60_000;

interface Asking {
  readonly credentials: Promise<Credentials>;
  end(): void;
}

/** The credentials of a KubeConfig, asked for again when they are old or were refused. */
export class TokenSource {
  readonly #kubeConfig: ApiAccess;
  readonly #clock: Clock;
  #known: Known | undefined;
  #agents: Known | undefined;
  /** All who wait for credentials wait for the same. */
  #asking: Asking | undefined;
  /** Under way, with those that nobody new waits for. */
  readonly #askings = new Set<Asking>();
  readonly #refused = new WeakSet<Credentials>();
  readonly #longestMs: number;

  /** `https://host:port`, with a path where there is one. */
  readonly server: string;

  /** Throws CONFIG_INVALID for a KubeConfig without a cluster that is reached over TLS. */
  constructor(kubeConfig: ApiAccess, clock: Clock, loginMs = 0) {
    this.#kubeConfig = kubeConfig;
    this.#clock = clock;
    this.#longestMs = Math.max(PLUGIN_MS, loginMs);
    this.server = (kubeConfig.getCurrentCluster()?.server ?? "").replace(/\/$/, "");
    if (!this.server.startsWith("https://")) {
      const words = `the kubeconfig's cluster must have a server that begins with https://, not ${JSON.stringify(this.server)}`;
      throw new BerthError("CONFIG_INVALID", words);
    }
  }

  /**
   * Throws STORE_UNAVAILABLE when a token, certificate or plugin cannot be read, TIMED_OUT when that takes until then (monotonic): who waited
   * goes, and a plugin that is slow goes on for whoever comes next.
   */
  async current(until: number): Promise<Credentials> {
    const now = this.#clock.monotonic();
    if (this.#known !== undefined && now - this.#known.readAt < FRESH_MS) return this.#known;
    this.#asking ??= this.#ask();
    const { promise: late, reject } = Promise.withResolvers<never>();
    const words = `no credentials for the API server at ${this.server}: they do not come in time`;
    const stop = alarmOf(this.#clock, until - now, () => reject(new BerthError("TIMED_OUT", words)));
    try {
      return await Promise.race([this.#asking.credentials, late]);
    } finally {
      stop();
    }
  }

  #ask(): Asking {
    const ending = new AbortController();
    const credentials = this.#read(ending).then((options) => {
      const read = this.#made(options);
      // one that was given up may have begun before a refusal
      if (this.#asking === asking) this.#agents = this.#known = read;
      return read;
    });
    const asking: Asking = { credentials, end: () => ending.abort() };
    this.#askings.add(asking);
    const over = () => {
      this.#askings.delete(asking);
      if (this.#asking === asking) this.#asking = undefined;
    };
    credentials.then(over, over);
    return asking;
  }

  #made(options: RequestOptions): Known {
    const {
      agent,
      ca,
      cert,
      key,
      pfx,
      passphrase,
      servername,
      rejectUnauthorized,
      signal: _,
      ...rest
    } = options;
    const tls = { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized };
    const identity = JSON.stringify(tls, (_, value) => (Buffer.isBuffer(value) ? String(value) : value));
    const proxy = this.#kubeConfig.getCurrentCluster()?.proxyUrl !== undefined ? agent : undefined;
    const { calls, streams } = this.#agentsFor(identity, tls, typeof proxy === "object" ? proxy : undefined);
    return { options: rest, calls, streams, identity, readAt: this.#clock.monotonic() };
  }

  /** The API server did not know us (401) by these: the next call asks again, once for all calls that were sent with them. */
  refused(sent: Credentials): void {
    if (this.#refused.has(sent)) return;
    this.#refused.add(sent);
    this.#known = undefined;
    this.#asking = undefined; // it may have begun before
  }

  /** Closes idle connections; what is under way goes on. */
  close(): void {
    this.#known = undefined;
    closeIdle(this.#agents);
    this.#agents = undefined;
    for (const asking of this.#askings) asking.end();
  }

  async #read(asking: AbortController): Promise<RequestOptions> {
    const { promise: ended, reject } = Promise.withResolvers<never>();
    // who is asked may know more, and says it first
    const end = () => void setImmediate(reject, new Error("they do not come in time"));
    asking.signal.addEventListener("abort", end);
    const stop = alarmOf(this.#clock, this.#longestMs, () => asking.abort());
    const options: RequestOptions = { signal: asking.signal };
    try {
      await Promise.race([this.#kubeConfig.applyToHTTPSOptions(options), ended]);
      // a token of several lines is no mistake of who calls
      for (const [name, value] of Object.entries(options.headers ?? {}))
        validateHeaderValue(name, String(value));
      requireText({ cert: options.cert, key: options.key });
      return options;
    } catch (error) {
      const words = `no credentials for the API server at ${this.server}: ${messageOf(error)}`;
      const code = asking.signal.aborted ? "TIMED_OUT" : "STORE_UNAVAILABLE";
      throw new BerthError(code, words, { cause: error });
    } finally {
      stop();
    }
  }

  #agentsFor(
    identity: string,
    tls: RequestOptions,
    proxy: AnyAgent | undefined,
  ): Pick<Credentials, "calls" | "streams"> {
    if (this.#agents?.identity === identity) return this.#agents;
    closeIdle(this.#agents);
    if (proxy !== undefined) return { calls: proxy, streams: proxy };
    const given = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
    return {
      calls: new OneServerAgent({ ...given, keepAlive: true, maxSockets: MOST_SOCKETS, timeout: IDLE_MS }),
      streams: new OneServerAgent({ ...given, keepAlive: false }),
    };
  }
}

/** A plugin may print anything. Throws for what TLS would take for a mistake of who calls. */
function requireText(parts: Readonly<Record<string, unknown>>): void {
  for (const [name, part] of Object.entries(parts)) {
    if (part === undefined || typeof part === "string" || Buffer.isBuffer(part)) continue;
    throw new Error(`the client's ${name} is no text`);
  }
}

function closeIdle(agents: Credentials | undefined): void {
  for (const sockets of Object.values(agents?.calls.freeSockets ?? {})) {
    for (const socket of sockets ?? []) socket.destroy();
  }
}
