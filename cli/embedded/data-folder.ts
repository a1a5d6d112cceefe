// SPDX-License-Identifier: Apache-2.0
// What a process leaves in its data folder for others while it starts and serves.
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { BerthError } from "../../allocator/base/errors.ts";
import { lockFile } from "../../allocator/store/sqlite/file-lock.ts";
import { writeDurably } from "../../system/durable-file.ts";
import { isServed } from "../../system/private-socket.ts";
import type { CleanupStack } from "../../system/shutdown.ts";
import { databaseOf } from "../backend/embedded-backend.ts";
import {
  isStack,
  lockFileOf,
  readStackFile,
  reviewsSocketOf,
  type StackFile,
  stackFileOf,
  startingFileOf,
} from "../backend/stack-file.ts";
import { ensurePrivate } from "./require-private-folder.ts";
import { dataFolderOf, listenerOn } from "./socket-owner.ts";

/** `sun_path`, without the zero behind it. */
const LONGEST_SOCKET = 107;
/** SQLite's own, beside the database. */
const DATABASE_FILES = ["", "-wal", "-shm"];

/** The folder belongs to this process. `keep`: an ADD may be answered from here on; `started`: it serves. */
interface OwnFolder {
  readonly keep: () => void;
  readonly started: () => void;
}

/** Makes the folder where there is none, and refuses one that another process has. */
export async function ownFolder(dataDir: string, closers: CleanupStack): Promise<OwnFolder> {
  await ensurePrivate(dataDir);
  refuseSecond(dataDir);
  await refuseUnseen(dataDir);
  closers.push(lockFolder(dataDir));
  const started = sayStarting(dataDir);
  closers.push(started);
  const { keep, close } = removeIfNew(dataDir);
  closers.push(close);
  return { keep, started };
}

/** For whoever waits for the stack. A disk that takes no more is told of by the database, in better words. */
function sayStarting(dataDir: string): () => void {
  const path = startingFileOf(dataDir);
  const remove = () => {
    try {
      rmSync(path, { force: true });
    } catch {
      // on a disk that can only be read the process id in it says that it is old
    }
  };
  try {
    writeFileSync(path, JSON.stringify({ pid: process.pid }), { mode: 0o600 });
  } catch {
    remove();
  }
  return remove;
}

/** A stack that was never there before and cannot start leaves no database, which would look like a stack that ended. */
function removeIfNew(dataDir: string): { readonly keep: () => void; readonly close: () => void } {
  const path = databaseOf(dataDir);
  let isUnused = !existsSync(path);
  const keep = () => {
    isUnused = false;
  };
  const close = () => {
    if (isUnused) for (const suffix of DATABASE_FILES) rmSync(`${path}${suffix}`, { force: true });
  };
  return { keep, close };
}

/** Tells other processes of this host where the stack is, for as long as it is there. */
export async function announce(dataDir: string, file: StackFile, closers: CleanupStack): Promise<void> {
  const path = stackFileOf(dataDir);
  await writeDurably(path, `${JSON.stringify(file)}\n`, 0o600);
  closers.push(() => {
    if (isStillOf(file, dataDir)) rmSync(path, { force: true });
  });
}

/** One that has taken the folder over, and did not see this one, has written its own. */
function isStillOf({ pid, socket }: StackFile, dataDir: string): boolean {
  try {
    const now = readStackFile(dataDir);
    return now?.pid === pid && now.socket === socket;
  } catch {
    return true; // it cannot be read, and would be in the way of whoever comes next
  }
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

/** Nor does a process id say anything of a container's stack. Its socket for reviews is in the folder, and answers whoever can open that. */
async function refuseUnseen(dataDir: string): Promise<void> {
  const path = reviewsSocketOf(dataDir);
  if (!(await isServed(path).catch(() => false))) return;
  const words = `another berth stack, whose process is not seen from here, listens on ${path}; stop it first (it may be in a container), or choose another --data folder`;
  throw new BerthError("CONFIG_INVALID", words, { details: { path: dataDir } });
}

/** Those that start in one moment see nothing of each other yet: one of them has the lock. A disk that takes no more is told of by the database. */
function lockFolder(dataDir: string): () => void {
  try {
    const unlock = lockFile(lockFileOf(dataDir));
    if (unlock !== undefined) return unlock;
  } catch {
    return () => {};
  }
  const words = `another berth stack starts or ends on ${dataDir} at this moment; stop it first, or choose another --data folder`;
  throw new BerthError("CONFIG_INVALID", words, { details: { path: dataDir } });
}

/** A longer one cannot be listened on, and the system does not say why. */
export function requireShort(path: string): void {
  const length = Buffer.byteLength(path);
  if (length <= LONGEST_SOCKET) return;
  const words = `${path} has ${length} bytes, and the path of a socket ${LONGEST_SOCKET} at most; choose a shorter --data folder, or --socket`;
  throw new BerthError("CONFIG_INVALID", words, { details: { path } });
}

/** The stack of another data folder may have the socket: whoever starts this one, whose process may be `own`, is told which. */
export function refuseTaken(path: string, own?: number): void {
  const pid = listenerOn(path);
  if (pid === undefined || pid === own || !isStack(pid)) return;
  const folder = dataFolderOf(pid);
  const which = folder === undefined ? `pid ${pid}` : `of ${folder}, pid ${pid}`;
  const words = `another berth stack (${which}) listens on ${path}; stop it, or choose another --socket`;
  throw new BerthError("CONFIG_INVALID", words, { details: { path } });
}
