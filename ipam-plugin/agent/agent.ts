// SPDX-License-Identifier: Apache-2.0
import { dirname, join } from "node:path";
import type { Address } from "../../allocator/address.ts";
import { noticeOf } from "./attachment.ts";
import { createParts, type PartsOptions } from "./parts.ts";
import { serveSocket } from "./socket.ts";
import { replaySpool, watchSpool } from "./spool.ts";
import { Sweep, sweepReboot } from "./sweep.ts";
import { createHandler } from "./verbs.ts";

export interface AgentOptions extends PartsOptions {
  /** Of the unix socket; the spool is the folder `spool` beside it. */
  readonly socketPath: string;
}

export interface Agent {
  /** Addresses in use on this node, of every network. */
  held(): readonly Address[];
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
  await sweepReboot(parts);
  await replaySpool(folder, handle, log);
  const lent = attachments.attached().flatMap((attachment) => noticeOf(attachment) ?? []);
  for (const notice of lent) await options.mooring.attached(notice);
  // Not waited for: it looks at every claim, and a node whose agent does not serve starts no pod.
  const resumed = options.mooring.resumed(new Set(lent.map(({ claim }) => claim))).catch((error: unknown) => {
    log.error("claims without a sandbox were not let go; the next start tries again", { error });
  });
  const server = await serveSocket({ path: options.socketPath, handle, log, clock });
  const stop = new AbortController();
  const spool = watchSpool({ folder, handle, log, clock, signal: stop.signal });
  const sweep = new Sweep(parts);
  sweep.start();
  notices.start();
  const closeAll = async () => {
    await server.close();
    stop.abort();
    await Promise.all([spool, sweep.close(), notices.close(), resumed]);
  };
  let closing: Promise<void> | undefined;
  return {
    held: () => attachments.held(),
    close: () => {
      closing ??= closeAll();
      return closing;
    },
  };
}
