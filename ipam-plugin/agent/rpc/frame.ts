// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../../allocator/base/errors.ts";

/*
 * The frames between the CNI binary and the agent; ipam-plugin/client/frame.h is the other side. Big endian.
 *
 *   request:  "BRTH" | u8 version=1 | u64 startNs | u32 envLen | u32 stdinLen | env (each KEY=VALUE\0) | stdin
 *   response: "BRTH" | u8 version=1 | u8 exitStatus | u32 stdoutLen | u32 stderrLen | stdout | stderr
 *   acknowledgement of a printed ADD result: one byte 0x06
 */
const MAGIC = 0x42525448; // "BRTH"
const VERSION = 1;
const REQUEST_HEADER = 4 + 1 + 8 + 4 + 4;
const RESPONSE_HEADER = 4 + 1 + 1 + 4 + 4;
const NUL = 0;

/** Bytes. What the client takes from its caller at most, and what it takes from the agent. */
export const ENV_LIMIT = 256 * 1024;
export const STDIN_LIMIT = 4 * 1024 * 1024;
/** Of stdout and stderr together. */
export const REPLY_LIMIT = 4 * 1024 * 1024;
export const REQUEST_LIMIT = REQUEST_HEADER + ENV_LIMIT + STDIN_LIMIT;

/** The byte by which the client says that the runtime has the result of an ADD. */
export const ACKNOWLEDGED = 0x06;

/**
 * Exit status of a reply that means "the request was not looked at" (EX_TEMPFAIL): the client then spools a DEL,
 * lets STATUS pass, and fails everything else with status 1 and the reply's stdout.
 */
export const NOT_ACCEPTED = 75;

/** One CNI call as the runtime made it. */
export interface Call {
  /** CLOCK_MONOTONIC of this host when the client started; process.hrtime.bigint() is the same clock. */
  readonly startNs: bigint;
  /** The variables whose names begin with CNI_; of a repeated one the first, as getenv sees it. */
  readonly env: ReadonlyMap<string, string>; // name -> value
  readonly stdin: Buffer;
}

/** What the client prints, and the status that it exits with. */
export interface Reply {
  readonly exitStatus: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type Decoded<T> =
  | { readonly kind: "incomplete" }
  | { readonly kind: "complete"; readonly frame: T }
  | { readonly kind: "malformed"; readonly reason: string };

const INCOMPLETE = { kind: "incomplete" } as const;

function malformed(reason: string): { readonly kind: "malformed"; readonly reason: string } {
  return { kind: "malformed", reason };
}

/** The whole bytes of one request; `stdin` is a view of them. Bytes behind the frame make it malformed. */
export function decodeCall(bytes: Buffer): Decoded<Call> {
  const whole = callLength(bytes);
  if (whole.kind !== "complete") return whole;
  if (bytes.length < whole.frame) return INCOMPLETE;
  if (bytes.length > whole.frame) return malformed("bytes follow the request");
  const envEnd = REQUEST_HEADER + bytes.readUInt32BE(13);
  const env = decodeEnv(bytes.subarray(REQUEST_HEADER, envEnd));
  if (env === undefined) return malformed("the environment is not a list of NAME=VALUE");
  return {
    kind: "complete",
    frame: { startNs: bytes.readBigUInt64BE(5), env, stdin: bytes.subarray(envEnd) },
  };
}

/** How long the request is that begins so. Judged as early as possible: what is no request must not be waited for. */
function callLength(bytes: Buffer): Decoded<number> {
  const start = checkStart(bytes);
  if (start !== undefined) return malformed(start);
  if (bytes.length < REQUEST_HEADER) return INCOMPLETE;
  const env = bytes.readUInt32BE(13);
  const stdin = bytes.readUInt32BE(17);
  if (env > ENV_LIMIT) return malformed(`an environment of ${env} bytes is longer than ${ENV_LIMIT}`);
  if (stdin > STDIN_LIMIT)
    return malformed(`a configuration of ${stdin} bytes is longer than ${STDIN_LIMIT}`);
  return { kind: "complete", frame: REQUEST_HEADER + env + stdin };
}

function checkStart(bytes: Buffer): string | undefined {
  if (bytes.length < 4) return undefined;
  if (bytes.readUInt32BE(0) !== MAGIC) return "it does not begin with BRTH";
  if (bytes.length > 4 && bytes.readUInt8(4) !== VERSION) {
    return `its protocol version is ${bytes.readUInt8(4)}, this agent speaks ${VERSION}`;
  }
  return undefined;
}

function decodeEnv(bytes: Buffer): ReadonlyMap<string, string> | undefined {
  const env = new Map<string, string>(); // name -> value
  if (bytes.length === 0) return env;
  if (bytes.at(-1) !== NUL) return undefined;
  for (const entry of bytes.toString("utf8", 0, bytes.length - 1).split("\0")) {
    const equals = entry.indexOf("=");
    if (equals < 1) return undefined;
    const name = entry.slice(0, equals);
    if (!env.has(name)) env.set(name, entry.slice(equals + 1));
  }
  return env;
}

/** Puts together a request that comes in pieces. */
export class CallDecoder {
  #room: Buffer = Buffer.alloc(0);
  #filled = 0;
  #expected = REQUEST_HEADER;

