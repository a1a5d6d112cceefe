// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Context } from "../allocator/context.ts";
import { BerthError } from "../allocator/errors.ts";
import { keepHouse } from "../allocator/housekeeping.ts";
import { type Following, follow, Mirror } from "../allocator/mirror.ts";
import { KeyedMutex } from "../allocator/mutex.ts";
import type { Clock, Logger, Random } from "../allocator/ports.ts";
import { Reaper } from "../allocator/reaper.ts";
import { openDatabase } from "../allocator/store/database.ts";
import { openShelf } from "../allocator/store/shelf.ts";
import { openSqliteStore } from "../allocator/store/sqlite.ts";
import { startAgent } from "../ipam-plugin/agent/agent.ts";
import { Claims } from "../ipam-plugin/agent/claims.ts";
import { assembled, type Closers } from "../system/assembly.ts";
import { writeDurably } from "../system/durable-file.ts";
import { createMetrics } from "../system/metrics.ts";
import { hearOfPools } from "../webhook/admission/catch-up.ts";
import { createHandlers } from "../webhook/admission/handlers.ts";
import { createApp } from "../webhook/app.ts";
import { ensureCertificates } from "../webhook/certificate-folder.ts";
import { measure } from "../webhook/measure.ts";
import { serveTls } from "../webhook/server.ts";
import { databaseOf } from "./ledger.ts";
import { loadPools } from "./pools-file.ts";
import { readStackFile, type StackFile, stackFileOf } from "./stack-file.ts";

export interface StackOptions {
  readonly dataDir: string;
  /** Where the CNI plugin finds the agent; `agent.sock` in the data folder if absent. */
  readonly socketPath?: string;
  /** Pools and namespaces to apply before serving, as a file of manifests. */
  readonly poolsFile?: string;
  /** Any that is free if absent or 0. */
  readonly webhookPort?: number;
  /** 127.0.0.1 if absent. */
  readonly webhookHost?: string;
  /** This host's name if absent. */
  readonly node?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface Stack {
  readonly webhookUrl: string;
  readonly socketPath: string;
  /** Drains the webhook, ends the agent's calls, and closes the database. Repeatable. */
  close(): Promise<void>;
}

const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * Webhook, allocator and agent in one process on one SQLite file. The agent serves first, for a node without it starts
 * no pod: what it answers for a claim it reads from the file, and only a new choice waits for the mirror. Whatever was started is closed again, in reverse,
 * when a later part cannot start. Throws BerthError: CONFIG_INVALID for what the administrator can mend.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  return await assembled((closers) => assemble(options, closers));
}

async function assemble(
  options: StackOptions,
  closers: Closers,
): Promise<Pick<Stack, "webhookUrl" | "socketPath">> {
  const { dataDir, clock, random, log } = options;
  refuseSecond(dataDir);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const node = options.node ?? hostname();
  const socketPath = options.socketPath ?? join(dataDir, "agent.sock");
  const database = openDatabase(databaseOf(dataDir), { clock, log });
  closers.push(() => database.close());
  const store = openSqliteStore(database, { clock, random, log });
  closers.push(() => store.close());
  const shelf = openShelf(database);
  const { view, pools, synced } = startMirror({ store, log }, closers);
  await pools;
  const context: Context = { store, view, clock, random, log, serial: new KeyedMutex() };
  const metrics = createMetrics(log);
  measure(metrics, view);
  const house = keepHouse(context, new Reaper(context, shelf), metrics);
  closers.push(() => house.close());
  const suspect = house.suspect.bind(house);
  const mooring = new Claims({ context, inventory: shelf, node, suspect, whole: synced });
  const catchUp = () => hearOfPools(context, view);
  const handlers = createHandlers({ context, inventory: shelf, embedded: shelf, suspect, catchUp });
  if (options.poolsFile !== undefined) {
    await synced;
    await loadPools(options.poolsFile, { handlers, store, uuid: randomUUID });
  }
  const bootId = (await readFile(BOOT_ID, "utf8")).trim();
  const agent = await startAgent({ database, socketPath, mooring, clock, random, log, bootId, metrics });
  closers.push(() => agent.close());
  await synced;
  const app = createApp({
    handlers,
    ready: () => ({ ready: view.ready, reason: "records are not loaded" }),
    metrics,
    log,
    clock,
  });
  const webhook = await startWebhook({ ...options, app }, closers);
  await announce(dataDir, { pid: process.pid, ...webhook, socket: socketPath, node }, closers);
  return { webhookUrl: webhook.webhook, socketPath };
}

