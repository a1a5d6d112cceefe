// SPDX-License-Identifier: Apache-2.0

import { Backoff } from "../../allocator/base/backoff.ts";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";
import { Client, type Selection } from "../api/client.ts";
import type { Connection } from "../api/connection.ts";
import { type KubeItem, kindName, type Resource } from "../api/resource.ts";
import { GoneError, UnsupportedError, type WatchEvent, watchOnce } from "./watch.ts";
import type { WatchMetrics, WatchReporter } from "./watch-metrics.ts";

/** As the store's Change, of objects: `relist`, every object as `put`, `synced`, then changes in order. */
export type ItemChange =
  | { readonly type: "relist" }
  | { readonly type: "synced" }
  | { readonly type: "put"; readonly item: KubeItem }
  /** As it was last. */
  | { readonly type: "gone"; readonly item: KubeItem };

export interface ListWatchOptions {
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
  /** Told how the watch is. */
  readonly health?: WatchMetrics;
}

const PAGE_SIZE = 500;
const IDLE_MS = 100_000;
const WATCH_SECONDS = 300;
/** client-go's, but that it ends at 10 s instead of 30: until it asks again it is blind, be the API server back or not. */
const BACKOFF = { base: 800, longest: 10_000 };
/** Events before others have their turn, in less than 10 ms: a full pass comes as fast as it is read. */
const IN_A_TURN = 100;
/** Two clocks that count the same minutes may differ by so much. */
const EARLY_MS = 1_000;
/** A watch that lived so long was no failure, even if it said nothing. */
const HEALTHY_MS = 10_000;
const BY_NAME = "metadata.name=";
/** No object's name, most likely. */
const NOBODY = "nobody.berth.dev";
/** Of a selection of all namespaces. */
const ANY_NAMESPACE = "default";

/**
 * Lists and watches a resource until `signal` aborts. Never ends before and never throws: it resumes where it was,
 * waits longer after each failure, and makes a full pass again when the API server does not remember that far back.
 * Backs off the API server too when the consumer is slow.
 */
export function listAndWatch(
  options: ListWatchOptions,
  signal: AbortSignal,
): AsyncGenerator<ItemChange, void, void> {
  return new ListWatch(options, signal).run();
}

/** Where a watch is that began with a full pass. */
interface Streaming {
  pass: "none" | "asked" | "running";
}

class ListWatch {
  readonly #options: ListWatchOptions;
  readonly #signal: AbortSignal;
  readonly #client: Client;
  readonly #backoff: Backoff;
  readonly #health: WatchReporter | undefined;
  #pass: "stream" | "pages";
  #sinceYield = 0;
  /** How far it has come; undefined before a full pass. */
  #at: string | undefined;
  /** The API server was away or silent, or went away: it may have come back with an older etcd. */
  #doubtful = false;

  constructor(options: ListWatchOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#client = new Client(options.connection, options.resource);
    this.#backoff = new Backoff(BACKOFF, options.random);
    this.#pass = options.pass ?? "stream";
    this.#health = options.health?.of(options.resource);
  }

