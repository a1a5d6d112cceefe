// SPDX-License-Identifier: Apache-2.0
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";
import type { EtcdAccess } from "../../allocator/store/etcd/access.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { startAgent } from "../../ipam-plugin/agent/agent.ts";
import { EtcdSides } from "../../ipam-plugin/agent/claims/etcd/etcd-sides.ts";
import { beginProcess } from "../../ipam-plugin/agent/journal/etcd-processes.ts";
import { linuxHost, readBootId } from "../../ipam-plugin/agent/journal/host.ts";
import { leasesOn } from "../../ipam-plugin/agent/journal/host-local-leases.ts";
import { Journal } from "../../ipam-plugin/agent/journal/journal.ts";
import { KnownEtcds } from "../../ipam-plugin/agent/journal/known-etcds.ts";
import { bootTime, RESULT_FOLDERS, recordsIn } from "../../ipam-plugin/agent/journal/runtime-records.ts";
import { AnchoredClock } from "../../system/anchored-clock.ts";
import { createMetrics } from "../../system/metrics.ts";
import { type CleanupStack, withCleanup } from "../../system/shutdown.ts";
import { databaseOf } from "../backend/embedded-backend.ts";
import { announce, ownFolder, refuseTaken, requireShort } from "./data-folder.ts";

interface EtcdHostOptions {
  readonly access: EtcdAccess;
  readonly dataDir: string;
  /** Where the CNI plugin finds the agent; `agent.sock` in the data folder if absent. */
  readonly socketPath?: string;
  /** This host's name if absent. */
  readonly node?: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Below which networks' configurations may name certificates; /etc/cni/net.d if absent. */
  readonly certificates?: string;
  /** How often the host tells etcd that it is there; as usual if absent. */
  readonly beatMs?: number;
}

export interface EtcdHost {
  readonly socketPath: string;
  close(): Promise<void>;
}

/** Where cni-ipam-etcd's users have them. */
const CERTIFICATES = "/etc/cni/net.d";
/** A part of keys in etcd, and of what people type. */
const NODE = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,251}[A-Za-z0-9])?$/;

/**
 * The agent of one of many hosts: its journal is in the data folder, pools and claims are in etcd. It serves although etcd
 * cannot be reached: DEL and CHECK need the journal alone. Throws BerthError: CONFIG_INVALID for what the administrator can put right.
 */
export async function startEtcdHost(options: EtcdHostOptions): Promise<EtcdHost> {
  return await withCleanup((closers) => assemble(options, closers));
}

async function assemble(
  options: EtcdHostOptions,
  closers: CleanupStack,
): Promise<Pick<EtcdHost, "socketPath">> {
  const { access, dataDir, random, log } = options;
  const node = nodeOf(options.node ?? hostname());
  const clock = new AnchoredClock(options.clock); // what a record says is compared with what a later one says
  const socketPath = resolve(options.socketPath ?? join(dataDir, "agent.sock"));
  requireShort(socketPath);
  const folder = await ownFolder(dataDir, closers);
  refuseTaken(socketPath);
  const database = openDatabase(databaseOf(dataDir), { clock, log });
  closers.push(() => database.close());
  const metrics = createMetrics(log);
  const journal = new Journal(database);
  await journal.id(random);
  const beats = options.beatMs === undefined ? {} : { beatMs: options.beatMs };
  const bootedAt = await bootTime(linuxHost);
  const etcd = new EtcdSides({
    ...{ access, bootedAt, node, clock, random, log, metrics, ...beats },
    journal: () => journal.knownId() ?? "",
    process: await beginProcess(database, random),
    rules: { certificates: options.certificates ?? CERTIFICATES, provenOnly: false },
    journalled: new KnownEtcds<EtcdAccess>(database),
  });
  closers.push(() => etcd.close());
  const bootId = await readBootId();
  folder.keep(); // from here on an ADD may be answered
  const agent = await startAgent({
    ...{ database, socketPath, clock, random, log, bootId, metrics },
    claimSource: etcd.claimSource,
    sharedNetworks: etcd,
    pools: () => etcd.pools(),
    runtimeRecords: recordsIn(RESULT_FOLDERS, linuxHost),
    // files are written by the host's own clock
    hostLocalLeases: leasesOn(linuxHost, RESULT_FOLDERS, () => options.clock.now()),
  });
  closers.push(() => agent.close());
  etcd.start(() => agent.attached());
  const place = access.endpoints.join(",");
  const file = { pid: process.pid, socket: socketPath, node, etcd: place };
  const noWebhook = { webhook: "", ca: "", cert: "", key: "", reviews: "" };
  await announce(dataDir, { ...noWebhook, ...file }, closers);
  folder.started();
  return { socketPath };
}

function nodeOf(name: string): string {
  if (NODE.test(name) && name !== "localhost") return name;
  const words = `${JSON.stringify(name)} cannot be this host's name among those that share an etcd; give it one of its own with --node`;
  throw new BerthError("CONFIG_INVALID", words);
}
