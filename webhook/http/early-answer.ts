// SPDX-License-Identifier: Apache-2.0
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../allocator/base/ports.ts";

/** How long the rest of a body is read, and how much of it, after its answer is out. */
const LINGER_MS = 1_000;
const LINGER_BYTES = 1024 * 1024;

/**
 * Sends an answer to a request whose body may be on its way still, and closes the connection, for what is left of the body would be
 * taken for the next request. A connection that is closed with bytes in it that nobody read is reset, and a client that
 * still writes finds that instead of the answer: so a bounded rest is read first, and dropped. Until then the request counts as
 * one that is under way.
 */
export function answerEarly(
  request: IncomingMessage,
  response: ServerResponse,
  words: string,
  clock: Pick<Clock, "sleep">,
): void {
  response.setHeader("Content-Length", Buffer.byteLength(words));
  if (request.complete || !mayHaveBody(request)) {
    response.end(words);
    return;
  }
  response.setHeader("Connection", "close");
  response.write(words);
  const over = new AbortController();
  const end = () => {
    if (over.signal.aborted) return;
    over.abort("it is over"); // a reason of one's own costs no stack trace
    response.end();
  };
  let dropped = 0;
  request.on("data", (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > LINGER_BYTES) end();
  });
  for (const event of ["end", "close", "error"]) request.once(event, end);
  request.resume();
  void clock.sleep(LINGER_MS, over.signal).then(end);
}

/** By what its headers say. */
export function mayHaveBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}
