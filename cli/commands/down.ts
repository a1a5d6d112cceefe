// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import { shortDuration } from "../../allocator/base/go-duration.ts";
import { isStack, readStackFile } from "../backend/stack-file.ts";
import type { Command, CommandContext } from "../terminal/command.ts";
import { DATA, WAIT, waitMsOf } from "../terminal/flags.ts";
import { printable } from "../terminal/output.ts";

const LOOK_EVERY_MS = 50;

/** `berthctl down` */
export const down: Command = {
  name: "down",
  summary: "stop the stack of a data folder; what it keeps stays",
  usage: ["down [--wait DURATION] [--data DIR]"],
  flags: {
    wait: { ...WAIT, about: "how long to wait for its stack to end (default: 30s)" },
    data: DATA,
  },
  inCluster: "remove the release with: helm uninstall",
  examples: ["berthctl down --data ./berth"],
  async run(args, context) {
    args.expect();
    const { io, dataDir } = context;
    const stack = readStackFile(dataDir);
    if (stack === undefined || !isStack(stack.pid)) {
      io.stderr.write(`${printable(`no berth stack runs on ${dataDir}`)}\n`);
      return 0;
    }
    process.kill(stack.pid, "SIGTERM");
    await untilGone(context, stack.pid, waitMsOf(args.text("wait")));
    io.stdout.write(`stopped (pid ${stack.pid})\n`);
    return 0;
  },
};

async function untilGone(
  { io, dataDir }: Pick<CommandContext, "io" | "dataDir">,
  pid: number,
  waitMs: number,
): Promise<void> {
  const until = io.clock.monotonic() + waitMs;
  while (isStack(pid)) {
    if (io.clock.monotonic() >= until) {
      const words = `the berth stack on ${dataDir} (pid ${pid}) was told to end and has not in ${shortDuration(waitMs)}; look at its log`;
      throw new BerthError("TIMED_OUT", words, { details: { path: dataDir } });
    }
    await io.clock.sleep(LOOK_EVERY_MS);
  }
}
