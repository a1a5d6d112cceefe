// SPDX-License-Identifier: Apache-2.0
import { giveBack } from "./request-body.ts";

export type Decoded =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "unreadable"; readonly why: string };

/** Of a pass over the bytes: some tenths of a millisecond. */
export const STEP_BYTES = 128 * 1024;
/** Deeper than any object that Berth admits. Decoding is bounded by it, in memory and in stack. */
const DEEPEST = 1000;

/** Bytes of memory that values take beside their texts, measured: an object or list, a key of its own, a text, a place in a list. */
const WEIGHTS = { container: 64, key: 136, text: 24, place: 8 } as const;
const MIB = 1024 * 1024;
/**
 * What all values of a body may weigh: so much, and so many times the size of the body, and no more than `most`. Without a bound a list
 * of empty objects would weigh 21 times its size, and take a quarter of a second for each MiB; and 8 MiB of short keys and values,
 * which `JSON.parse` reads in one piece, would keep all others waiting for 80 ms. The most that is there to be decoded is two objects of 1.5 MiB,
 * which is what etcd takes (--max-request-bytes): for those it is 1.3 times their size, and 25,000 keys.
 */
const ALLOWANCE = { floor: 0.25 * MIB, factor: 1.5, most: 4 * MIB } as const;

/** Lists and maps of Kubernetes that Berth never reads, and that are the most of an object: they are not decoded. */
export const UNREAD: readonly string[] = [
  "managedFields",
  "containers",
  "initContainers",
  "ephemeralContainers",
  "volumes",
];

/**
 * Decodes JSON; never throws, and takes the bytes over: they may be changed or gone. One pass over them comes first: what
 * would cost much more than its size is refused, parts that Berth never reads become null, and a key `__proto__` is
 * refused wherever it stands, for no object of Kubernetes has one.
 */
