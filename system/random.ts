// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import type { Random } from "../allocator/base/ports.ts";

/** 32 letters, so that five bits of a byte choose one without bias. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
/** 26 letters of 5 bits: 130 bits, the shortest token of at least 128. */
const TOKEN_LENGTH = 26;
const FRACTION_BYTES = 6;

/** Randomness of the operating system. */
export function createRandom(): Random {
  return {
    token: () => Array.from(randomBytes(TOKEN_LENGTH), (byte) => ALPHABET.charAt(byte & 31)).join(""),
    // 48 bits: exact as a double, so the quotient stays below 1
    fraction: () => randomBytes(FRACTION_BYTES).readUIntBE(0, FRACTION_BYTES) / 2 ** (8 * FRACTION_BYTES),
  };
}
