// SPDX-License-Identifier: Apache-2.0

/** Of a record (RFC 8446, 5.1): its type, a version that nobody reads any more, and its length. */
const HEADER_BYTES = 5;
const APPLICATION_DATA = 23;
/** 22 of them say nothing. The headers of a request are longer, and so is each part of a body but its last. */
const SMALL_BYTES = 64;
const LONG_BYTES = 1_024;
/** More than a handshake and the ends of some requests are. */
const MOST_SMALL = 32;

/**
 * Counts what a client's TLS records are, by what can be read of them without a key. A record of some bytes takes as long as one of some
 * KiB, and where it changes the client's keys ten times as long: a MiB of these took two seconds of the event loop, and nothing of them
 * comes out that could be counted. A client may send some, and one more for each long one.
 */
export class TlsRecords {
  #left = MOST_SMALL;
  /** Of the header that is being read. */
  #read = 0;
  #type = 0;
  #length = 0;
  /** Of the record behind it. */
  #rest = 0;

  /** False once there were too many small ones. */
  take(chunk: Buffer): boolean {
    for (let at = 0; at < chunk.length; ) {
      if (this.#rest > 0) {
        const passed = Math.min(this.#rest, chunk.length - at);
        this.#rest -= passed;
        at += passed;
      } else {
        this.#readHeader(chunk[at] ?? 0);
        at++;
      }
    }
    return this.#left >= 0;
  }

  #readHeader(byte: number): void {
    if (this.#read === 0) this.#type = byte;
    // the last two bytes of five
    else if (this.#read >= HEADER_BYTES - 2) this.#length = ((this.#length & 0xff) << 8) | byte;
    this.#read++;
    if (this.#read < HEADER_BYTES) return;
    this.#rest = this.#length;
    this.#judge();
    this.#read = 0;
    this.#length = 0;
  }

  #judge(): void {
    if (this.#type !== APPLICATION_DATA || this.#length < SMALL_BYTES) this.#left--;
    else if (this.#length >= LONG_BYTES && this.#left >= 0) this.#left = Math.min(this.#left + 1, MOST_SMALL);
  }
}
