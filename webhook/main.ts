// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../allocator/errors.ts";
import { accessOf } from "../kube/access.ts";
import { connect } from "../kube/connection.ts";
import manifest from "../package.json" with { type: "json" };
import { createClock } from "../system/clock.ts";
import { ending } from "../system/ending.ts";
import { createLogger, standardError } from "../system/logger.ts";
import { createRandom } from "../system/random.ts";
import { startWebhook } from "./cluster-webhook.ts";
import { loadConfig } from "./config.ts";

try {
  await run();
} catch (error) {
  standardError().write(`berth-webhook: ${messageOf(error)}\n`);
  process.exitCode = 1;
}

/** Serves until the process is told to end. What is wrong with its surroundings at the start is thrown. */
async function run(): Promise<void> {
  const { api, logLevel, ...config } = loadConfig();
  const clock = createClock();
  const log = createLogger({ stream: standardError(), level: logLevel, clock });
  const userAgent = `berth-webhook/${manifest.version}`;
  const connection = connect(await accessOf(api), { clock, userAgent });
  const ended = ending();
  try {
    const webhook = await startWebhook({ ...config, connection, clock, random: createRandom(), log });
    log.info("webhook serves", { ...webhook.address, version: manifest.version });
    const signal = await ended;
    log.info("webhook ends", { signal });
    await webhook.close();
  } finally {
    connection.close();
  }
  await log.flush();
}
