// SPDX-License-Identifier: Apache-2.0
import { GRPC, GrpcError } from "./grpc-frames.ts";
import { type Range, rangeRequest } from "./messages.ts";
import type { MessageWriter } from "./protobuf.ts";

/** What a call asks for, which may become less and less. */
export interface ShrinkingCall {
  readonly verb: "read" | "write";
  bytes(): Buffer;
  /** From now on for less; false: it cannot be. */
  shrink(): boolean;
}

/** So much less is asked for after an answer that was too long, or too late. */
const SHRINK = 8;

export class RangeCall implements ShrinkingCall {
  readonly verb = "read";
  #range: Range;

  constructor(range: Range) {
    this.#range = range;
  }

  bytes(): Buffer {
    return rangeRequest(this.#range).bytes();
  }

  shrink(): boolean {
    const { limit = 1 } = this.#range;
    if (limit <= 1) return false;
    this.#range = { ...this.#range, limit: Math.max(1, Math.floor(limit / SHRINK)) };
    return true;
  }
}

export class WriteCall implements ShrinkingCall {
  readonly verb = "write";
  readonly #bytes: Buffer;

  constructor(request: MessageWriter) {
    this.#bytes = request.bytes();
  }

  bytes(): Buffer {
    return this.#bytes;
  }

  shrink(): boolean {
    return false;
  }
}

export function isLate(error: unknown): boolean {
  return error instanceof GrpcError && error.code === GRPC.deadlineExceeded;
}