export function decode(bytes: Buffer): Decoded {
  const steps = decodeInSteps(bytes);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** As `decode`, for who has something else to do between the steps. What comes after the last one is done in one piece. */
export function* decodeInSteps(bytes: Buffer, stepBytes = STEP_BYTES): Generator<void, Decoded, void> {
  const scan = new Scan(bytes, stepBytes);
  const why = yield* scan.run();
  if (why !== undefined) {
    giveBack(bytes);
    return { kind: "unreadable", why };
  }
  try {
    return { kind: "json", value: JSON.parse(textOf(bytes, scan.length)) };
  } catch {
    return { kind: "unreadable", why: "it is not JSON" };
  }
}

/** Gives the bytes back, for the values take as much memory again. */
function textOf(bytes: Buffer, length: number): string {
  const text = bytes.toString("utf8", 0, length);
  giveBack(bytes);
  return text;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPENING = 1;
const CLOSING = 2;
/** What a byte does outside of texts: most do nothing. */
const ROLES = new Uint8Array(256);
for (const byte of [0x5b, 0x7b]) ROLES[byte] = OPENING;
for (const byte of [0x5d, 0x7d]) ROLES[byte] = CLOSING;
for (const byte of [QUOTE, COMMA]) ROLES[byte] = byte;

/** Reads brackets, commas and keys, without decoding anything; what is no JSON it leaves to `JSON.parse`. */
class Scan {
  /** Of what is left to decode. */
  length: number;
  readonly #bytes: Buffer;
  readonly #stepBytes: number;
  readonly #mostWeight: number;
  #weight = 0;
  #depth = 0;
  /** Of the last text: the byte before what follows, whether that is never read, and whether it was a key `__proto__`. */
  #before = 0;
  #isLeftOut = false;
  #isForbidden = false;
  /** What was read up to here stands at the beginning already, up to `#written`. */
  #moved = 0;
  #written = 0;

  constructor(bytes: Buffer, stepBytes: number) {
    this.#bytes = bytes;
    this.#stepBytes = stepBytes;
    this.length = bytes.length;
    this.#mostWeight = Math.min(ALLOWANCE.most, ALLOWANCE.floor + ALLOWANCE.factor * bytes.length);
  }

  /** Why the bytes are not to be decoded; undefined: those up to `length` are. */
  *run(): Generator<void, string | undefined, void> {
    const bytes = this.#bytes;
    let pauseAt = this.#stepBytes;
    for (let at = 0; at < bytes.length; at++) {
      if (at >= pauseAt) {
        yield;
        pauseAt = at + this.#stepBytes;
      }
      const role = ROLES[bytes[at] ?? 0] ?? 0;
      if (role === 0) continue;
      if (role === QUOTE) {
        const end = endOfText(bytes, at + 1, at + this.#stepBytes);
        at = this.#text(at, end) ?? (yield* this.#long(at, end));
      } else this.#step(role);
      const why = this.#objection();
      if (why !== undefined) return why;
    }
    if (this.#moved > 0) this.#move(bytes.length);
    return undefined;
  }

  #step(role: number): void {
    if (role === COMMA) this.#weight += WEIGHTS.place;
    else if (role === CLOSING) this.#depth--;
    else {
      this.#depth++;
      this.#weight += WEIGHTS.container;
    }
  }

  #objection(): string | undefined {
    if (this.#isForbidden) return "it has a key __proto__";
    if (this.#depth > DEEPEST) return `it is nested deeper than ${DEEPEST}`;
    if (this.#weight > ALLOWANCE.most)
      return "it is made of more values than two objects of Kubernetes may have";
    if (this.#weight > this.#mostWeight) return "it is made of more values than its size allows";
    return undefined;
  }

  /** Index of the last byte before what follows a text; undefined: it does not end yet, or something is left out, see `#long`. */
  #text(start: number, end: number): number | undefined {
    if (!isEnd(this.#bytes, end)) return undefined;
    this.#read(start, end);
    return this.#isLeftOut ? undefined : this.#before;
  }

  /** The same, in steps. */
  *#long(start: number, from: number): Generator<void, number, void> {
    if (!isEnd(this.#bytes, from)) {
      let end = from;
      while (!isEnd(this.#bytes, end)) {
        yield;
        end = endOfText(this.#bytes, end, end + this.#stepBytes);
      }
      this.#read(start, end);
    }
    return this.#isLeftOut ? yield* this.#leaveOut(this.#before + 1) : this.#before;
  }

  /** Reads the text, or the key, from `start` to `end`. */
  #read(start: number, end: number): void {
    const bytes = this.#bytes;
    const colon = afterSpace(bytes, end + 1);
    this.#isLeftOut = false;
    this.#before = end;
    if (bytes[colon] !== COLON) {
      this.#weight += WEIGHTS.text;
      return;
    }
    this.#weight += WEIGHTS.key;
    this.#isForbidden = isPrototype(bytes, start + 1, end);
    const value = afterSpace(bytes, colon + 1);
    this.#before = value - 1;
    this.#isLeftOut = ROLES[bytes[value] ?? 0] === OPENING && isUnread(bytes, start + 1, end);
  }

  /** Writes null for the list or map that begins at `start`. Index of its last byte. */
  *#leaveOut(start: number): Generator<void, number, void> {
    const bytes = this.#bytes;
    const skip = { at: start, depth: 0, isText: false };
    while (!skipValue(bytes, skip, skip.at + this.#stepBytes)) yield;
    const end = Math.min(skip.at, bytes.length - 1);
    if (end - start + 1 >= NULL.length) {
      this.#move(start);
      this.#written += NULL.copy(bytes, this.#written);
      this.length = this.#written;
      this.#moved = end + 1;
    }
    return end;
  }

  #move(upTo: number): void {
    this.#bytes.copyWithin(this.#written, this.#moved, upTo);
    this.#written += upTo - this.#moved;
    this.#moved = upTo;
    this.length = this.#written;
  }
}

const NULL = Buffer.from("null");

/** Index of the quote that ends a text of which `from` is inside, or of where to go on: at the limit, or at the end. */
function endOfText(bytes: Buffer, from: number, limit: number): number {
  const most = Math.min(limit, bytes.length);
  let at = from;
  while (at < most && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Whether `skip.at` is the bracket that ends the value which it began at, or the end; otherwise it goes on from there. */
function skipValue(
  bytes: Buffer,
  skip: { at: number; depth: number; isText: boolean },
  limit: number,
): boolean {
  const most = Math.min(limit, bytes.length);
  for (; skip.at < most; skip.at++) {
    if (skip.isText) {
      skip.at = endOfText(bytes, skip.at, most);
      if (skip.at >= most) break;
      skip.isText = bytes[skip.at] !== QUOTE;
      continue;
    }
    const role = ROLES[bytes[skip.at] ?? 0];
    if (role === QUOTE) skip.isText = true;
    else if (role === OPENING) skip.depth++;
    else if (role === CLOSING && --skip.depth === 0) return true;
  }
  return skip.at >= bytes.length;
}

function isEnd(bytes: Buffer, at: number): boolean {
  return at >= bytes.length || bytes[at] === QUOTE;
}

function afterSpace(bytes: Buffer, start: number): number {
  let at = start;
  while (at < bytes.length && (bytes[at] ?? 0) <= 0x20) at++;
  return at;
}

const PROTOTYPE = "__proto__";
/** Each of its characters as `\uXXXX`. */
const LONGEST_PROTOTYPE = 6 * PROTOTYPE.length;

function isPrototype(bytes: Buffer, start: number, end: number): boolean {
  const length = end - start;
  if (length < PROTOTYPE.length || length > LONGEST_PROTOTYPE) return false;
  const first = bytes[start];
  if (first !== 0x5f && first !== BACKSLASH) return false;
  const key = bytes.toString("latin1", start, end);
  if (key === PROTOTYPE) return true;
  return (
    key.replaceAll(/\\u([0-9a-f]{4})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ) === PROTOTYPE
  );
}

function isUnread(bytes: Buffer, start: number, end: number): boolean {
  return UNREAD.some((key) => key.length === end - start && bytes.toString("latin1", start, end) === key);
}
