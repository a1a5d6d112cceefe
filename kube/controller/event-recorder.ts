// SPDX-License-Identifier: Apache-2.0

import { Backoff } from "../../allocator/base/backoff.ts";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";

/** The object that an event is about. */
export interface InvolvedObject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for a cluster-scoped object, whose events lie in `default`. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
}

/** What `kubectl describe` shows below an object. */
export interface EventInput {
  readonly regarding: InvolvedObject;
  readonly type: "Normal" | "Warning";
  /** UpperCamelCase, for machines: AddressTaken. */
  readonly reason: string;
  /** What was being done, UpperCamelCase: Reserving. */
  readonly action: string;
  /** For people. */
  readonly note: string;
}

/** An event as it is sent, and how often it happened. */
export interface Series {
  readonly namespace: string;
  readonly name: string;
  readonly notice: EventInput;
  /** Milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
}

/** Where events go. Throws BerthError. */
export interface EventSink {
  create(series: Series): Promise<void>;
  /** Writes count and last time; false when the event is gone. */
  count(series: Series): Promise<boolean>;
}

interface EventRecorderOptions {
  readonly sink: EventSink;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

interface Open extends Series {
  /** What of the count is written; 0: the event is not made yet. */
  readonly written: number;
  /** Monotonic: not written again before. */
  readonly dueAt: number;
  /** Monotonic: of the last occurrence. */
  readonly seenAt: number;
  /** How often the sink could not take it. */
  readonly tries: number;
}

/** A namespace whose events the sink does not take at the moment. */
interface Held {
  /** Monotonic: none of its events is sent before. */
  readonly until: number;
  readonly backoff: Backoff;
}

/** What did not happen for so long is a new event when it happens again (client-go: finishTime). */
const SERIES_MS = 6 * 60_000;
/** An event that goes on is written once a minute. */
const COUNT_MS = 60_000;
/** More different events than that waiting to be sent are a defect, and must not take the API server along. */
const MOST_OPEN = 1_000;
/** The API server's limits: of a note, and of a name less the suffix of a token and a point. */
const LONGEST_NOTE = 1_024;
const LONGEST_NAME = 253 - 27;
const RETRY = { base: 1_000, longest: 60_000 };
/** Some ten minutes: what cannot be sent for so long by itself is of no use any more. */
const MOST_TRIES = 20;
const ENDED = AbortSignal.abort();
/** Of the last round after the abort: a call that has begun may take its 10 s besides, and whoever ends has some 25 s for all. */
const LAST_ROUND_MS = 5_000;
const LEAST_LAST_ROUND_MS = 1_000;

/**
 * Records events: the same thing about the same object is one event with a count. Recording neither waits nor throws;
 * events that cannot be sent are kept for a while, and lost when there are too many.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #backoff: Backoff;
  readonly #open = new Map<string, Open>(); // what happened to what -> its event
  readonly #held = new Map<string, Held>(); // namespace -> until when its events wait
  #wake: () => void = () => {};

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#backoff = new Backoff(RETRY, options.random);
  }

  record(notice: EventInput): void {
    const { clock, random, log } = this.#options;
    const cut = { ...notice, note: cutTo(notice.note, LONGEST_NOTE) };
    const key = JSON.stringify(cut);
    const [lastAt, seenAt] = [clock.now(), clock.monotonic()];
    const known = this.#open.get(key);
    if (known !== undefined && seenAt - known.seenAt < SERIES_MS) {
      this.#open.set(key, { ...known, count: known.count + 1, lastAt, seenAt });
    } else if (known === undefined && this.#open.size >= MOST_OPEN && !this.#makeRoom(notice)) {
      log.warn("event is lost, there are too many", { reason: notice.reason });
    } else {
      const { namespace = "default", name } = notice.regarding;
      const place = { namespace, name: nameOf(name, random), notice: cut, firstAt: lastAt, lastAt };
      this.#open.set(key, { ...place, count: 1, written: 0, dueAt: seenAt, seenAt, tries: 0 });
    }
    this.#wake();
  }

  /**
   * The oldest of those that were sent: should it happen again, that is a new event. Else the oldest of a namespace whose
   * events cannot be sent: it must not take the place of others'. Else the newest of the namespace that has the most, unless it is that
   * of the new one. False when there is none of these.
   */
  #makeRoom({ regarding }: EventInput): boolean {
    for (const [key, { written, count }] of this.#open) {
      if (written === count) return this.#open.delete(key);
    }
    for (const [key, { namespace, notice }] of this.#open) {
      if (!this.#held.has(namespace)) continue;
      this.#options.log.warn("event is lost, there are too many", { reason: notice.reason });
      return this.#open.delete(key);
    }
    const lost = this.#newestOfMost(regarding.namespace ?? "default");
    if (lost === undefined) return false;
    this.#options.log.warn("event is lost, there are too many", { reason: lost.reason });
    return this.#open.delete(lost.key);
  }

  /** Of the namespace that has the most events waiting, if it has more than the other would have. */
  #newestOfMost(other: string): { readonly key: string; readonly reason: string } | undefined {
    const byNamespace = Map.groupBy(this.#open, ([, { namespace }]) => namespace);
    const most = [...byNamespace.values()].toSorted((a, b) => b.length - a.length)[0] ?? [];
    const [key, open] = most.at(-1) ?? [];
    const isMore = most.length > (byNamespace.get(other)?.length ?? 0) + 1;
    return key === undefined || open === undefined || !isMore
      ? undefined
      : { key, reason: open.notice.reason };
  }

