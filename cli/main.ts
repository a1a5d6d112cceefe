// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { text } from "node:stream/consumers";
import { createClock } from "../system/clock.ts";
import { endWithoutCleanup } from "../system/exit.ts";
import { standardError } from "../system/logger.ts";
import { createRandom } from "../system/random.ts";
import { endingSignal } from "../system/signals.ts";
import { loadConfig } from "./config.ts";
import { run } from "./run.ts";
import { StandardOutput } from "./standard-output.ts";

const stderr = standardError();
const output = new StandardOutput(process.stdout, {
  tell: (line) => stderr.write(line),
  exit: (code) => process.exit(code),
});

// No top-level await: the released berthctl is one CommonJS script (scripts/standalone.sh), which has none.
void run(process.argv.slice(2), {
  ...loadConfig(),
  onlyReads: () => output.onlyReads(),
  io: {
    stdout: process.stdout,
    stderr,
    stdin: () => text(process.stdin),
    clock: createClock(),
    random: createRandom(),
    uuid: randomUUID,
    ending: endingSignal,
  },
}).then((status) => {
  process.exitCode = status;
});
// what was printed last may fail when the command has ended
process.once("exit", (code) => {
  process.exitCode = output.codeAfter(code);
});
endWithoutCleanup();
