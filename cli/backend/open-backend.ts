// SPDX-License-Identifier: Apache-2.0
import { statSync } from "node:fs";
import { join } from "node:path";
import { shortDuration } from "../../allocator/base/go-duration.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { markFileOf, refusalByMark } from "../../ipam-plugin/agent/journal/boot-mark.ts";
import { readBootId } from "../../ipam-plugin/agent/journal/host.ts";
import type { CommandContext } from "../terminal/command.ts";
import { WAIT_MS } from "../terminal/flags.ts";
import { printable } from "../terminal/output.ts";
import type { Backend } from "./backend.ts";
import { allOf, databaseOf, type EmbeddedBackend, withEmbeddedBackend } from "./embedded-backend.ts";
import { hostOccupants } from "./host-occupants.ts";
import { inEtcd, isStack, isStarting, readStackFile } from "./stack-file.ts";

/** Opens the cluster or the data folder of the context for `work` and closes it again. Throws what either cannot do, in one line. */
export async function withBackend<T>(
  context: CommandContext,
  mode: "read" | "write",
  work: (registry: Backend) => Promise<T>,
): Promise<T> {
  if (context.etcd !== undefined) {
    const { withEtcd } = await import("./etcd-backend.ts");
    return await withEtcd(context.io, context.etcd, work);
  }
  if (context.cluster === undefined) {
    await untilStarted(context);
    const { etcd } = readStackFile(context.dataDir) ?? {};
    if (etcd !== undefined) throw inEtcd(context.dataDir, etcd);
    return await withEmbeddedBackend(context, mode, (backend) => work(registryOf(backend, context.dataDir)));
  }
  // What authenticates takes longer to load than the rest of berthctl takes to run.
  const { withCluster } = await import("./cluster-backend.ts");
  return await withCluster(context.io, context.cluster, work);
}

const LOOK_EVERY_MS = 100;
/** Of a folder with nothing in it: whoever typed `berthctl up &` a moment ago has a process that has not got so far. */
const EMPTY_MS = 5_000;

/** Waits while a stack starts on the folder: what is in its file till then is not all yet. */
async function untilStarted({
  dataDir,
  io,
  waitMs,
}: Pick<CommandContext, "dataDir" | "io" | "waitMs">): Promise<void> {
  const began = io.clock.monotonic();
  for (let told = false; ; told = true) {
    const empty = isEmpty(dataDir);
    const timeoutMs = isStarting(dataDir) ? (waitMs ?? WAIT_MS) : empty ? (waitMs ?? EMPTY_MS) : 0;
    if (io.clock.monotonic() - began >= timeoutMs) return;
    if (!told) {
      const words = `${empty ? "nothing is there" : "a stack starts"} on ${dataDir}; waiting for it up to ${shortDuration(timeoutMs)} (--wait)`;
      io.stderr.write(`${printable(words)}\n`);
    }
    await io.clock.sleep(LOOK_EVERY_MS);
  }
}

/** A folder that is closed to this user may have anything in it: opening it says so. */
function isEmpty(dataDir: string): boolean {
  try {
    return statSync(databaseOf(dataDir), { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}

function registryOf({ store, admitted, attachments, journal }: EmbeddedBackend, dataDir: string): Backend {
  return {
    place: "data",
    store,
    world: admitted,
    namespace: "default",
    /** Not everybody asks, and the file may be damaged. */
    get node() {
      return readStackFile(dataDir)?.node ?? "";
    },
    claims: () => allOf(store, "claim"),
    uses: async () => attachments(),
    hostOccupants: () => hostOccupants(),
    refusedJournal: () => refusedJournal(dataDir, journal),
    giveBack: release,
  };
}

/** By the mark beside the socket. A stack that runs has been let serve; one that was killed has left word where its socket is. */
async function refusedJournal(
  dataDir: string,
  read: EmbeddedBackend["journal"],
): Promise<string | undefined> {
  const stack = readStackFile(dataDir);
  if (isStarting(dataDir) || (stack !== undefined && isStack(stack.pid))) return undefined;
  const socket = stack?.socket || join(dataDir, "agent.sock");
  const mark = markFileOf(socket);
  if ((await mark.read()) === undefined) return undefined;
  const bootId = await readBootId();
  return await refusalByMark(mark, { place: databaseOf(dataDir), bootId, read });
}
