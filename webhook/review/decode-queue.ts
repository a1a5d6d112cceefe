// SPDX-License-Identifier: Apache-2.0
import { setImmediate } from "node:timers/promises";
import { type Decoded, decode, decodeInSteps, STEP_BYTES } from "./json.ts";

/**
 * Bodies of some MiB are decoded one at a time and in steps, between which the event loop goes round: whoever sends several of them
 * keeps other people's reviews waiting for a step, and not for all of them together. Small ones do not queue.
 */
export class DecodeQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** As `decode`. Never rejects. */
  async decode(bytes: Buffer): Promise<Decoded> {
    if (bytes.length <= STEP_BYTES) return decode(bytes);
    const before = this.#last;
    const decoding = before.then(() => decodeByTurns(bytes));
    this.#last = decoding;
    return await decoding;
  }
}

async function decodeByTurns(bytes: Buffer): Promise<Decoded> {
  const steps = decodeInSteps(bytes);
  for (;;) {
    await setImmediate();
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}
