// SPDX-License-Identifier: Apache-2.0
// SQLite's write-ahead log (https://sqlite.org/fileformat2.html, section 4). Integers are big endian.
//
//   header: magic | format | page size | sequence | salt (8 bytes) | checksum (8 bytes)
//   frame:  page number | pages after a commit, else 0 | salt (8 bytes) | checksum (8 bytes) | page
import { endianness } from "node:os";

const HEADER = 32;
const FRAME_HEADER = 24;
const MAGIC = 0x377f0682; // its lowest bit says that checksums read big-endian words

/** Two running sums over 32-bit words. */
type Sums = readonly [number, number];

/**
 * Whether something in the log changed after it was safe on the disk. SQLite ends its reading at the first frame whose
 * checksum is wrong and drops the rest without a word, which is right for what a crash tore, and loses commits that
 * were answered when the disk did it. The next transaction begins only after the last one was synced: so intact frames
 * of a later transaction behind a wrong frame are proof that it was right once. Damage in the last two
 * transactions cannot be told from a crash.
 */
export function isDamaged(log: Buffer): boolean {
  if (log.length < HEADER + FRAME_HEADER) return false;
  const frames = new Frames(log);
  if (!frames.headerHolds) return frames.count > 0 && (frames.isOurs(0) || frames.holds(0));
  const wrong = frames.firstWrong();
  for (let i = wrong + 1; i + 1 < frames.count; i++) {
    if (frames.commits(i) && frames.isIntact(i) && frames.isIntact(i + 1)) return true;
  }
  return false;
}

class Frames {
  readonly count: number;
  readonly headerHolds: boolean;
  readonly #log: Buffer;
  readonly #size: number;
  /** The log as the words that its checksums are made of. */
  readonly #words: Uint32Array;

  constructor(log: Buffer) {
    this.#log = log;
    const pageSize = log.readUInt32BE(8);
    this.#size = FRAME_HEADER + (pageSize >= 512 && pageSize <= 65_536 ? pageSize : 4096);
    this.count = Math.floor((log.length - HEADER) / this.#size);
    this.#words = wordsOf(log, (log.readUInt32BE(0) & 1) === 1 ? "BE" : "LE");
    const sums = this.#sum([0, 0], 0, HEADER - 8);
    this.headerHolds = (log.readUInt32BE(0) & ~1) === MAGIC && this.#isSum(sums, HEADER - 8);
  }

  /** Written since the log began anew the last time; what is left from before has another salt. */
  isOurs(i: number): boolean {
    return this.#log.compare(this.#log, 16, 24, this.#at(i) + 8, this.#at(i) + 16) === 0;
  }

  /** Its checksum continues that of the frame before. */
  holds(i: number): boolean {
    const before = i === 0 ? HEADER - 8 : this.#at(i - 1) + 16;
    const seed: Sums = [this.#log.readUInt32BE(before), this.#log.readUInt32BE(before + 4)];
    const header = this.#sum(seed, this.#at(i), 8);
    return this.#isSum(
      this.#sum(header, this.#at(i) + FRAME_HEADER, this.#size - FRAME_HEADER),
      this.#at(i) + 16,
    );
  }

  isIntact(i: number): boolean {
    return this.isOurs(i) && this.holds(i);
  }

  commits(i: number): boolean {
    return this.#log.readUInt32BE(this.#at(i) + 4) !== 0;
  }

  /** Index of the first frame that SQLite would not read. */
  firstWrong(): number {
    let i = 0;
    while (i < this.count && this.isIntact(i)) i++;
    return i;
  }

  #at(i: number): number {
    return HEADER + i * this.#size;
  }

  #isSum([a, b]: Sums, at: number): boolean {
    return this.#log.readUInt32BE(at) === a && this.#log.readUInt32BE(at + 4) === b;
  }

  #sum([a, b]: Sums, from: number, length: number): Sums {
    const words = this.#words;
    let [s0, s1] = [a, b];
    for (let i = from / 4; i < (from + length) / 4; i += 2) {
      s0 = (s0 + (words[i] ?? 0) + s1) >>> 0;
      s1 = (s1 + (words[i + 1] ?? 0) + s0) >>> 0;
    }
    return [s0, s1];
  }
}

/** A copy, because words must be aligned; an incomplete word at the end is left out. */
function wordsOf(log: Buffer, order: "BE" | "LE"): Uint32Array {
  const whole = log.subarray(0, log.length - (log.length % 4));
  const words = new Uint32Array(whole.length / 4);
  const bytes = Buffer.from(words.buffer);
  whole.copy(bytes);
  if (order !== endianness()) bytes.swap32();
  return words;
}