  async *run(): AsyncGenerator<ItemChange, void, void> {
    const { clock } = this.#options;
    while (!this.#signal.aborted) {
      const began = clock.monotonic();
      try {
        if (this.#doubtful) await this.#checkHistory();
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
      this.#health?.heard();
      if (at === undefined) yield this.#relist();
      at = page.resourceVersion;
      for (const item of page.items) {
        if (this.#signal.aborted) return;
        yield { type: "put", item };
        if (this.#isTurnOver()) await this.#options.clock.sleep(0, this.#signal);
      }
    }
    if (this.#signal.aborted) return;
    yield this.#synced();
    this.#at = at;
    yield* this.#watch();
  }

  #relist(): ItemChange {
    this.#health?.relists();
    return { type: "relist" };
  }

  #synced(): ItemChange {
    this.#health?.synced();
    return { type: "synced" };
  }

  /**
   * A watch from a revision that an etcd restored from a snapshot has yet to reach says nothing until it is reached, and
   * never what happened before. So where it was must lie in the past.
   */
  async #checkHistory(): Promise<void> {
    if (this.#at !== undefined) {
      const selection = leastOf(this.#selection, this.#options.resource);
      for await (const { resourceVersion } of this.#client.pages(selection, 1)) {
        if (isBefore(resourceVersion, this.#at)) this.#at = undefined;
        break;
      }
    }
    this.#doubtful = false;
  }

  /** Goes on from where it was; from nowhere, the watch begins with everything there is. */
  async *#watch(): AsyncGenerator<ItemChange, void, void> {
    const streaming: Streaming = { pass: this.#at === undefined ? "asked" : "none" };
    const { clock } = this.#options;
    const options = this.#watchOptions();
    const until = clock.monotonic() + Number(options.query.timeoutSeconds) * 1_000;
    for await (const event of watchOnce(options, this.#signal)) {
      this.#health?.heard();
      for (const change of this.#changesOf(event, streaming)) {
        if (this.#signal.aborted) return;
        yield change;
      }
      if (this.#isTurnOver()) await clock.sleep(0, this.#signal);
      this.#backoff.reset();
    }
    // one that is shut down ends its watches in order, and does so before their time
    if (clock.monotonic() < until - EARLY_MS) this.#doubtful = true;
  }

  #changesOf(event: WatchEvent, streaming: Streaming): readonly ItemChange[] {
    const changes: ItemChange[] = [];
    if (streaming.pass === "asked") {
      changes.push(this.#relist());
      streaming.pass = "running";
    }
    if (event.type !== "bookmark") {
      changes.push({ type: event.type, item: event.item });
    } else if (streaming.pass === "running" && event.initialEventsEnd) {
      changes.push(this.#synced());
      streaming.pass = "none";
    }
    // what breaks off in the middle of a full pass has come nowhere
    if (streaming.pass === "none" && event.resourceVersion !== "") this.#at = event.resourceVersion;
    return changes;
  }

  /** Everything that is read at once would be worked off before a timer or another connection had its turn. */
  #isTurnOver(): boolean {
    this.#sinceYield = (this.#sinceYield + 1) % IN_A_TURN;
    return this.#sinceYield === 0;
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
    if (error instanceof UnsupportedError && this.#at === undefined && this.#pass === "stream") {
      this.#pass = "pages";
      return;
    }
    // it answers again: what was missed since is not to wait for the end of a long back-off
    if (error instanceof GoneError && this.#at !== undefined) this.#backoff.reset();
    if (error instanceof UnsupportedError || error instanceof GoneError) this.#at = undefined;
    else this.#doubtful = true;
    await this.#wait(messageOf(error), error instanceof BerthError ? error.code : undefined);
  }

  async #wait(why: string, code?: string): Promise<void> {
    const { clock, log, resource } = this.#options;
    const ms = Math.round(this.#backoff.next());
    this.#health?.interrupted(code ?? "ENDED");
    log.warn("watch is interrupted", { kind: kindName(resource), error: why, code, ms });
    await clock.sleep(ms, this.#signal);
  }
}

/**
 * A list that says how far the API server has come and costs it one look-up, for thousands of nodes whose watches ended together: what is
 * selected by a name in a namespace is found by that alone. For any other selector it may have to read all of a kind, and any one object
 * is as large as whoever made it likes. Of an account that may list one name alone that name is asked for.
 */
function leastOf({ namespace, fieldSelector }: Selection, { namespaced }: Resource): Selection {
  return {
    ...(namespaced && { namespace: namespace ?? ANY_NAMESPACE }),
    fieldSelector: fieldSelector?.startsWith(BY_NAME) === true ? fieldSelector : `${BY_NAME}${NOBODY}`,
  };
}

/** Revisions of one resource are decimal numbers that grow (KEP-5504); what looks otherwise says nothing. */
function isBefore(revision: string, other: string): boolean {
  const number = /^\d+$/;
  return number.test(revision) && number.test(other) && BigInt(revision) < BigInt(other);
}
