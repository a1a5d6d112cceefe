// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage } from "node:http";

/** A record of Berth's has 2 KB, what a page of 500 pods has is more. */
const LARGE_BYTES = 128 * 1024;
/** Of 4 MiB at most each, where the call bounds them: an object has 1.5 MB at most, which whoever writes it decides. */
const AT_ONCE = 8;

/**
 * Reads bodies of answers, few large ones at a time, however many calls there are: the others wait where they are on the way, until
 * their calls' time is over.
 */
export class LargeBodies {
  #left = AT_ONCE;
  readonly #waiting = new Set<() => void>();

  /** Undefined when it has more bytes than that; the connection is closed then, and no more arrives. */
  async read(response: IncomingMessage, mostBytes = Number.POSITIVE_INFINITY): Promise<Buffer | undefined> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isLarge = false;
    try {
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > mostBytes) return undefined;
        chunks.push(chunk);
        if (bytes > LARGE_BYTES && !isLarge) isLarge = await this.#enter(response);
      }
      return Buffer.concat(chunks);
    } finally {
      if (isLarge) this.#leave();
    }
  }

  /** True once there is room; false if the response has ended, in its time or not: nothing more of it arrives. */
  async #enter(response: IncomingMessage): Promise<boolean> {
    if (this.#left > 0) {
      this.#left--;
      return true;
    }
    if (response.closed) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const enter = () => resolve(true);
    const leave = () => {
      if (this.#waiting.delete(enter)) resolve(false);
    };
    this.#waiting.add(enter);
    response.once("close", leave);
    try {
      return await promise;
    } finally {
      response.off("close", leave);
    }
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#left++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
