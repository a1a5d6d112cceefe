// SPDX-License-Identifier: Apache-2.0
import { dirname, join } from "node:path";
import type { Address } from "../../allocator/address.ts";
import { type Attachment, noticeOf } from "./attachment.ts";
import { measureNode } from "./measure.ts";
import { createParts, type PartsOptions } from "./parts.ts";
import { serveSocket } from "./socket.ts";
import { replaySpool, watchSpool } from "./spool.ts";
import { Sweep, sweepReboot, unlessInUse } from "./sweep.ts";
import { createHandler } from "./verbs.ts";

export interface AgentOptions extends PartsOptions {
  /** Of the unix socket; the spool is the folder `spool` beside it. */
  readonly socketPath: string;
}

export interface Agent {
  /** Addresses in use on this node, of every network. */
  held(): readonly Address[];
  attached(): readonly Attachment[];
  /** Runs `work` in the claim's turn, if no sandbox of this node has the claim: no ADD of it is under way then. */
  unlessInUse(claim: string, work: () => Promise<void>): Promise<void>;
  /** Takes no more calls, ends those under way, stops. Repeatable. */
  close(): Promise<void>;
}

/**
 * Starts the node's agent: journal, reboot, spool, and only then the socket, so that no ADD is answered before what
 * is taken is known. Throws BerthError of the database, the spool or the socket.
 */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  const parts = await createParts(options);
  const { log, clock, attachments, notices } = parts;
  const handle = createHandler(parts);
  const folder = join(dirname(options.socketPath), "spool");
  measureNode(parts, folder);
  await sweepReboot(parts);
  await replaySpool(folder, handle, log);
  const lent = attachments.attached().flatMap((attachment) => noticeOf(attachment) ?? []);
  for (const notice of lent) await options.mooring.attached(notice);
  const server = await serveSocket({ path: options.socketPath, handle, log, clock });
  const stop = new AbortController();
  const spool = watchSpool({ folder, handle, log, clock, signal: stop.signal });
  const sweep = new Sweep(parts);
  sweep.start();
  notices.start();
  const closeAll = async () => {
    await server.close();
    stop.abort();
    await Promise.all([spool, sweep.close(), notices.close()]);
  };
  let closing: Promise<void> | undefined;
  return {
    held: () => attachments.held(),
    attached: () => attachments.attached(),
    unlessInUse: (claim, work) => unlessInUse(claim, parts, work),
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}
