// SPDX-License-Identifier: Apache-2.0
import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface SocketState {
  /** A request came in the read that is being parsed. */
  inThisRead: boolean;
  /** Answers that are not out; the last one may be written whole and not yet reported so. */
  readonly open: Set<ServerResponse>;
}

const states = new WeakMap<Socket, SocketState>();

function stateOf(socket: Socket): SocketState {
  const known = states.get(socket) ?? { inThisRead: false, open: new Set() };
  states.set(socket, known);
  return known;
}

/**
 * Whether whoever waits for his answers could have sent this. What is written is reported a turn later than the client may have it, so
 * one answer that is written whole may stand; more than that, or two requests in one read, is a client that does not wait.
 */
function mayAsk({ inThisRead, open }: SocketState): boolean {
  if (inThisRead || open.size > 1) return false;
  return [...open].every((answer) => answer.writableEnded);
}

/** Made by Node at the end of a request's headers, before anything is answered, also where it answers by itself (400, 417). */
class Request extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    const known = stateOf(socket);
    if (mayAsk(known)) {
      known.inThisRead = true;
      // runs when all that was read is parsed
      queueMicrotask(() => {
        known.inThisRead = false;
      });
      return;
    }
    socket.destroy();
    // a destroyed socket does not stop the parser: it would make objects of all that was read. What follows an upgrade is not parsed
    Object.defineProperty(this, "upgrade", { get: () => true, set: () => {} });
  }
}

class Answer extends ServerResponse {
  constructor(...given: ConstructorParameters<typeof ServerResponse>) {
    super(...given);
    const { open } = stateOf(this.req.socket);
    open.add(this);
    this.once("close", () => open.delete(this));
  }
}

/** By what its headers say. */
export function mayHaveBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

class BodilessRequest extends Request {}

// what follows an upgrade is not parsed, and a connection on which nobody waits for one is closed
Object.defineProperty(BodilessRequest.prototype, "upgrade", {
  get(this: IncomingMessage) {
    return mayHaveBody(this);
  },
  set: () => {},
});

/**
 * For `createServer`: a connection on which one request has no answer yet may not bring a second one. It is closed at that, and nothing
 * more of it is parsed: 64 KiB have room for 2,000 requests. Go's HTTP client, which asks here, waits for each answer.
 */
export const ONE_REQUEST = { IncomingMessage: Request, ServerResponse: Answer } as const;

/** As ONE_REQUEST, where nobody has a body to send: one in chunks of a byte takes a third of a second of the event loop for each MiB. */
export const ONE_BODILESS_REQUEST = { IncomingMessage: BodilessRequest, ServerResponse: Answer } as const;
