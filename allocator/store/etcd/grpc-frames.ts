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

const FRAME_HEAD = 5; // a byte that says whether it is compressed, four of its length

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
  let held: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of stream) {
      held = held.length === 0 ? Buffer.from(chunk) : Buffer.concat([held, chunk]);
      for (let size = frameSize(held); size !== undefined; size = frameSize(held)) {
        yield held.subarray(FRAME_HEAD, size);
        held = held.subarray(size);
      }
    }
  } catch (error) {
    if (error instanceof GrpcError) throw error;
    throw failure ?? errorOf(status) ?? new GrpcError(GRPC.unavailable, messageOf(error), true);
  }
  const wrong = failure ?? errorOf(status);
  if (wrong !== undefined) throw wrong;
  if (status === undefined) throw new GrpcError(GRPC.unavailable, "the answer broke off", true);
}

/** Of the first frame, once all of it has come. */
function frameSize(held: Buffer): number | undefined {
  if (held.length < FRAME_HEAD) return undefined;
  if (held[0] !== 0) throw new GrpcError(GRPC.internal, "a compressed answer, which was not asked for", true);
  const size = FRAME_HEAD + held.readUInt32BE(1);
  return held.length < size ? undefined : size;
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
