// SPDX-License-Identifier: Apache-2.0
import { randomFillSync } from "node:crypto";
import type { Random } from "../allocator/base/ports.ts";

/** 32 letters, so that five bits of a byte choose one without bias. */
const ALPHABET = Buffer.from("abcdefghijklmnopqrstuvwxyz234567", "latin1");
/** 26 letters of 5 bits: 130 bits, the shortest token of at least 128. */
const TOKEN_LENGTH = 26;
const FRACTION_BYTES = 6;
/** Fetched at once: one token by itself costs as much as all of them. */
const FETCHED_BYTES = 32 * TOKEN_LENGTH;

/** Randomness of the operating system. */
export function createRandom(): Random {
  const fetched = Buffer.alloc(FETCHED_BYTES);
  let at = FETCHED_BYTES;
  /** Where so many bytes begin that nobody has had. */
  const next = (count: number): number => {
    if (at + count > FETCHED_BYTES) {
      randomFillSync(fetched);
      at = 0;
    }
    at += count;
    return at - count;
  };
  return {
    token: () => {
      const from = next(TOKEN_LENGTH);
      // in its place: what a token was made of is not kept beside it
      for (let i = from; i < from + TOKEN_LENGTH; i++) fetched[i] = ALPHABET[(fetched[i] ?? 0) & 31] ?? 0;
      const token = fetched.toString("latin1", from, from + TOKEN_LENGTH);
      fetched.fill(0, from, from + TOKEN_LENGTH);
      return token;
    },
    // 48 bits: exact as a double, so the quotient stays below 1
    fraction: () => fetched.readUIntBE(next(FRACTION_BYTES), FRACTION_BYTES) / 2 ** (8 * FRACTION_BYTES),
  };
}
