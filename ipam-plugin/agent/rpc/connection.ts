// SPDX-License-Identifier: Apache-2.0
import type { Socket } from "node:net";
import { messageOf } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { cniError, errorAnswer } from "../../cni/errors.ts";
import { ACKNOWLEDGED, type Call, CallDecoder, encodeReply, NOT_ACCEPTED, type Reply } from "./frame.ts";

/**
 * What became of an answer. `lost`: it is certain that the runtime did not get it, and what was done for it can be
 * undone. `delivered`: the client acknowledged it, or nobody can know any more because the server was closed first.
 */
export type Outcome = "delivered" | "lost";

/** A reply and, for an ADD that succeeded, who wants to know what became of it. Clients acknowledge nothing else. */
export interface Answer extends Reply {
  /** Called exactly once, after the client is gone or has acknowledged. */
  settle?(outcome: Outcome): void | Promise<void>;
}

/** Answers one call. `signal` aborts when the client goes away; what is answered after that is lost. */
export type Handler = (call: Call, signal: AbortSignal) => Promise<Answer>;

/** Memory for requests that are not complete, shared by all connections. */
export interface MemoryBudget {
  /** False when there is none left; nothing is taken then. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

interface ConnectionOptions {
  readonly handle: Handler;
  readonly log: Logger;
  readonly clock: Clock;
  readonly budget: MemoryBudget;
  /** The client is gone, its handler has ended and its answer is settled. */
  readonly over: (connection: Connection) => void;
}

/** A client sends its request at once; one that does not is no client. */
export const REQUEST_MS = 5_000;
/** The client's longest limit (ADD, 30 s) and something for its last steps: then it cannot acknowledge any more. */
const ANSWER_MS = 35_000;

/** What a client is told that cannot be served now. A DEL is spooled by the client. */
const BUSY = encodeReply({
  exitStatus: NOT_ACCEPTED,
  stdout: errorAnswer(
    "1.1.0",
    cniError("TRY_AGAIN_LATER", "the berth agent has too many calls at once; try again later"),
  ),
  stderr: "",
});

const FAILED: Reply = {
  exitStatus: 1,
  stdout: errorAnswer("1.1.0", cniError("INTERNAL", "internal error; see the agent's log")),
  stderr: "",
};

/** A reason that is made once: one of its own costs each call a stack trace. */
const GONE = "the client is gone";

/**
 * reading: the request comes -> working: the handler runs -> answered: the client prints -> ended.
 * Every phase may end early with the connection.
 */
type Phase = "reading" | "working" | "answered" | "ended";

