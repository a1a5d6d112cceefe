// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../allocator/base/errors.ts";
import { accessOf } from "../kube/api/access.ts";
import { connect } from "../kube/api/connection.ts";
import manifest from "../package.json" with { type: "json" };
import { AnchoredClock } from "../system/anchored-clock.ts";
import { createClock } from "../system/clock.ts";
import { endWithoutCleanup } from "../system/exit.ts";
import { createLogger, standardError } from "../system/logger.ts";
import { createRandom } from "../system/random.ts";
import { untilEndingSignal } from "../system/signals.ts";
import { loadConfig } from "./config.ts";
import { startWebhook } from "./replica.ts";

// No top-level await: the image has it as one CommonJS script (scripts/dist.sh), which has none.
endWithoutCleanup();
void run().catch((error: unknown) => {
  standardError().write(`berth-webhook: ${messageOf(error)}\n`);
  process.exitCode = 1;
});

/** Serves until the process is told to end. What is wrong with its surroundings at the start is thrown. */
async function run(): Promise<void> {
  const { api, logLevel, ...config } = loadConfig();
  const clock = createClock();
  const log = createLogger({ stream: standardError(), level: logLevel, clock });
  const userAgent = `berth-webhook/${manifest.version}`;
  const server = new AnchoredClock(clock);
  const onTime = (ms: number) => server.observe(ms);
  const connection = connect(await accessOf(api), { clock, userAgent, onTime });
  const ended = untilEndingSignal();
  try {
    const webhook = await startWebhook({ ...config, connection, clock: server, random: createRandom(), log });
    log.info("webhook serves", { ...webhook.address, version: manifest.version });
    const signal = await ended;
    log.info("webhook ends", { signal });
    await webhook.close();
  } finally {
    connection.close();
  }
  await log.flush();
}
