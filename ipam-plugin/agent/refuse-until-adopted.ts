// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import { fromThrown } from "../cni/errors.ts";
import { readRequest } from "./commands/dispatch.ts";
import type { MarkFile } from "./journal/boot-mark.ts";
import type { RuntimeRecords } from "./journal/runtime-records.ts";
import type { Handler } from "./rpc/connection.ts";
import { errorVersion, fail, notAccepted } from "./rpc/reply.ts";
import { serveSocket } from "./rpc/server.ts";

const LOOK_EVERY_MS = 1_000;

interface RefusingOptions {
  readonly socketPath: string;
  readonly mark: MarkFile;
  readonly runtimeRecords: RuntimeRecords;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts when the process is told to end. */
  readonly signal: AbortSignal;
}

/** Says why, to every call that is about this node's sandboxes. A DEL goes to the spool, for the agent that knows it. */
function refusing(why: BerthError): Handler {
  return async (call, signal) => {
    const request = readRequest(call, signal);
    if (!("config" in request)) return request;
    const version = errorVersion(request.config.fields);
    return (request.invocation.command === "DEL" ? notAccepted : fail)(version, fromThrown(why));
  };
}

/** Why nothing is served yet, and what is waited for. */
interface Hindrance {
  readonly why: BerthError;
  readonly isOver: () => Promise<boolean>;
}

/**
 * Starts what binds itself to the boot. As long as another journal has served in it, every call is refused in words. It is
 * tried again each time the mark has changed, for a person has confirmed this journal, and each time the runtime has
 * other records: the last sandbox that the journal does not know may have ended. So are calls while the disk of the journal, or of the mark,
 * is full: nothing can be answered that would be durable. Rejects when the signal aborts before that.
 */
export async function startWhenBound<T>(start: () => Promise<T>, options: RefusingOptions): Promise<T> {
  let said: string | undefined;
  for (;;) {
    const seen = await evidence(options);
    try {
      return await start();
    } catch (error) {
      const hindrance = hindranceOf(error, async () => (await evidence(options)) !== seen);
      if (hindrance === undefined) throw error;
      const { why } = hindrance;
      if (why.message !== said) sayWhy(why, options);
      said = why.message;
      await refuseUntilOver(hindrance, options);
      if (options.signal.aborted) throw error;
    }
  }
}

function sayWhy({ code, message: error }: BerthError, { mark: { path }, log }: RefusingOptions): void {
  if (code === "STORE_FULL")
    log.error("the disk of the journal or of its mark is full; nothing is served", { error });
  else log.error("another journal has served this node since it booted; nothing is served", { path, error });
}

/** What can end while this process waits; undefined: nothing of it. */
function hindranceOf(error: unknown, isChanged: () => Promise<boolean>): Hindrance | undefined {
  if (!(error instanceof BerthError)) return undefined;
  if (error.code === "JOURNAL_MISMATCH") return { why: error, isOver: isChanged };
  if (error.code !== "STORE_FULL") return undefined;
  let looks = 0;
  return { why: error, isOver: async () => looks++ > 0 }; // whether there is room says the next attempt
}

/** What a start is decided by. */
async function evidence({ mark, runtimeRecords }: RefusingOptions): Promise<string> {
  return JSON.stringify([await mark.read(), (await runtimeRecords()).map(({ path }) => path)]);
}

async function refuseUntilOver({ why, isOver }: Hindrance, options: RefusingOptions): Promise<void> {
  const { socketPath, clock, log, signal } = options;
  const server = await serveSocket({ path: socketPath, handle: refusing(why), log, clock });
  try {
    while (!signal.aborted && !(await isOver())) await clock.sleep(LOOK_EVERY_MS, signal);
  } finally {
    await server.close();
  }
}
