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
const ENDED = AbortSignal.abort();

/**
 * Records events: the same thing about the same object is one event with a count. Recording neither waits nor throws;
 * events that cannot be sent are kept for a while, and lost when there are too many.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #backoff: Backoff;
  readonly #open = new Map<string, Open>(); // what happened to what -> its event
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
    } else if (known === undefined && this.#open.size >= MOST_OPEN && !this.#forgetWritten()) {
      log.warn("event is lost, there are too many", { reason: notice.reason });
    } else {
      const { namespace = "default", name } = notice.regarding;
      const named = `${name.slice(0, LONGEST_NAME)}.${random.token()}`;
      const place = { namespace, name: named, notice: cut, firstAt: lastAt, lastAt };
      this.#open.set(key, { ...place, count: 1, written: 0, dueAt: seenAt, seenAt });
    }
    this.#wake();
  }

  /** The oldest of those that were sent: should it happen again, that is a new event. False when all are waiting. */
  #forgetWritten(): boolean {
    for (const [key, { written, count }] of this.#open) {
      if (written === count) return this.#open.delete(key);
    }
    return false;
  }

  /** Sends until `signal` aborts, and then once more what is waiting. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#send(signal);
      await this.#rest(signal);
    }
    for (const [key, open] of this.#open) {
      if (open.written < open.count && !(await this.#write(key, open, ENDED))) return;
    }
  }

  async #send(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    for (const [key, open] of this.#open) {
      const now = clock.monotonic();
      if (open.written === open.count && now - open.seenAt >= SERIES_MS) this.#open.delete(key);
      if (open.written < open.count && open.dueAt <= now) await this.#write(key, open, signal);
      if (signal.aborted) return;
    }
  }

  /** Until something new is recorded, or an event is due or over. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const moments = [...this.#open.values()].map((open) =>
      open.written < open.count ? open.dueAt : open.seenAt + SERIES_MS,
    );
    const next = Math.min(...moments, clock.monotonic() + SERIES_MS);
    await clock.sleep(next - clock.monotonic(), AbortSignal.any([signal, woken.signal]));
    this.#wake = () => {};
  }

  /** False when the sink cannot be reached; then it waits. What the sink refuses is given up. */
  async #write(key: string, open: Open, signal: AbortSignal): Promise<boolean> {
    const { sink, clock, log } = this.#options;
    try {
      if (open.written === 0) await sink.create(open);
      else if (!(await sink.count(open))) this.#open.delete(key);
      this.#backoff.reset();
      this.#note(key, open);
      return true;
    } catch (error) {
      const temporary =
        error instanceof BerthError && ["STORE_UNAVAILABLE", "TIMED_OUT"].includes(error.code);
      if (temporary) {
        await clock.sleep(this.#backoff.next(), signal);
        return false;
      }
      log.warn("event is refused", { reason: open.notice.reason, error: messageOf(error) });
      this.#open.delete(key);
      return true;
    }
  }

  /** It may have happened again meanwhile: only what was sent is written. */
  #note(key: string, sent: Open): void {
    const open = this.#open.get(key);
    if (open?.name !== sent.name) return;
    const dueAt = this.#options.clock.monotonic() + COUNT_MS;
    this.#open.set(key, { ...open, written: sent.count, dueAt });
  }
}

/** At most so many bytes of UTF-8, and no half characters. */
function cutTo(text: string, bytes: number): string {
  const encoded = Buffer.from(text);
  if (encoded.length <= bytes) return text;
  let end = bytes - 3; // of "…"
  while (((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${encoded.subarray(0, end).toString("utf8")}…`;
}
