// SPDX-License-Identifier: Apache-2.0
import { mkdir } from "node:fs/promises";
import { messageOf } from "../../allocator/base/errors.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { accessOf } from "../../kube/api/access.ts";
import { connect } from "../../kube/api/connection.ts";
import manifest from "../../package.json" with { type: "json" };
import { AnchoredClock } from "../../system/anchored-clock.ts";
import { createClock } from "../../system/clock.ts";
import { endWithoutCleanup } from "../../system/exit.ts";
import { createLogger, standardError } from "../../system/logger.ts";
import { createMetrics } from "../../system/metrics.ts";
import { createRandom } from "../../system/random.ts";
import type { CleanupStack } from "../../system/shutdown.ts";
import { untilEndingSignal } from "../../system/signals.ts";
import { startNodeAgent } from "./cluster-agent.ts";
import { keepCompiledCode, tidyCompiledCode } from "./compile-cache.ts";
import { type AgentConfig, conflistRecordOf, databaseOf, loadConfig, writtenFiles } from "./config.ts";
import { Conflist } from "./install/conflist.ts";
import { warnAboutHost } from "./install/host-checks.ts";
import { InstalledPlugin } from "./install/installed-plugin.ts";
import { removeLeftoversLater } from "./install/leftovers.ts";
import { podCidrsOf } from "./install/pod-cidr.ts";
import { adopt } from "./journal/adopt.ts";
import { markFileOf } from "./journal/boot-mark.ts";
import { linuxHost, readBootId } from "./journal/host.ts";
import { leasesOn } from "./journal/host-local-leases.ts";
import { recordOf, recordsIn } from "./journal/runtime-records.ts";
import { unreadRecordsIn } from "./journal/unread-records.ts";
import { gaugeOf } from "./metrics.ts";
import { serveProbes } from "./probes.ts";
import { startWhenBound } from "./refuse-until-adopted.ts";

const NOT_LOADED = "claims are not loaded";
const NOT_WRITTEN = "the conflist is not brought to the host; if it cannot be, the log says why";

const closers: CleanupStack = [];
// No top-level await: the image has the agent as one CommonJS script (scripts/dist.sh), which has none.
endWithoutCleanup();
void main();

async function main(): Promise<void> {
  try {
    if (process.argv[2] === "adopt") await adoptJournal(loadConfig());
    else await serve(loadConfig());
  } catch (error) {
    standardError().write(`berth-agent: ${messageOf(error)}\n`);
    process.exitCode = 1;
  }
  for (const close of closers.reverse()) await close();
}

/** The agent of one node of a cluster, until the process is told to end. */
async function serve(config: AgentConfig): Promise<void> {
  const { node, socketPath, dataDir, listen } = config;
  tidyCompiledCode(dataDir); // before the journal needs the room
  const clock = createClock();
  const log = createLogger({ stream: standardError(), level: config.logLevel, clock });
  closers.push(() => log.flush());
  const metrics = createMetrics(log, "agent");
  metrics.watchProcess();
  const { version } = manifest;
  metrics.gauge("berth_build_info", () => [{ labels: { component: "agent", version }, value: 1 }]);
  const ended = untilEndingSignal();
  const stop = new AbortController();
  void ended.then(() => stop.abort());
  if ("host" in config.api) await warnAboutHost(log);
  const { signal } = stop;
  const plugin =
    config.plugin &&
    (await InstalledPlugin.open({ ...config.plugin, aliases: config.aliases, clock, log, signal }));
  closers.push(() => plugin?.close());
  gaugeOf(metrics, "berth_agent_plugin_failing", () => (plugin?.failing === undefined ? 0 : 1));
  const userAgent = `berth-agent/${manifest.version}`;
  const server = new AnchoredClock(clock);
  const onTime = (ms: number) => server.observe(ms);
  const connection = connect(await accessOf(config.api), { clock, userAgent, onTime });
  closers.push(() => connection.close());
  const bootId = await readBootId();
  const deps = { clock: server, random: createRandom(), log, metrics };
  // Probes are there before it serves: it may have to wait for a person, and the kubelet need not restart it for that.
  let isServing = () => false;
  let notReady = (): string | undefined => NOT_LOADED;
  gaugeOf(metrics, "berth_ready", () => (isServing() ? 1 : 0));
  const probes = await serveProbes({ ...listen, notReady: () => notReady(), metrics, log });
  closers.push(() => probes.close());
  const swept = removeLeftoversLater(writtenFiles(config), { clock, log, signal });
  closers.push(async () => {
    stop.abort();
    await swept;
  });
  const { resultFolders } = config;
  const runtimeRecords = recordsIn(resultFolders, linuxHost);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  // what was ended in order has no -wal, for which there must be room before anything can be read
  const database = await startWhenBound(
    async () => openDatabase(databaseOf(config), { clock, log, metrics }),
    { socketPath, mark: markFileOf(socketPath), runtimeRecords, clock, log, signal },
  );
  closers.push(() => database.close());
  // files are written by the host's own clock
  const hostLocalLeases = leasesOn(linuxHost, resultFolders, () => clock.now());
  const { dialects, refusalsNameAll, unreviewedPods, etcdCertificates } = config;
  const etcd = etcdCertificates === undefined ? {} : { etcdCertificates };
  const choices = { dialects, refusalsNameAll, unreviewedPods, ...etcd };
  const here = { node, connection, database, socketPath, bootId, ...choices };
  const unreadRecords = unreadRecordsIn(resultFolders, linuxHost);
  const runtime = { runtimeRecords, unreadRecords, recordOf: recordOf(resultFolders) };
  const agent = await startNodeAgent({ ...here, ...runtime, hostLocalLeases, signal, ...deps });
  closers.push(() => agent.close());
  isServing = () => agent.isReady;
  const ranges = { podCidrs: () => podCidrsOf(connection, node), nodeUID: () => agent.nodeUID() };
  const aliases = config.aliases?.names ?? [];
  const withoutPlugin = () => (plugin?.isServed === false ? plugin.failing : undefined);
  const conflist =
    config.conflist &&
    (await Conflist.open({
      ...{ ...config.conflist, record: conflistRecordOf(config), aliases, node, ...ranges },
      ...{ isReady: () => isServing() && withoutPlugin() === undefined, clock, log },
    }));
  closers.push(() => conflist?.close());
  notReady = () => {
    if (!isServing()) return NOT_LOADED;
    return withoutPlugin() ?? (conflist?.isWritten === false ? NOT_WRITTEN : undefined);
  };
  keepCompiledCode(dataDir);
  log.info("agent serves", { node, socket: socketPath, port: probes.port, version: manifest.version });
  log.info("agent ends", { signal: await ended });
}

/** `main.ts adopt [--yes]`, in the agent's pod: what `berthctl adopt` is on a host. */
async function adoptJournal(config: AgentConfig): Promise<void> {
  const { socketPath } = config;
  const confirmed = process.argv[3] === "--yes";
  const runtimeRecords = recordsIn(config.resultFolders, linuxHost);
  const bootId = await readBootId();
  const adoption = { database: databaseOf(config), socketPath, bootId, confirmed, runtimeRecords };
  for (const line of await adopt(adoption)) process.stdout.write(`${line}\n`);
}
