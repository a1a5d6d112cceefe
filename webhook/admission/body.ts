// SPDX-License-Identifier: Apache-2.0
import type { Readable } from "node:stream";

/**
 * 8 MiB: the API server takes requests of at most 3 MiB (apiserver, MaxRequestBodyBytes), and the review of an
 * UPDATE carries the object and the old object, 2 * 3 MiB; 2 MiB are left for the envelope, and for what escaping
 * `<`, `>` and `&` as Go does adds to them.
 */
export const BODY_LIMIT = 8 * 1024 * 1024;
/** A body beyond the limit is read to its end, or the client loses the answer to a reset; beyond this it is cut off. */
const DRAIN_LIMIT = 4 * BODY_LIMIT;
/** The API server writes kind, apiVersion, request and its uid first: about 150 bytes. */
const PREFIX_BYTES = 1024;
const UID = /"request"\s*:\s*\{\s*"uid"\s*:\s*"([^"\\]{1,128})"/;
/** Deeper than any object that Berth admits. Decoding is bounded by it, in memory and in stack. */
const DEEPEST = 1000;

export type Body =
  | { readonly kind: "whole"; readonly bytes: Buffer }
  /** Beyond the limit, or not there in time; `prefix` is how it begins. */
  | { readonly kind: "too large" | "slow"; readonly prefix: Buffer }
  /** The client went away, or sent so much more than the limit that it was cut off: there is nobody to answer. */
  | { readonly kind: "lost" };

export type Decoded =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "unreadable"; readonly why: string };

/** Reads at most `limit` bytes into memory, until `signal` aborts. Never rejects. */
export function readBody(stream: Readable, limit: number, signal: AbortSignal): Promise<Body> {
  return new Promise((resolve) => {
    const intake = new Intake(limit);
    const settle = (body: Body) => {
      stream.off("data", take);
      signal.removeEventListener("abort", giveUp);
      resolve(body);
    };
    const take = (chunk: Buffer) => {
      intake.take(chunk);
      if (intake.size <= DRAIN_LIMIT) return;
      stream.destroy();
      settle({ kind: "lost" });
    };
    const giveUp = () => settle({ kind: "slow", prefix: intake.prefix() });
    stream.on("data", take);
    stream.once("end", () => settle(intake.body()));
    stream.once("error", () => settle({ kind: "lost" }));
    stream.once("close", () => settle({ kind: "lost" }));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
  });
}

/** What came so far: all of it up to the limit, only how it began beyond. */
class Intake {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  take(chunk: Buffer): void {
    const before = this.size;
    this.size += chunk.length;
    if (before <= this.#limit || before < PREFIX_BYTES) this.#chunks.push(chunk);
    if (this.size > this.#limit && this.size >= PREFIX_BYTES) this.#chunks = [this.prefix()];
  }

  prefix(): Buffer {
    return Buffer.from(Buffer.concat(this.#chunks).subarray(0, PREFIX_BYTES));
  }

  body(): Body {
    if (this.size > this.#limit) return { kind: "too large", prefix: this.prefix() };
    return { kind: "whole", bytes: Buffer.concat(this.#chunks, this.size) };
  }
}

/**
 * The uid of a review that was not or cannot be decoded, if it begins as the API server writes it; otherwise
 * empty.
 */
export function uidIn(bytes: Buffer): string {
  return UID.exec(bytes.toString("utf8", 0, PREFIX_BYTES))?.[1] ?? "";
}

/** Decodes JSON; never throws. A key `__proto__` is refused wherever it stands: no object of Kubernetes has one. */
export function decode(bytes: Buffer): Decoded {
  if (isDeeperThan(bytes, DEEPEST)) return { kind: "unreadable", why: `it is nested deeper than ${DEEPEST}` };
  try {
    return { kind: "json", value: parse(bytes.toString("utf8")) };
  } catch (error) {
    if (error instanceof PrototypeKey) return { kind: "unreadable", why: "it has a key __proto__" };
    return { kind: "unreadable", why: "it is not JSON" };
  }
}

class PrototypeKey extends Error {}

/** How a key may spell an underscore. Only texts that have one of these are parsed with the slower check. */
const SUSPICIOUS = /__proto__|\\u005f/i;

function parse(text: string): unknown {
  if (!SUSPICIOUS.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key: string, value: unknown) => {
    if (key === "__proto__") throw new PrototypeKey();
    return value;
  });
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** Counts brackets outside of texts, without decoding: 8 MiB of `[` decoded would take hundreds of MiB. */
function isDeeperThan(bytes: Buffer, deepest: number): boolean {
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) at = endOfText(bytes, at);
    else if (OPENING.has(byte)) depth++;
    else if (CLOSING.has(byte)) depth--;
    if (depth > deepest) return true;
  }
  return false;
}

/** Index of the quote that ends the text which begins at `start`, or the end. */
function endOfText(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
