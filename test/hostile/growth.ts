// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
/** Frees what nobody can reach any more. */
export const collect: () => void = runInNewContext("gc");

const MIB = 1024 * 1024;

/** What the heap keeps after each of several rounds of the same work. */
export class Growth {
  readonly #kept: number[] = [];

  /** To be called when a round is over and everything that it made was closed. */
  measure(): void {
    collect();
    this.#kept.push(process.memoryUsage().heapUsed);
  }

  /** The first round makes caches and compiled code; from then on nothing may come to stay. */
  assertNone(mostMib = 8): void {
    assert.ok(this.#kept.length >= 3, "three rounds at least");
    const [, second = 0] = this.#kept;
    const last = this.#kept.at(-1) ?? 0;
    const rounds = this.#kept.map((bytes) => Math.round(bytes / MIB)).join(", ");
    assert.ok(last - second < mostMib * MIB, `the heap grew from round to round: ${rounds} MiB`);
  }
}
