// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../allocator/errors.ts";
import type { Mirror } from "../../allocator/mirror.ts";
import type { Database } from "../../allocator/store/database.ts";
import { noticeOf } from "../../ipam-plugin/agent/attachment.ts";
import type { Attachments } from "../../ipam-plugin/agent/attachments.ts";
import { Claims } from "../../ipam-plugin/agent/claims.ts";
import type { Answer, Handler } from "../../ipam-plugin/agent/connection.ts";
import type { Call } from "../../ipam-plugin/agent/frame.ts";
import type { Host } from "../../ipam-plugin/agent/host.ts";
import { createParts } from "../../ipam-plugin/agent/parts.ts";
import { Sweep, sweepReboot } from "../../ipam-plugin/agent/sweep.ts";
import { createHandler } from "../../ipam-plugin/agent/verbs.ts";
import { diskOf } from "./journal-disk.ts";
import type { Process } from "./process.ts";
import { outfit, type Setting } from "./setting.ts";

/** What an agent finds on its host. */
export interface Premises {
  readonly name: string;
  readonly database: Database;
  readonly bootId: string;
  readonly host: Host;
  /** Releases that wait on the disk; what was done is taken out. */
  readonly spool: Set<Call>;
}

/** One life of a node's agent, put together as startAgent does, with neither socket nor files. */
export class Agent {
  readonly process: Process;
  readonly mirror: Mirror;
  /** What it read from its journal and has done since; undefined while it starts. */
  attachments: Attachments | undefined;
  readonly #premises: Premises;
  #handle: Handler | undefined;

  constructor(process: Process, premises: Premises, setting: Setting) {
    this.process = process;
    this.#premises = premises;
    const { context, inventory, mirror, synced } = outfit(process, setting, "agent");
    this.mirror = mirror;
    const claims = new Claims({
      context,
      inventory,
      node: premises.name,
      suspect: setting.suspect,
      whole: synced,
    });
    const mooring = setting.tampering.mooring?.(claims, context) ?? claims;
    const disk = diskOf(premises.database, process);
    const database = setting.tampering.disk?.(disk, process) ?? disk;
    const { clock, random, log } = context;
    const bootId = setting.tampering.bootId?.(premises.bootId) ?? premises.bootId;
    const options = { database, mooring, clock, random, log, bootId, host: premises.host };
    synced
      .then(() => this.#start(options))
      .catch((error: unknown) => {
        if (!(error instanceof BerthError))
          setting.witness.object(`${premises.name} did not start: ${messageOf(error)}`);
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

  async #start(options: Parameters<typeof createParts>[0]): Promise<void> {
    const parts = await createParts(options);
    this.attachments = parts.attachments;
    const handle = createHandler(parts);
    await sweepReboot(parts);
    await this.#replaySpool(handle);
    const lent = parts.attachments.attached().flatMap((attachment) => noticeOf(attachment) ?? []);
    for (const notice of lent) await options.mooring.attached(notice);
    this.#handle = handle;
    new Sweep(parts).start();
    parts.notices.start();
  }

  async #replaySpool(handle: Handler): Promise<void> {
    const { spool } = this.#premises;
    for (const call of [...spool].toSorted((a, b) => Number(a.startNs - b.startNs))) {
      const answer = await handle(call, new AbortController().signal);
      await answer.settle?.("delivered");
      if (answer.exitStatus === 0) spool.delete(call);
    }
  }
}
