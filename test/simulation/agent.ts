// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Database } from "../../allocator/store/sqlite/database.ts";
import type { Store } from "../../allocator/store/store.ts";
import { OrphanSweeper, releasePreviousBoot } from "../../ipam-plugin/agent/background/orphan-sweeper.ts";
import { BlockReporter } from "../../ipam-plugin/agent/blocks/block-reporter.ts";
import type { BlockSource } from "../../ipam-plugin/agent/blocks/block-source.ts";
import { EmbeddedClaims } from "../../ipam-plugin/agent/claims/embedded.ts";
import { createHandler } from "../../ipam-plugin/agent/commands/dispatch.ts";
import { attachedNoticeOf } from "../../ipam-plugin/agent/journal/attachment.ts";
import type { AttachmentCache } from "../../ipam-plugin/agent/journal/attachment-cache.ts";
import { bindToBoot, type MarkFile } from "../../ipam-plugin/agent/journal/boot-mark.ts";
import type { Host } from "../../ipam-plugin/agent/journal/host.ts";
import type { RuntimeRecords } from "../../ipam-plugin/agent/journal/runtime-records.ts";
import type { Answer, Handler } from "../../ipam-plugin/agent/rpc/connection.ts";
import type { Call } from "../../ipam-plugin/agent/rpc/frame.ts";
import {
  type AgentServices,
  createServices,
  type ServicesOptions,
} from "../../ipam-plugin/agent/services/services.ts";
import { diskOf } from "./journal-disk.ts";
import type { Process } from "./process.ts";
import { processDeps, type Setting } from "./setting.ts";

/** What an agent finds on its host. */
export interface AgentHost {
  readonly name: string;
  readonly database: Database;
  /** Which journal has served in this boot. */
  readonly mark: MarkFile;
  readonly bootId: string;
  readonly runtimeRecords: RuntimeRecords;
  readonly host: Host;
  /** Releases that wait on the disk; what was done is taken out. */
  readonly spool: Set<Call>;
}

/** One life of a node's agent, put together as startAgent does, with neither socket nor files. */
export class Agent {
  readonly process: Process;
  readonly cache: RecordCache;
  /** What it read from its journal and has done since; undefined while it starts. */
  attachments: AttachmentCache | undefined;
  readonly #agentHost: AgentHost;
  readonly #setting: Setting;
  #handle: Handler | undefined;

  constructor(process: Process, agentHost: AgentHost, setting: Setting) {
    this.process = process;
    this.#agentHost = agentHost;
    this.#setting = setting;
    const { context, inventory, cache, synced } = processDeps(process, setting, "agent");
    this.cache = cache;
    const claims = new EmbeddedClaims({
      context,
      inventory,
      node: agentHost.name,
      enqueueForGc: setting.enqueueForGc,
      whole: synced,
      hasBlocks: (pool) => setting.blocks && cache.pool(pool)?.spec.blockSize !== undefined,
    });
    const source = blocksOf(cache, agentHost.name, context.store);
    const blockSource = setting.injection.blockSource?.(source, cache) ?? source;
    const claimSource = setting.injection.claimSource?.(claims, context) ?? claims;
    const disk = diskOf(agentHost.database, process);
    const database = setting.injection.disk?.(disk, process) ?? disk;
    const { clock, random, log } = context;
    const bootId = setting.injection.bootId?.(agentHost.bootId) ?? agentHost.bootId;
    const options = {
      ...{ database, claimSource, clock, random, log, bootId, host: agentHost.host },
      ...(setting.blocks ? { blockSource } : {}),
    };
    const mark = setting.injection.mark?.(agentHost.mark) ?? agentHost.mark;
    synced
      .then(() => this.#start(options, mark))
      .catch((error: unknown) => {
        // It waits, and serves nothing; whoever puts the journal back starts it again.
        if (error instanceof BerthError && error.code === "JOURNAL_MISMATCH") return;
        if (!(error instanceof BerthError))
          setting.invariants.object(`${agentHost.name} did not start: ${messageOf(error)}`);
        // A start that fails is tried again by whoever watches over it.
        if (process.alive) process.post.crash();
      });
  }

  get serves(): boolean {
    return this.#handle !== undefined && this.process.alive;
  }

  /** Undefined when it died before it answered. */
  async answer(call: Call, abort: AbortController): Promise<Answer | undefined> {
    const handle = this.#handle;
    if (handle === undefined || !this.process.alive) return undefined;
    return await this.process.run(abort, (signal) => handle(call, signal));
  }

  /** Runs what came on the spool since it started. */
  async replay(): Promise<void> {
    if (this.#handle !== undefined) await this.#replaySpool(this.#handle);
  }

  async #start(options: Parameters<typeof createServices>[0], mark: MarkFile): Promise<void> {
    const services = await createServices(options);
    const journal = await services.journal.id(options.random);
    const { injection } = this.#setting;
    const records = injection.runtimeRecords ?? this.#agentHost.runtimeRecords;
    const unknownSandboxes = async () =>
      (await records()).filter((record) => !services.attachments.knows(record));
    const position = services.journal.position();
    const rename = (id: string) => services.journal.rename(id);
    const own = { bootId: options.bootId, journal, position };
    const reached = await bindToBoot(mark, { ...own, place: "of this life", unknownSandboxes, rename });
    // a process that died has committed, and says nothing any more
    services.journal.follow((at) => {
      if (this.process.alive) reached(at);
    });
    this.attachments = services.attachments;
    const handle = createHandler(services);
    await releasePreviousBoot(services);
    await this.#replaySpool(handle);
    const bound = services.attachments.attached().flatMap((attachment) => attachedNoticeOf(attachment) ?? []);
    for (const notice of bound) await options.claimSource.attached(notice);
    this.#handle = handle;
    new OrphanSweeper(services).start();
    services.detachReporter.start();
    this.#followBlocks(services, options);
  }

  /** As startAgent and a node's agent do. */
  #followBlocks(services: AgentServices, { blockSource, clock, log }: ServicesOptions): void {
    const { blocks, blockFollower: follower } = services;
    const { statuses } = blockSource ?? {};
    if (blockSource === undefined || statuses === undefined) return;
    const reporter = new BlockReporter({ source: blockSource, ...statuses, blocks, follower, clock, log });
    reporter.start();
    const changed = () => {
      if (!this.process.alive) return;
      follower.follow();
      reporter.wake();
      follower.record().catch((error: unknown) => log.warn("blocks were not journalled", { error }));
    };
    for (const kind of ["pool", "block"] as const) this.cache.onChange(kind, changed);
    changed();
  }

  async #replaySpool(handle: Handler): Promise<void> {
    const { spool } = this.#agentHost;
    for (const call of [...spool].toSorted((a, b) => Number(a.startNs - b.startNs))) {
      const answer = await handle(call, new AbortController().signal);
      await answer.settle?.("delivered");
      if (answer.exitStatus === 0) spool.delete(call);
    }
  }
}

/** The blocks of a node, as its watch has them. */
function blocksOf(cache: RecordCache, node: string, store: Store): BlockSource {
  return {
    statuses: { node, store },
    get isSynced() {
      return cache.knows("pool") && cache.knows("block");
    },
    *blocks() {
      for (const stored of cache.blocks()) if (stored.record.node === node) yield stored;
    },
    pool: (name) => cache.pool(name),
    pools: () => cache.pools(),
    factsOf: () => ({ podLabels: {}, podAnnotations: {}, namespaceLabels: {}, nodeLabels: {} }),
  };
}
