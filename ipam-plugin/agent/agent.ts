// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Address, Family } from "../../allocator/ip/address.ts";
import { makeFolder } from "../../system/folders.ts";
import { whyShared } from "../../system/private-folder.ts";
import { ifUnused, OrphanSweeper, releasePreviousBoot } from "./background/orphan-sweeper.ts";
import { replaySpool, watchSpool } from "./background/spool.ts";
import { BlockReporter } from "./blocks/block-reporter.ts";
import type { IsKnown, RequireOurs } from "./claims/claim-source.ts";
import { createHandler } from "./commands/dispatch.ts";
import { type Attachment, attachedNoticeOf } from "./journal/attachment.ts";
import { bindToBoot, markFileOf } from "./journal/boot-mark.ts";
import type { RuntimeRecords } from "./journal/runtime-records.ts";
import { measureNode } from "./metrics.ts";
import { requireUnserved, serveSocket } from "./rpc/server.ts";
import { type AgentServices, createServices, type ServicesOptions } from "./services/services.ts";

export interface AgentOptions extends ServicesOptions {
  /** Of the unix socket; the spool is the folder `spool` beside it, and the mark of the boot. */
  readonly socketPath: string;
  /** What the runtime says of this node's sandboxes; absent: nothing. */
  readonly runtimeRecords?: RuntimeRecords;
}

export interface Agent {
  /** Addresses in use on this node, of every network. */
  held(): readonly Address[];
  attached(): readonly Attachment[];
  /** Whoever keeps the records has told of blocks or pools: what is known of them now is what is given from. */
  blocksChanged(): Promise<void>;
  /** What decides which pools are open to a pod was heard of. */
  factsChanged(): void;
  /** Whether pods that ask for nothing are served out of blocks of the pool, so far as is known. */
  hasBlocks(pool: string): boolean;
  /** Every pool that there is; undefined: not all are known. */
  allPools(): ReturnType<AgentServices["blockFollower"]["pools"]> | undefined;
  /** Addresses of the pool's blocks that cannot be given now. */
  blockUse(pool: string, family: Family): number;
  /** Runs `work` in the claim's turn, if no sandbox of this node has the claim: no ADD of it is under way then. */
  unlessInUse(
    claim: string,
    work: (isKnown: IsKnown, requireOurs: RequireOurs) => Promise<void>,
  ): Promise<void>;
  /** Takes no more calls, ends those under way, stops. Repeatable. */
  close(): Promise<void>;
}

/**
 * Starts the node's agent: journal, reboot, spool, and only then the socket, so that no ADD is answered before what
 * is taken is known. Throws BerthError of the database, the spool or the socket, and JOURNAL_MISMATCH when another
 * journal has served in this boot.
 */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  await requireUnserved(options.socketPath); // before the journal is taken from whoever serves there
  const services = await createServices(options);
  const { log, clock, attachments, detachReporter } = services;
  const journal = await services.journal.id(options.random);
  const folder = join(dirname(options.socketPath), "spool");
  const { database } = options;
  await requireOwn(options.socketPath, folder);
  if (!database.inMemory) await requireOwnFolder(database.path);
  const mark = await bindJournal(options, services, journal);
  const handle = createHandler(services);
  await releasePreviousBoot(services);
  await replaySpool(folder, handle, log, services.bootId);
  const bound = attachments.attached().flatMap((attachment) => attachedNoticeOf(attachment) ?? []);
  for (const notice of bound) await options.claimSource.attached(notice);
  const server = await serveSocket({ path: options.socketPath, handle, log, clock });
  if (!services.journal.isOurs) {
    await server.close();
    throw new BerthError("NOT_READY", "two agents of this host were started at the same moment; start one");
  }
  measureNode(services, folder); // what cannot start tries again, and would be measured each time
  const stop = new AbortController();
  const spool = watchSpool({ folder, handle, log, clock, signal: stop.signal, bootId: services.bootId });
  const sweep = new OrphanSweeper(services);
  sweep.start();
  detachReporter.start();
  const reporter = reporterOf(options, services);
  reporter?.start();
  return agentOf(services, reporter, async () => {
    await server.close();
    stop.abort();
    await Promise.all([spool, sweep.close(), detachReporter.close(), reporter?.close()]);
    mark.close();
  });
}

/** Sees that no other journal has served in this boot, and marks from now on how far this one is. */
async function bindJournal(
  { bootId, database, socketPath, runtimeRecords = async () => [] }: AgentOptions,
  { attachments, journal, log }: AgentServices,
  id: string,
): Promise<ReturnType<typeof markFileOf>> {
  const mark = markFileOf(socketPath);
  const reached = await bindToBoot(mark, {
    ...{ bootId, journal: id, position: journal.position(), place: database.path },
    unknownSandboxes: async () => (await runtimeRecords()).filter((record) => !attachments.knows(record)),
    rename: (other) => journal.rename(other),
  });
  journal.follow((at) => {
    try {
      reached(at);
    } catch (error) {
      // what is on the disk is answered all the same: the mark says less than it could until the next change
      log.error("the mark of the boot does not say how far the journal is", { path: mark.path, error });
    }
  });
  return mark;
}

function agentOf(
  services: AgentServices,
  reporter: BlockReporter | undefined,
  closeAll: () => Promise<void>,
): Agent {
  const { attachments, blockFollower } = services;
  let closing: Promise<void> | undefined;
  return {
    held: () => attachments.held(),
    attached: () => attachments.attached(),
    blocksChanged: () => {
      blockFollower.follow();
      reporter?.wake();
      return blockFollower.record();
    },
    factsChanged: () => blockFollower.wake(),
    hasBlocks: (pool) => blockFollower.hasBlocks(pool) === true,
    allPools: () => (blockFollower.listedPools ? blockFollower.pools() : undefined),
    blockUse: (pool, family) => services.blocks.unavailable(pool, family),
    unlessInUse: (claim, work) => ifUnused(claim, services, work),
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}

/** Who may write beside the socket can spool releases, or put a socket of his own in its place. */
async function requireOwn(socketPath: string, spool: string): Promise<void> {
  try {
    const folder = dirname(socketPath);
    await makeFolder(folder);
    for (const each of existsSync(spool) ? [folder, spool] : [folder]) {
      const why = await whyShared(each);
      if (why === undefined) continue;
      const words = `${socketPath} cannot be used: ${each} is not safe for releases that wait: ${why}; or choose a socket in another folder`;
      throw new BerthError("CONFIG_INVALID", words, { details: { path: each } });
    }
  } catch (error) {
    if (error instanceof BerthError) throw error;
    throw new BerthError("CONFIG_INVALID", `${socketPath} cannot be used: ${messageOf(error)}`);
  }
}

/** Who may write there can put another journal in the place of this one. */
async function requireOwnFolder(journal: string): Promise<void> {
  const why = await whyShared(dirname(journal));
  if (why === undefined) return;
  const words = `the journal ${journal} is not safe: ${why}; or choose another folder for it`;
  throw new BerthError("CONFIG_INVALID", words, { details: { path: journal } });
}

function reporterOf({ blockSource }: AgentOptions, services: AgentServices): BlockReporter | undefined {
  const { blocks, blockFollower: follower, clock, log } = services;
  const { statuses } = blockSource ?? {};
  if (blockSource === undefined || statuses === undefined) return undefined;
  return new BlockReporter({ source: blockSource, ...statuses, blocks, follower, clock, log });
}
