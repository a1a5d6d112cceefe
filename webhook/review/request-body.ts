// SPDX-License-Identifier: Apache-2.0
import type { Readable } from "node:stream";
import type { Busy, Place } from "./intake.ts";

/**
 * 8 MiB: the API server takes requests of at most 3 MiB (apiserver, MaxRequestBodyBytes), and the review of an
 * UPDATE carries the object and the old object, 2 * 3 MiB; 2 MiB are left for the envelope, and for what escaping
 * `<`, `>` and `&` as Go does adds to them.
 */
export const BODY_LIMIT = 8 * 1024 * 1024;
/** A body beyond the limit is read to its end, or the client loses the answer to a reset; beyond this it is cut off. */
const DRAIN_LIMIT = 4 * BODY_LIMIT;
/** So many pieces of a body may be of any size: a sender that flushes as it writes has some small ones. */
const FREE_PIECES = 256;
/** Of all pieces of a longer one. An API server sends a body as a whole, and a proxy by KiB; each piece costs as much as some KiB do. */
const LEAST_AVERAGE = 256;
/** The API server writes kind, apiVersion, request and its uid first: about 150 bytes. */
const PREFIX_BYTES = 1024;
const UID = /"request"\s*:\s*\{\s*"uid"\s*:\s*"([^"\\]{1,128})"/;

type Body =
  | { readonly kind: "whole"; readonly bytes: Buffer }
  /** Beyond the limit, not there in time, in very many pieces, or without room; `prefix` is how it begins. */
  | { readonly kind: "too large" | "slow" | "in pieces"; readonly prefix: Buffer }
  | { readonly kind: "busy"; readonly whose: Busy; readonly prefix: Buffer }
  /** The client went away, or sent so much more than the limit that it was cut off: there is nobody to answer. */
  | { readonly kind: "lost" };

/** Why a body is read no further: its time is over, or another's needs the room. */
export type GivenUp = "slow" | "busy";

/** What a body may take. */
interface Allowance {
  readonly limit: number;
  readonly place: Pick<Place, "grow">;
  /** Its reason is a `GivenUp`. */
  readonly signal: AbortSignal;
}

/** Reads at most `limit` bytes into memory, for which `place` has room, until `signal` aborts. Never rejects. */
export function readBody(stream: Readable, { limit, place, signal }: Allowance): Promise<Body> {
  return new Promise((resolve) => {
    const arrived = new Arrived(limit);
    const pieces = new BodyPieces();
    let isSettled = false;
    const settle = (body: Body) => {
      if (isSettled) return;
      isSettled = true;
      if (body.kind !== "whole") arrived.giveBack();
      stream.off("data", take);
      signal.removeEventListener("abort", giveUp);
      resolve(body);
    };
    const take = (chunk: Buffer) => {
      if (pieces.add(chunk.length)) return settle({ kind: "in pieces", prefix: arrived.prefix() });
      const whose = arrived.take(chunk, place);
      if (whose !== undefined) settle({ kind: "busy", whose, prefix: arrived.prefix() });
      if (arrived.size <= DRAIN_LIMIT) return;
      stream.destroy();
      settle({ kind: "lost" });
    };
    const giveUp = () => {
      const prefix = arrived.prefix();
      const why: GivenUp = signal.reason;
      settle(why === "busy" ? { kind: why, whose: "all", prefix } : { kind: "slow", prefix });
    };
    stream.on("data", take);
    stream.once("end", () => settle(arrived.body()));
    stream.once("error", () => settle({ kind: "lost" }));
    stream.once("close", () => settle({ kind: "lost" }));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
  });
}

/**
 * What came so far, in one piece of memory: all of it up to the limit, only how it began beyond. A chunk is copied, because
 * each of them keeps hundreds of bytes alive, and a body may come byte by byte.
 */
class Arrived {
  readonly #limit: number;
  #bytes: Buffer = Buffer.alloc(0);
  #kept = 0;
  size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whose bound leaves no room for it. */
  take(chunk: Buffer, place: Pick<Place, "grow">): Busy | undefined {
    this.size += chunk.length;
    const most = this.size > this.#limit ? PREFIX_BYTES : this.size;
    if (this.#kept >= most) {
      this.#kept = most;
      if (this.#bytes.length > PREFIX_BYTES) this.#replace(this.prefix());
      return undefined;
    }
    const busy = this.#makeRoom(most, place);
    if (busy === undefined) this.#kept += chunk.copy(this.#bytes, this.#kept, 0, most - this.#kept);
    return busy;
  }

  /** Doubles, so that all copying together is as long as the body. */
  #makeRoom(bytes: number, place: Pick<Place, "grow">): Busy | undefined {
    if (bytes <= this.#bytes.length) return undefined;
    const next = Math.max(bytes, Math.min(2 * this.#bytes.length, this.#limit), PREFIX_BYTES);
    const busy = place.grow(next - this.#bytes.length);
    if (busy !== undefined) return busy;
    const grown = Buffer.allocUnsafeSlow(next);
    this.#bytes.copy(grown, 0, 0, this.#kept);
    this.#replace(grown);
    return undefined;
  }

  /** What was there is given back at once: memory that waits for a garbage collection makes more of them. */
  #replace(next: Buffer): void {
    giveBack(this.#bytes);
    this.#bytes = next;
  }

  /** Nobody reads it any more. */
  giveBack(): void {
    this.#replace(Buffer.alloc(0));
    this.#kept = 0;
  }

  prefix(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, Math.min(this.#kept, PREFIX_BYTES)));
  }

  body(): Body {
    if (this.size > this.#limit) return { kind: "too large", prefix: this.prefix() };
    return { kind: "whole", bytes: this.#bytes.subarray(0, this.#kept) };
  }
}

/** Node cuts small buffers from one piece of memory, of `Buffer.poolSize`, which they share. */
const SHARED_BYTES = 64 * 1024;

/** Gives the memory of a large body back at once. Nothing may read it any more. */
export function giveBack({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > SHARED_BYTES) buffer.transfer(0);
}

/**
 * The uid of a review that was not or cannot be decoded, if it begins as the API server writes it; otherwise
 * empty.
 */
export function uidFromPrefix(bytes: Buffer): string {
  return UID.exec(bytes.toString("utf8", 0, PREFIX_BYTES))?.[1] ?? "";
}

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
