// SPDX-License-Identifier: Apache-2.0
import type { ClientHttp2Stream } from "node:http2";
import { messageOf } from "../../base/errors.ts";

/** The numbers that gRPC gives to what can go wrong, as far as they are used here. */
export const GRPC = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

/** A call that was not carried out as asked, or of which that is not known. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly code: number;
  /** The call may have reached the other side. */
  readonly sent: boolean;

  constructor(code: number, message: string, sent: boolean) {
    super(message);
    this.code = code;
    this.sent = sent;
  }
}

/** A message that was not taken for its length. */
export class OverlongMessage extends GrpcError {}

const FRAME_HEAD = 5; // a byte that says whether it is compressed, four of its length
/** Of a message that is taken: ten times what etcd takes in one write by its defaults, and 25 pages of records. */
export const LONGEST_MESSAGE = 16 * 1024 * 1024;

/** A message as it is sent. */
export function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(FRAME_HEAD);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** The messages of an answer. Throws GrpcError unless its status is 0. */
export async function* messagesOf(stream: ClientHttp2Stream): AsyncGenerator<Buffer, void, void> {
  let status: StatusHeaders | undefined;
  let failure: GrpcError | undefined;
  stream.once("response", (headers) => {
    if (headers[":status"] !== 200) {
      failure = new GrpcError(GRPC.unavailable, `it answers with HTTP ${headers[":status"]}`, true);
    }
    if (headers["grpc-status"] !== undefined) status = headers;
  });
  stream.once("trailers", (headers) => {
    status = headers;
  });
  const frames = new Frames();
  try {
    for await (const chunk of stream) yield* frames.after(chunk as Buffer);
  } catch (error) {
    if (error instanceof GrpcError) throw error;
    throw failure ?? errorOf(status) ?? new GrpcError(GRPC.unavailable, messageOf(error), true);
  }
  const wrong = failure ?? errorOf(status);
  if (wrong !== undefined) throw wrong;
  if (status === undefined) throw new GrpcError(GRPC.unavailable, "the answer broke off", true);
}

/** What has come, put together once a message is whole: each chunk is copied once, however many there are. */
class Frames {
  #parts: Buffer[] = [];
  #held = 0;
  #wanted = FRAME_HEAD;

  /** The messages that end in the next chunk. Throws OverlongMessage by the head of one. */
  *after(chunk: Buffer): Generator<Buffer, void, void> {
    this.#parts.push(chunk);
    this.#held += chunk.length;
    while (this.#held >= this.#wanted) {
      const all = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts);
      const size = frameSize(all);
      if (all.length < size) {
        this.#keep(all, size);
        return;
      }
      yield all.subarray(FRAME_HEAD, size);
      chunk = all.subarray(size);
      this.#keep(chunk, FRAME_HEAD);
    }
  }

  #keep(held: Buffer, wanted: number): void {
    this.#parts = [held];
    this.#held = held.length;
    this.#wanted = wanted;
  }
}

/** Of the first frame, by its head. */
function frameSize(held: Buffer): number {
  if (held[0] !== 0) throw new GrpcError(GRPC.internal, "a compressed answer, which was not asked for", true);
  const length = held.readUInt32BE(1);
  if (length <= LONGEST_MESSAGE) return FRAME_HEAD + length;
  const words = `an answer of ${length} bytes, and no more than ${LONGEST_MESSAGE} are taken`;
  throw new OverlongMessage(GRPC.resourceExhausted, words, true);
}

type StatusHeaders = Readonly<Record<string, string | string[] | number | undefined>>;

function errorOf(headers: StatusHeaders | undefined): GrpcError | undefined {
  const code = Number(headers?.["grpc-status"] ?? Number.NaN);
  if (headers === undefined || code === 0) return undefined;
  const words = String(headers["grpc-message"] ?? `status ${code}`);
  return new GrpcError(Number.isNaN(code) ? GRPC.internal : code, decoded(words), true);
}

function decoded(words: string): string {
  try {
    return decodeURIComponent(words);
  } catch {
    return words;
  }
}