/** One connection, one call. */
export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  #phase: Phase = "reading";
  #decoder: CallDecoder | undefined = new CallDecoder();
  #held = 0;
  #deadline: number;
  /** The deadline passed at the last look. */
  #late = false;
  #abort: AbortController | undefined;
  #answer: Answer | undefined;
  #abandoned = false;
  /** The socket, a handler that runs, a settlement that runs. */
  #holders = 1;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#deadline = options.clock.monotonic() + REQUEST_MS;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    // The client never closes only its half: its end is its death.
    socket.on("end", () => socket.destroy());
    socket.on("error", (error) => options.log.debug("connection broke", { error: messageOf(error) }));
    socket.on("close", () => this.#closed());
  }

  /** Answers at once that the request will not be looked at; what the client still sends is dropped. */
  refuse(): void {
    this.#phase = "ended";
    this.#release();
    this.#socket.end(BUSY);
  }

  /**
   * Drops a client that takes too long. It has to be found late twice, because between two looks everything is read
   * that came before the first: after a pause of this process an acknowledgement may lie in the socket unread.
   */
  check(now: number): void {
    if (now < this.#deadline) return;
    if (this.#late) {
      this.#options.log.warn(
        this.#phase === "answered" ? "answer was not acknowledged in time" : "request did not come in time",
      );
      this.#socket.destroy();
    }
    this.#late = true;
  }

  /** The server closes and waits no longer. */
  abandon(): void {
    this.#abandoned = true;
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    if (this.#phase === "reading") this.#read(chunk);
    else if (this.#phase === "working") this.#reject("bytes follow the request");
    else if (this.#phase === "answered") this.#acknowledge(chunk);
  }

  #read(chunk: Buffer): void {
    const decoder = this.#decoder;
    if (decoder === undefined) return;
    const growth = decoder.growth(chunk.length);
    if (!this.#options.budget.take(growth)) {
      this.#refuseForMemory();
      return;
    }
    this.#held += growth;
    const decoded = decoder.push(chunk);
    if (decoded.kind === "complete") {
      this.#release();
      this.#work(decoded.frame).catch((error: unknown) =>
        this.#options.log.error("connection failed", { error }),
      );
    } else if (decoded.kind === "malformed") {
      this.#reject(decoded.reason);
    } else if (this.#options.budget.take(decoder.held - this.#held)) {
      this.#held = decoder.held;
    } else {
      this.#refuseForMemory();
    }
  }

  #refuseForMemory(): void {
    this.#options.log.warn("requests take too much memory");
    this.refuse();
  }

  /** Hangs up: what is no client of this version would not understand an answer either. A client spools its DEL. */
  #reject(reason: string): void {
    this.#options.log.warn("request cannot be read", { error: reason });
    this.#socket.destroy();
  }

  async #work(call: Call): Promise<void> {
    this.#phase = "working";
    this.#deadline = Number.POSITIVE_INFINITY;
    this.#late = false;
    this.#abort = new AbortController();
    this.#holders += 1;
    try {
      const answer = await this.#ask(call, this.#abort.signal);
      if (this.#phase === "working") this.#send(answer);
      else await this.#settle(answer, "lost");
    } finally {
      this.#drop();
    }
  }

  async #ask(call: Call, signal: AbortSignal): Promise<Answer> {
    try {
      return await this.#options.handle(call, signal);
    } catch (error) {
      this.#options.log.error("handler failed", { verb: call.env.get("CNI_COMMAND"), error });
      return FAILED;
    }
  }

  #send(answer: Answer): void {
    this.#phase = "answered";
    this.#deadline = this.#options.clock.monotonic() + ANSWER_MS;
    this.#answer = answer.settle === undefined ? undefined : answer;
    this.#socket.write(this.#encode(answer));
  }

  #encode(answer: Answer): Buffer {
    try {
      return encodeReply(answer);
    } catch (error) {
      this.#options.log.error("answer cannot be sent", { error });
      return encodeReply(FAILED);
    }
  }

  #acknowledge(chunk: Buffer): void {
    const answer = this.#answer;
    this.#answer = undefined;
    const delivered = chunk.length === 1 && chunk[0] === ACKNOWLEDGED;
    if (answer !== undefined) this.#settleSoon(answer, delivered ? "delivered" : "lost");
    this.#socket.destroy();
  }

  #closed(): void {
    // once it has answered nobody listens
    if (this.#phase === "working") this.#abort?.abort(GONE);
    this.#phase = "ended";
    this.#release();
    const answer = this.#answer;
    this.#answer = undefined;
    if (answer !== undefined) this.#settleSoon(answer, this.#abandoned ? "delivered" : "lost");
    this.#drop();
  }

  #settleSoon(answer: Answer, outcome: Outcome): void {
    this.#holders += 1;
    void this.#settle(answer, outcome).finally(() => this.#drop());
  }

  async #settle(answer: Answer, outcome: Outcome): Promise<void> {
    try {
      await answer.settle?.(outcome);
    } catch (error) {
      this.#options.log.error("outcome of an answer was not taken in", { error });
    }
  }

  #release(): void {
    this.#options.budget.give(this.#held);
    this.#held = 0;
    this.#decoder = undefined;
  }

  #drop(): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.#options.over(this);
  }
}
