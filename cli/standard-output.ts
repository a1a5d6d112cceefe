// SPDX-License-Identifier: Apache-2.0
import type { Writable } from "node:stream";
import { messageOf } from "../allocator/base/errors.ts";
import type { ExitCode } from "./terminal/command.ts";

interface Ways {
  /** Prints a line on standard error. */
  readonly tell: (line: string) => void;
  /** Ends the process there and then. */
  readonly exit: (code: ExitCode) => void;
}

/**
 * What becomes of a command whose output nobody takes any more. One that writes records goes on without its output, as ending it in
 * the midst of them would leave them half-done; one that only reads them ends at once: `berthctl get claims -A | head`.
 */
export class StandardOutput {
  readonly #ways: Ways;
  #onlyReads = false;
  #isLost = false;

  constructor(stream: Writable, ways: Ways) {
    this.#ways = ways;
    stream.on("error", (error) => this.#failed(error));
  }

  /** The command that runs from now on writes nothing but its output. */
  onlyReads(): void {
    this.#onlyReads = true;
  }

  /** Of a process that would end with this code. Whoever closes a pipe has seen enough, and lost nothing. */
  codeAfter(code: number): number {
    return this.#isLost ? 2 : code;
  }

  #failed(error: Error): void {
    // each further write of a stream that is closed fails too
    if ("code" in error && (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED")) {
      if (this.#onlyReads) this.#ways.exit(0);
      return;
    }
    if (!this.#isLost) {
      const what = this.#onlyReads ? "" : "; what was asked for may be done";
      this.#ways.tell(`Error: the output cannot be written (${messageOf(error)})${what}\n`);
    }
    this.#isLost = true;
    if (this.#onlyReads) this.#ways.exit(2);
  }
}
