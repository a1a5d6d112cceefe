// SPDX-License-Identifier: Apache-2.0

export type Decoded =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "unreadable"; readonly why: string };

/** Deeper than any object that Berth admits. Decoding is bounded by it, in memory and in stack. */
const DEEPEST = 1000;

/** Bytes of memory that values take beside their texts, measured: an object or list, a key of its own, a text, a place in a list. */
const WEIGHTS = { container: 64, key: 136, text: 24, place: 8 } as const;
/**
 * What all values of a body may weigh: so much, and so many times the size of the body. Without a bound a list of empty
 * objects would weigh 21 times its size, and take a quarter of a second for each MiB.
 */
const ALLOWANCE = { floor: 256 * 1024, factor: 1.5 } as const;

/** Lists and maps of Kubernetes that Berth never reads, and that are the most of an object: they are not decoded. */
const UNREAD: readonly string[] = [
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
  const scan = new Scan(bytes);
  const why = scan.run();
  if (why !== undefined) return { kind: "unreadable", why };
  try {
    return { kind: "json", value: JSON.parse(textOf(bytes, scan.length)) };
  } catch {
    return { kind: "unreadable", why: "it is not JSON" };
  }
}

/** Gives the memory of a large body back at once, for the values take as much again. Small ones may share theirs. */
function textOf(bytes: Buffer, length: number): string {
  const text = bytes.toString("utf8", 0, length);
  const { buffer } = bytes;
  if (buffer instanceof ArrayBuffer && buffer.byteLength > SHARED_BYTES) buffer.transfer(0);
  return text;
}

/** Node cuts small buffers from one piece of memory, of `Buffer.poolSize`. */
const SHARED_BYTES = 64 * 1024;

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
  readonly #mostWeight: number;
  #weight = 0;
  #depth = 0;
  /** What was read up to here stands at the beginning already, up to `#written`. */
  #moved = 0;
  #written = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.length = bytes.length;
    this.#mostWeight = ALLOWANCE.floor + ALLOWANCE.factor * bytes.length;
  }

  /** Why the bytes are not to be decoded; undefined: those up to `length` are. */
  run(): string | undefined {
    const bytes = this.#bytes;
    for (let at = 0; at < bytes.length; at++) {
      const role = ROLES[bytes[at] ?? 0] ?? 0;
      if (role === 0) continue;
      if (role !== QUOTE) this.#step(role);
      else {
        const next = this.#text(at);
        if (next === undefined) return "it has a key __proto__";
        at = next;
      }
      if (this.#depth > DEEPEST) return `it is nested deeper than ${DEEPEST}`;
      if (this.#weight > this.#mostWeight) return "it is made of more values than its size allows";
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

  /** Index of the last byte of the text that begins at `start`, or of the key with what is left out; undefined: a forbidden key. */
  #text(start: number): number | undefined {
    const bytes = this.#bytes;
    const end = endOfText(bytes, start);
    const colon = afterSpace(bytes, end + 1);
    if (bytes[colon] !== COLON) {
      this.#weight += WEIGHTS.text;
      return end;
    }
    this.#weight += WEIGHTS.key;
    if (isPrototype(bytes, start + 1, end)) return undefined;
    const value = afterSpace(bytes, colon + 1);
    if (ROLES[bytes[value] ?? 0] !== OPENING || !isUnread(bytes, start + 1, end)) return value - 1;
    return this.#leaveOut(value);
  }

  /** Writes null for the list or map that begins at `start`. Index of its last byte. */
  #leaveOut(start: number): number {
    const end = endOfValue(this.#bytes, start);
    if (end - start + 1 >= NULL.length) {
      this.#move(start);
      this.#written += NULL.copy(this.#bytes, this.#written);
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

/** Index of the quote that ends the text which begins at `start`, or the end. */
function endOfText(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Index of the bracket that ends the value which begins at `start`, or of the last byte. */
function endOfValue(bytes: Buffer, start: number): number {
  let depth = 0;
  let at = start;
  for (; at < bytes.length; at++) {
    const role = ROLES[bytes[at] ?? 0];
    if (role === QUOTE) at = endOfText(bytes, at);
    else if (role === OPENING) depth++;
    else if (role === CLOSING && --depth === 0) return at;
  }
  return bytes.length - 1;
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
