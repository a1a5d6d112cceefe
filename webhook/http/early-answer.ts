// SPDX-License-Identifier: Apache-2.0
import type { ServerResponse } from "node:http";
import type { Clock } from "../../allocator/base/ports.ts";
import { mayHaveBody } from "../../system/one-request.ts";
import { BodyPieces } from "../review/request-body.ts";

/** How long the rest of a body is read, and how much of it, after its answer is out. */
const LINGER_MS = 1_000;
const LINGER_BYTES = 1024 * 1024;

/**
 * Sends an answer to a request whose body may be on its way still, and closes the connection, for what is left of the body would be
 * taken for the next request. A connection that is closed with bytes in it that nobody read is reset, and a client that
 * still writes finds that instead of the answer: so a bounded rest is read first, and dropped. Until then the request counts as
 * one that is under way. `most`: how many bytes of it are read; 0, none.
 */
export function answerEarly(
  response: ServerResponse,
  words: string,
  clock: Pick<Clock, "sleep">,
  most = LINGER_BYTES,
): void {
  const request = response.req;
  response.setHeader("Content-Length", Buffer.byteLength(words));
  if (request.complete || !mayHaveBody(request)) {
    response.end(words);
    return;
  }
  response.setHeader("Connection", "close");
  if (most === 0) {
    response.end(words);
    // at once: of what was read from the network already, up to 64 KiB, all that is not decrypted yet would be parsed
    request.socket.destroy();
    return;
  }
  response.write(words);
  const over = new AbortController();
  const end = () => {
    if (over.signal.aborted) return;
    over.abort("it is over"); // a reason of one's own costs no stack trace
    response.end();
  };
  const { socket } = request;
  const before = socket.bytesRead;
  const pieces = new BodyPieces();
  request.on("data", (chunk: Buffer) => {
    // as they come over the wire: what is around a chunk may be more than is in it
    if (socket.bytesRead - before > most) end();
    if (!pieces.add(chunk.length)) return;
    end();
    socket.destroy();
  });
  for (const event of ["end", "close", "error"]) request.once(event, end);
  request.resume();
  void clock.sleep(LINGER_MS, over.signal).then(end);
}