  /** Sends until `signal` aborts, and then what is waiting, once and for a few seconds. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let abortedAt = clock.monotonic();
    signal.addEventListener("abort", () => (abortedAt = clock.monotonic()), { once: true });
    while (!signal.aborted) {
      await this.#send(signal);
      await this.#rest(signal);
    }
    // the call that was under way may have taken longer, and says nothing of the other events
    await this.#sendLast(Math.max(abortedAt + LAST_ROUND_MS, clock.monotonic() + LEAST_LAST_ROUND_MS));
  }

  /** Each event at most once: one that could not be sent goes behind the others, where a walk over them all meets it again. */
  async #sendLast(until: number): Promise<void> {
    const { clock } = this.#options;
    for (const [key, open] of [...this.#open]) {
      const now = clock.monotonic();
      if (now >= until) return;
      if (open.written === open.count || this.#heldUntil(open) > now) continue;
      if (!(await this.#write(key, open, ENDED))) return;
    }
  }

  async #send(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (const [key, open] of this.#open) {
      const now = clock.monotonic();
      if (open.written === open.count && now - open.seenAt >= SERIES_MS) this.#open.delete(key);
      if (open.written < open.count && this.#dueAt(open) <= now) await this.#write(key, open, signal);
      if (signal.aborted) return;
    }
  }

  /** Until something new is recorded, or an event is due or over. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    for (const [namespace, { until }] of this.#held) {
      if (until + SERIES_MS <= clock.monotonic()) this.#held.delete(namespace);
    }
    const moments = [...this.#open.values()].map((open) =>
      open.written < open.count ? this.#dueAt(open) : open.seenAt + SERIES_MS,
    );
    const next = Math.min(...moments, clock.monotonic() + SERIES_MS);
    await clock.sleep(next - clock.monotonic(), AbortSignal.any([signal, woken.signal]));
    this.#wake = () => {};
  }

  #dueAt(open: Open): number {
    return Math.max(open.dueAt, this.#heldUntil(open));
  }

  #heldUntil({ namespace }: Open): number {
    return this.#held.get(namespace)?.until ?? Number.NEGATIVE_INFINITY;
  }

  /** False when the sink cannot be reached; then it waits. What the sink refuses is given up. */
  async #write(key: string, open: Open, signal: AbortSignal): Promise<boolean> {
    const { sink, clock, log } = this.#options;
    try {
      if (open.written === 0) await sink.create(open);
      else if (!(await sink.count(open))) this.#open.delete(key);
      this.#backoff.reset();
      this.#held.delete(open.namespace);
      this.#note(key, open);
      return true;
    } catch (error) {
      if (isUnreachable(error)) {
        await clock.sleep(this.#backoff.next(), signal);
        return false;
      }
      this.#backoff.reset();
      if (isTemporary(error) && open.tries < MOST_TRIES) {
        this.#putOff(key, open);
      } else {
        log.warn("event is refused", { reason: open.notice.reason, error: messageOf(error) });
        this.#open.delete(key);
      }
      return true;
    }
  }

  /**
   * A webhook or a policy of one namespace may be what fails: its events wait for a while, others' do not. It goes behind
   * the others: if it alone is what cannot be sent, they are sent before its next try.
   */
  #putOff(key: string, { namespace, tries }: Open): void {
    const { clock, random } = this.#options;
    const now = clock.monotonic();
    const backoff = this.#held.get(namespace)?.backoff ?? new Backoff(RETRY, random);
    this.#held.set(namespace, { backoff, until: now + backoff.next() });
    const open = this.#open.get(key);
    this.#open.delete(key);
    if (open === undefined) return; // to make room for others'
    const dueAt = now + Math.min(RETRY.longest, RETRY.base * 2 ** tries);
    this.#open.set(key, { ...open, tries: tries + 1, dueAt });
  }

  /** It may have happened again meanwhile: only what was sent is written. */
  #note(key: string, sent: Open): void {
    const open = this.#open.get(key);
    if (open?.name !== sent.name) return;
    const dueAt = this.#options.clock.monotonic() + COUNT_MS;
    this.#open.set(key, { ...open, written: sent.count, dueAt, tries: 0 });
  }
}

/** It passes, or may. */
function isTemporary(error: unknown): error is BerthError {
  return error instanceof BerthError && ["STORE_UNAVAILABLE", "TIMED_OUT"].includes(error.code);
}

/** Nothing was answered, so that every other event would meet the same; one that takes too long may be alone. */
function isUnreachable(error: unknown): boolean {
  return isTemporary(error) && error.code === "STORE_UNAVAILABLE" && error.details["status"] === undefined;
}

/** A part of the name that is cut after a `-` or a point would be no name in Kubernetes. */
function nameOf(name: string, random: Random): string {
  return `${name.slice(0, LONGEST_NAME).replace(/[-.]+$/, "")}.${random.token()}`;
}

/** At most so many bytes of UTF-8, and no half characters. */
function cutTo(text: string, bytes: number): string {
  const encoded = Buffer.from(text);
  if (encoded.length <= bytes) return text;
  let end = bytes - 3; // of "…"
  while (((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${encoded.subarray(0, end).toString("utf8")}…`;
}
