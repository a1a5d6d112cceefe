// SPDX-License-Identifier: Apache-2.0

/** So many pieces of a body may be of any size: a sender that flushes as it writes has some small ones. */
const FREE_PIECES = 256;
/** Of all pieces of a longer one. An API server sends a body as a whole, and a proxy by KiB; each piece costs as much as some KiB do. */
const LEAST_AVERAGE = 256;

/** Judges how a body comes: a chunk of one byte is six on the way, and costs as much time as one of thousands. */
export class BodyPieces {
  #pieces = 0;
  #bytes = 0;

  /** Whether they are so small by now that only who wants to cost time sends them. */
  add(bytes: number): boolean {
    this.#pieces++;
    this.#bytes += bytes;
    return this.#pieces > FREE_PIECES && this.#bytes < this.#pieces * LEAST_AVERAGE;
  }
}
