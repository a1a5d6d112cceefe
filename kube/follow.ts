// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../allocator/errors.ts";
import type { Clock, Logger, Random } from "../allocator/ports.ts";
import { Backoff } from "./backoff.ts";
import { Client, type Selection } from "./client.ts";
import type { Connection } from "./connection.ts";
import type { Item, Resource } from "./resource.ts";
import { Expired, NotOffered, type WatchEvent, watchOnce } from "./watch.ts";

/** As the store's Change, of objects: `relist`, every object as `put`, `synced`, then changes in order. */
export type ItemChange =
  | { readonly type: "relist" }
  | { readonly type: "synced" }
  | { readonly type: "put"; readonly item: Item }
  /** As it was last. */
  | { readonly type: "gone"; readonly item: Item };

export interface FollowOptions {
  readonly connection: Connection;
  readonly resource: Resource;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly selection?: Selection;
  /** How a full pass is made: by a watch that begins with everything (WatchList), or by pages. Default `stream`. */
  readonly pass?: "stream" | "pages";
  /** Objects in a page, default 500. */
  readonly pageSize?: number;
  /** Default 100 s: bookmarks come every minute. */
  readonly idleMs?: number;
  /** The API server is asked to end a watch after this and up to twice as long; default 300 s. */
  readonly watchSeconds?: number;
}

const PAGE_SIZE = 500;
const IDLE_MS = 100_000;
const WATCH_SECONDS = 300;
/** client-go's: from 800 ms to 30 s. */
const BACKOFF = { base: 800, longest: 30_000 };
/** A watch that lived so long was no failure, even if it said nothing. */
const HEALTHY_MS = 10_000;

/**
 * Lists and watches a resource until `signal` aborts. Never ends before and never throws: it resumes where it was,
 * waits longer after each failure, and makes a full pass again when the API server does not remember that far back.
 * Backs off the API server too when the consumer is slow.
 */
export function follow(options: FollowOptions, signal: AbortSignal): AsyncGenerator<ItemChange, void, void> {
  return new Follower(options, signal).run();
}

/** Where a watch is that began with a full pass. */
interface Streaming {
  pass: "none" | "asked" | "running";
}

class Follower {
  readonly #options: FollowOptions;
  readonly #signal: AbortSignal;
  readonly #client: Client;
  readonly #backoff: Backoff;
  #pass: "stream" | "pages";
  /** How far it has come; undefined before a full pass. */
  #at: string | undefined;

  constructor(options: FollowOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#client = new Client(options.connection, options.resource);
    this.#backoff = new Backoff(BACKOFF, options.random);
    this.#pass = options.pass ?? "stream";
  }

  async *run(): AsyncGenerator<ItemChange, void, void> {
    const { clock } = this.#options;
    while (!this.#signal.aborted) {
      const began = clock.monotonic();
      try {
        if (this.#at === undefined && this.#pass === "pages") yield* this.#list();
        else yield* this.#watch();
        if (clock.monotonic() - began >= HEALTHY_MS) this.#backoff.reset();
        else if (!this.#signal.aborted) await this.#wait("it ended soon");
      } catch (error) {
        if (this.#signal.aborted) return;
        await this.#recover(error);
      }
    }
  }

  async *#list(): AsyncGenerator<ItemChange, void, void> {
    let at: string | undefined;
    for await (const page of this.#client.pages(this.#selection, this.#options.pageSize ?? PAGE_SIZE)) {
      if (this.#signal.aborted) return;
      if (at === undefined) yield { type: "relist" };
      at = page.resourceVersion;
      for (const item of page.items) {
        if (this.#signal.aborted) return;
        yield { type: "put", item };
      }
    }
    if (this.#signal.aborted) return;
    yield { type: "synced" };
    this.#at = at;
    yield* this.#watch();
  }

  /** Goes on from where it was; from nowhere, the watch begins with everything there is. */
  async *#watch(): AsyncGenerator<ItemChange, void, void> {
    const streaming: Streaming = { pass: this.#at === undefined ? "asked" : "none" };
    for await (const event of watchOnce(this.#watchOptions(), this.#signal)) {
      for (const change of this.#changesOf(event, streaming)) {
        if (this.#signal.aborted) return;
        yield change;
      }
      this.#backoff.reset();
    }
  }

  #changesOf(event: WatchEvent, streaming: Streaming): readonly ItemChange[] {
    const changes: ItemChange[] = [];
    if (streaming.pass === "asked") {
      changes.push({ type: "relist" });
      streaming.pass = "running";
    }
    if (event.type !== "bookmark") {
      changes.push({ type: event.type, item: event.item });
    } else if (streaming.pass === "running" && event.initialEventsEnd) {
      changes.push({ type: "synced" });
      streaming.pass = "none";
    }
    // what breaks off in the middle of a full pass has come nowhere
    if (streaming.pass === "none" && event.resourceVersion !== "") this.#at = event.resourceVersion;
    return changes;
  }

  get #selection(): Selection {
    return this.#options.selection ?? {};
  }

  #watchOptions() {
    const { clock, random, watchSeconds = WATCH_SECONDS, idleMs = IDLE_MS } = this.#options;
    const from =
      this.#at === undefined
        ? { sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" }
        : { resourceVersion: this.#at };
    const timeoutSeconds = String(Math.round(watchSeconds * (1 + random.fraction())));
    const query = { ...from, allowWatchBookmarks: "true", timeoutSeconds };
    return { client: this.#client, clock, selection: this.#selection, query, idleMs };
  }

  async #recover(error: unknown): Promise<void> {
    if (error instanceof NotOffered && this.#at === undefined && this.#pass === "stream") {
      this.#pass = "pages";
      return;
    }
    if (error instanceof NotOffered || error instanceof Expired) this.#at = undefined;
    await this.#wait(messageOf(error), error instanceof BerthError ? error.code : undefined);
  }

  async #wait(why: string, code?: string): Promise<void> {
    const { clock, log, resource } = this.#options;
    const ms = Math.round(this.#backoff.next());
    log.warn("watch is interrupted", { kind: resource.kind, error: why, code, ms });
    await clock.sleep(ms, this.#signal);
  }
}
