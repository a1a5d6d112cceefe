// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { text } from "node:stream/consumers";
import { messageOf } from "../allocator/base/errors.ts";
import { createClock } from "../system/clock.ts";
import { standardError } from "../system/logger.ts";
import { errnoOf } from "../system/path-error.ts";
import { createRandom } from "../system/random.ts";
import { endingSignal } from "../system/signals.ts";
import { loadConfig } from "./config.ts";
import { run } from "./run.ts";

process.stdout.on("error", (error) => {
  // Whoever read the output has seen enough: `berthctl get claims -A | head`.
  if (errnoOf(error) === "EPIPE") process.exit();
  standardError().write(
    `Error: the output cannot be written (${messageOf(error)}); what was asked for may be done\n`,
  );
  process.exit(2);
});

// No top-level await: the released berthctl is one CommonJS script (scripts/standalone.sh), which has none.
void run(process.argv.slice(2), {
  ...loadConfig(),
  io: {
    stdout: process.stdout,
    stderr: standardError(),
    stdin: () => text(process.stdin),
    clock: createClock(),
    random: createRandom(),
    uuid: randomUUID,
    ending: endingSignal,
  },
}).then((status) => {
  process.exitCode = status;
});