  /** Bytes of memory that the unfinished request holds. */
  get held(): number {
    return this.#room.length;
  }

  /** Bytes of memory more that it takes to append a piece of this length. The first piece is used as it is. */
  growth(length: number): number {
    const filled = this.#filled + length;
    if (this.#filled === 0 || filled <= this.#room.length) return 0;
    return Math.max(filled, this.#expected) - this.#room.length;
  }

  /** After `complete` or `malformed` the decoder is spent. */
  push(piece: Buffer): Decoded<Call> {
    const bytes = this.#append(piece);
    const whole = callLength(bytes);
    if (whole.kind !== "complete") return whole;
    this.#expected = whole.frame;
    return decodeCall(bytes);
  }

  /** A request mostly comes in one piece, which is used as it is; otherwise room for all of it is made once. */
  #append(piece: Buffer): Buffer {
    const filled = this.#filled + piece.length;
    if (this.#filled === 0) {
      this.#room = piece;
    } else {
      if (filled > this.#room.length) this.#grow(Math.max(filled, this.#expected));
      piece.copy(this.#room, this.#filled);
    }
    this.#filled = filled;
    return this.#room.subarray(0, filled);
  }

  #grow(size: number): void {
    const room = Buffer.allocUnsafeSlow(size);
    this.#room.copy(room, 0, 0, this.#filled);
    this.#room = room;
  }
}

/** One frame in one buffer. Throws BerthError INTERNAL for what the client would not take. */
export function encodeReply(reply: Reply): Buffer {
  const out = Buffer.byteLength(reply.stdout);
  const err = Buffer.byteLength(reply.stderr);
  if (out + err > REPLY_LIMIT) {
    throw new BerthError("INTERNAL", `a reply of ${out + err} bytes is longer than ${REPLY_LIMIT}`);
  }
  if (!Number.isInteger(reply.exitStatus) || reply.exitStatus < 0 || reply.exitStatus > 255) {
    throw new BerthError("INTERNAL", `an exit status of ${reply.exitStatus} is no byte`);
  }
  const bytes = Buffer.allocUnsafe(RESPONSE_HEADER + out + err);
  bytes.writeUInt32BE(MAGIC, 0);
  bytes.writeUInt8(VERSION, 4);
  bytes.writeUInt8(reply.exitStatus, 5);
  bytes.writeUInt32BE(out, 6);
  bytes.writeUInt32BE(err, 10);
  bytes.write(reply.stdout, RESPONSE_HEADER);
  bytes.write(reply.stderr, RESPONSE_HEADER + out);
  return bytes;
}
