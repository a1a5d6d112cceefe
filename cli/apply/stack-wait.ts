// SPDX-License-Identifier: Apache-2.0
import { connect } from "node:net";
import { shortDuration } from "../../allocator/base/go-duration.ts";
import { noStack, readStackFile, type StackFile } from "../backend/stack-file.ts";
import type { CommandContext } from "../terminal/command.ts";
import { printable } from "../terminal/output.ts";

const LOOK_EVERY_MS = 100;

/**
 * The stack of the folder, once it serves: whoever types `berthctl up &` types the next command at once. A stack that was
 * killed leaves its file, so it must take connections, too. Throws NOT_READY when `waitMs` are over, or at `givenUp`.
 */
export async function waitForStack(
  { dataDir, io }: Pick<CommandContext, "dataDir" | "io">,
  waitMs: number,
  givenUp?: AbortSignal,
): Promise<StackFile> {
  const until = io.clock.monotonic() + waitMs;
  for (let reported = false; ; reported = true) {
    const stack = readStackFile(dataDir);
    // one of an older version has no socket; its caller says so
    if (stack !== undefined && (stack.reviews === "" || (await isListening(stack.reviews)))) return stack;
    if (givenUp?.aborted === true || io.clock.monotonic() >= until) throw noStack(dataDir);
    if (!reported) {
      const words = `no berth stack is ready on ${dataDir}; waiting for one up to ${shortDuration(waitMs)} (--wait)`;
      io.stderr.write(`${printable(words)}\n`);
    }
    await io.clock.sleep(LOOK_EVERY_MS);
  }
}

/** What is wrong otherwise, as a socket that is closed to this user, the call itself tells better. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", (error) => {
      const code = "code" in error ? error.code : undefined;
      resolve(code !== "ECONNREFUSED" && code !== "ENOENT");
    });
  });
}