function startMirror(
  { store, log }: Pick<Context, "store" | "log">,
  closers: Closers,
): { readonly view: Mirror } & Pick<Following, "pools" | "synced"> {
  const view = new Mirror(log);
  const stop = new AbortController();
  const following = follow(store, view, stop.signal);
  const ended = following.ended.catch((error: unknown) => {
    log.error("records are no longer followed; restart the stack", { error });
  });
  closers.push(async () => {
    stop.abort();
    await ended;
  });
  return { view, ...following };
}

async function startWebhook(
  options: StackOptions & { readonly app: ReturnType<typeof createApp> },
  closers: Closers,
): Promise<Pick<StackFile, "webhook" | "ca">> {
  const { clock, log, app, webhookHost: host = "127.0.0.1", webhookPort: port = 0 } = options;
  const folder = join(options.dataDir, "tls");
  const given = isIP(host) === 0 ? { dnsNames: [host], addresses: [] } : { dnsNames: [], addresses: [host] };
  const names = {
    dnsNames: [...new Set(["localhost", ...given.dnsNames])],
    addresses: [...new Set(["127.0.0.1", "::1", ...given.addresses])],
  };
  const { leaf } = await ensureCertificates(folder, names, clock);
  const server = await serveTls({ app, host, port, certificate: leaf, log, clock });
  closers.push(() => server.close());
  const renewing = renewDaily({ folder, names, clock, log, reload: (pair) => server.reload(pair) });
  closers.push(() => renewing.close());
  return { webhook: `https://${host}:${server.address.port}`, ca: join(folder, "ca.crt") };
}

const DAY_MS = 86_400_000;

/** A stack may run for longer than its certificate lives. */
function renewDaily(of: {
  readonly folder: string;
  readonly names: Parameters<typeof ensureCertificates>[1];
  readonly clock: Clock;
  readonly log: Logger;
  readonly reload: (pair: Awaited<ReturnType<typeof ensureCertificates>>["leaf"]) => void;
}): { close(): Promise<void> } {
  const stop = new AbortController();
  const run = async () => {
    for (;;) {
      await of.clock.sleep(DAY_MS, stop.signal);
      if (stop.signal.aborted) return;
      try {
        of.reload((await ensureCertificates(of.folder, of.names, of.clock)).leaf);
      } catch (error) {
        of.log.error("certificate could not be renewed", { error });
      }
    }
  };
  const running = run();
  return {
    async close() {
      stop.abort();
      await running;
    },
  };
}

/** Tells other processes of this host where the stack is, for as long as it is there. */
async function announce(dataDir: string, file: StackFile, closers: Closers): Promise<void> {
  const path = stackFileOf(dataDir);
  await writeDurably(path, `${JSON.stringify(file)}\n`, 0o600);
  closers.push(() => rmSync(path, { force: true }));
}

/** Two stacks on one file would be two agents with one journal. A pid alone may be somebody else's by now. */
function refuseSecond(dataDir: string): void {
  const other = readStackFile(dataDir);
  if (other === undefined || other.pid === process.pid || !isStack(other.pid)) return;
  throw new BerthError(
    "CONFIG_INVALID",
    `a berth stack (pid ${other.pid}) runs on ${dataDir} already; stop it first, or choose another --data folder`,
    { details: { path: dataDir } },
  );
}

function isStack(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes("up");
  } catch {
    return false;
  }
}
