// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { text } from "node:stream/consumers";
import { createClock } from "../system/clock.ts";
import { standardError } from "../system/logger.ts";
import { createRandom } from "../system/random.ts";
import { endingSignal } from "../system/signals.ts";
import { loadConfig } from "./config.ts";
import { run } from "./run.ts";

// Whoever read the output has seen enough: `berthctl get claims -A | head`.
process.stdout.on("error", () => process.exit());

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
