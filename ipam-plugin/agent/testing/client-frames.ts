// SPDX-License-Identifier: Apache-2.0
// The client's side of the socket, which is in C: what it sends and spools, and how it reads an answer.
import { type Call, type Decoded, REPLY_LIMIT, type Reply } from "../rpc/frame.ts";

const MAGIC = 0x42525448; // "BRTH"
const VERSION = 1;
const REQUEST_HEADER = 21;
const RESPONSE_HEADER = 14;

/** The request of a call, as the client sends and spools it. Lengths beyond the limits are the caller's mistake. */
export function encodeCall(call: Call): Buffer {
  const env = Buffer.from([...call.env].map(([name, value]) => `${name}=${value}\0`).join(""));
  const header = Buffer.alloc(REQUEST_HEADER);
  header.writeUInt32BE(MAGIC, 0);
  header.writeUInt8(VERSION, 4);
  header.writeBigUInt64BE(call.startNs, 5);
  header.writeUInt32BE(env.length, 13);
  header.writeUInt32BE(call.stdin.length, 17);
  return Buffer.concat([header, env, call.stdin]);
}

function wrongStart(bytes: Buffer): string | undefined {
  if (bytes.length >= 4 && bytes.readUInt32BE(0) !== MAGIC) return "it does not begin with BRTH";
  return bytes.length > 4 && bytes.readUInt8(4) !== VERSION
    ? `its version is ${bytes.readUInt8(4)}`
    : undefined;
}

/** The whole bytes of one reply, as the client reads them. */
export function decodeReply(bytes: Buffer): Decoded<Reply> {
  const wrong = wrongStart(bytes);
  if (wrong !== undefined) return { kind: "malformed", reason: wrong };
  if (bytes.length < RESPONSE_HEADER) return { kind: "incomplete" };
  const out = RESPONSE_HEADER + bytes.readUInt32BE(6);
  const err = out + bytes.readUInt32BE(10);
  if (err > RESPONSE_HEADER + REPLY_LIMIT)
    return { kind: "malformed", reason: `a reply of ${err} bytes is longer than ${REPLY_LIMIT}` };
  if (bytes.length < err) return { kind: "incomplete" };
  if (bytes.length > err) return { kind: "malformed", reason: "bytes follow the reply" };
  const frame = {
    exitStatus: bytes.readUInt8(5),
    stdout: bytes.toString("utf8", RESPONSE_HEADER, out),
    stderr: bytes.toString("utf8", out, err),
  };
  return { kind: "complete", frame };
}
