// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage } from "node:http";
import type { Clock } from "../../allocator/base/ports.ts";

/** A record of Berth's has 2 KB, what a page of 500 pods has is more. */
const LARGE_BYTES = 128 * 1024;
/** Of 4 MiB at most each, where the call bounds them: an object has 1.5 MB at most, which whoever writes it decides. */
const AT_ONCE = 8;

/** Nothing has come for so long: the connection is dead, perhaps, and then until the call's time is over. */
const STALLED_MS = 2_000;

/** Of one large body that is being read. */
interface Place {
  /** When something came last. Monotonic, ms. */
  at: number;
  /** Another body is read instead, as long as nothing comes of this one. */
  isStalled: boolean;
}

/**
 * Reads bodies of answers, few large ones at a time, however many calls there are: the others wait where they are on the way, until
 * their calls' time is over. Those of which nothing comes any more keep nobody waiting: as many again are read beside them.
 */
export class LargeBodies {
  readonly #clock: Pick<Clock, "monotonic" | "sleep">;
  #left = AT_ONCE;
  readonly #places = new Set<Place>();
  readonly #waiting = new Set<() => void>();

  constructor(clock: Pick<Clock, "monotonic" | "sleep">) {
    this.#clock = clock;
  }

  /** Undefined when it has more bytes than that; the connection is closed then, and no more arrives. */
  async read(response: IncomingMessage, mostBytes = Number.POSITIVE_INFINITY): Promise<Buffer | undefined> {
    const { chunks, isWhole } = await beginning(response, Math.min(LARGE_BYTES, mostBytes));
    let bytes = lengthOf(chunks);
    if (isWhole) return joined(chunks);
    if (bytes > mostBytes) {
      response.destroy();
      return undefined;
    }
    const place = await this.#enter(response);
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > mostBytes) return undefined;
        chunks.push(chunk);
        if (place !== undefined) place.at = this.#clock.monotonic();
      }
      return joined(chunks);
    } finally {
      if (place !== undefined) this.#leave(place);
    }
  }

  /** A place once there is room; undefined if the response has ended, in its time or not: nothing more of it arrives. */
  async #enter(response: IncomingMessage): Promise<Place | undefined> {
    if (this.#left > 0) this.#left--;
    else if (response.closed || !(await this.#admitted(response))) return undefined;
    const place = { at: this.#clock.monotonic(), isStalled: false };
    this.#places.add(place);
    return place;
  }

  async #admitted(response: IncomingMessage): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const enter = () => resolve(true);
    const leave = () => {
      if (this.#waiting.delete(enter)) resolve(false);
    };
    const over = new AbortController();
    this.#waiting.add(enter);
    response.once("close", leave);
    const looking = this.#passStalledWhile(over.signal);
    try {
      return await promise;
    } finally {
      response.off("close", leave);
      over.abort();
      await looking;
    }
  }

  async #passStalledWhile(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(STALLED_MS, signal);
      if (!signal.aborted) this.#passStalled();
    }
  }

  #passStalled(): void {
    const before = this.#clock.monotonic() - STALLED_MS;
    let stalled = [...this.#places].filter(({ isStalled }) => isStalled).length;
    for (const place of this.#places) {
      if (this.#waiting.size === 0 || stalled === AT_ONCE) return;
      if (place.isStalled || place.at > before) continue;
      place.isStalled = true;
      stalled++;
      this.#letIn();
    }
  }

  #leave(place: Place): void {
    this.#places.delete(place);
    if (!place.isStalled) this.#letIn();
  }

  #letIn(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#left++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}

/**
 * What a body begins with: all of a small one, of another the chunks until they have more than `most` bytes together, and the rest waits.
 * By events: to iterate costs as much as all else that a small body needs.
 */
function beginning(
  response: IncomingMessage,
  most: number,
): Promise<{ readonly chunks: Buffer[]; readonly isWhole: boolean }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ chunks: Buffer[]; isWhole: boolean }>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const take = (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes <= most) return;
    response.off("data", take).pause();
    resolve({ chunks, isWhole: false });
  };
  response.on("error", reject); // stays: an error that nobody hears would end the process
  if (response.closed) reject(response.errored ?? new Error("aborted"));
  response.once("end", () => resolve({ chunks, isWhole: true }));
  response.once("close", () => {
    if (!response.readableEnded) reject(new Error("aborted"));
  });
  response.on("data", take);
  return promise;
}

function lengthOf(chunks: readonly Buffer[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}

function joined(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks;
  return only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks);
}
