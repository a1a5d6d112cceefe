// SPDX-License-Identifier: Apache-2.0
import { mkdir, readFile } from "node:fs/promises";
import { messageOf } from "../../allocator/errors.ts";
import { openDatabase } from "../../allocator/store/database.ts";
import { accessOf } from "../../kube/access.ts";
import { connect } from "../../kube/connection.ts";
import manifest from "../../package.json" with { type: "json" };
import type { Closers } from "../../system/assembly.ts";
import { createClock } from "../../system/clock.ts";
import { ending } from "../../system/ending.ts";
import { createLogger, standardError } from "../../system/logger.ts";
import { createMetrics } from "../../system/metrics.ts";
import { createRandom } from "../../system/random.ts";
import { startNodeAgent } from "./cluster/node-agent.ts";
import { type AgentConfig, databaseOf, loadConfig } from "./config.ts";
import { installPlugin } from "./install.ts";
import { Conflist } from "./install-conflist.ts";
import { podCidrsOf } from "./pod-cidr.ts";
import { serveProbes } from "./probes.ts";
import { warnOfLacks } from "./surroundings.ts";

const BOOT_ID = "/proc/sys/kernel/random/boot_id";

const closers: Closers = [];
try {
  await serve(loadConfig());
} catch (error) {
  standardError().write(`berth-agent: ${messageOf(error)}\n`);
  process.exitCode = 1;
}
for (const close of closers.reverse()) await close();

/** The agent of one node of a cluster, until the process is told to end. */
async function serve(config: AgentConfig): Promise<void> {
  const { node, socketPath, dataDir, listen } = config;
  const clock = createClock();
  const log = createLogger({ stream: standardError(), level: config.logLevel, clock });
  closers.push(() => log.flush());
  const metrics = createMetrics(log, "agent");
  metrics.watchProcess();
  const { version } = manifest;
  metrics.gauge("berth_build_info", () => [{ labels: { component: "agent", version }, value: 1 }]);
  const ended = ending();
  if ("host" in config.api) await warnOfLacks(log);
  if (config.plugin !== undefined) await installPlugin(config.plugin, { clock, log });
  const userAgent = `berth-agent/${manifest.version}`;
  const connection = connect(await accessOf(config.api), { clock, userAgent });
  closers.push(() => connection.close());
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const database = openDatabase(databaseOf(config), { clock, log, metrics });
  closers.push(() => database.close());
  const bootId = (await readFile(BOOT_ID, "utf8")).trim();
  const deps = { clock, random: createRandom(), log, metrics };
  const agent = await startNodeAgent({ node, connection, database, socketPath, bootId, ...deps });
  closers.push(() => agent.close());
  const isServing = () => agent.isReady;
  const podCidrs = () => podCidrsOf(connection, node);
  const conflist =
    config.conflist &&
    (await Conflist.open({ ...config.conflist, node, podCidrs, isReady: isServing, clock, log }));
  closers.push(() => conflist?.close());
  const isReady = () => isServing() && conflist?.isWritten !== false;
  const probes = await serveProbes({ ...listen, isReady, metrics, log });
  closers.push(() => probes.close());
  log.info("agent serves", { node, socket: socketPath, port: probes.port, version: manifest.version });
  log.info("agent ends", { signal: await ended });
}
