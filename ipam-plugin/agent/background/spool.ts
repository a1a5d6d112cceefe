// SPDX-License-Identifier: Apache-2.0
import { constants } from "node:fs";
import { open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { errnoOf } from "../../../system/path-error.ts";
import { CNI_CODES } from "../../cni/errors.ts";
import type { Answer, Handler } from "../rpc/connection.ts";
import { type Call, decodeCall, REQUEST_LIMIT } from "../rpc/frame.ts";

/** The CNI binary syncs a release under a name with a dot in front, then renames it: a `.del` is whole or damaged. */
const SPOOLED = /^[^.].*\.del$/;
/** The boot in which it was written, whose clock its stamp is of; earlier clients did not say. */
const BOOT = /-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.del$/;
/** What will never be a release. */
const BAD = ".bad";
const POLL_MS = 1_000;
/** A release that fails is tried again after 1, 2, 4 ... polls, and at least this often. */
const LONGEST_PAUSE_POLLS = 64;

/** Errors that another try cannot change. Everything else is the agent's trouble of the moment. */
const FINAL_CODES: ReadonlySet<number> = new Set([
  CNI_CODES.INCOMPATIBLE_VERSION,
  CNI_CODES.INVALID_ENVIRONMENT,
  CNI_CODES.DECODING_FAILURE,
  CNI_CODES.INVALID_CONFIG,
]);

/** Names of files in the folder. */
interface ReplayResult {
  readonly released: readonly string[];
  /** Failed and stay, for another time. */
  readonly kept: readonly string[];
  /** Will never be releases: moved aside, to `<name>.bad`. */
  readonly bad: readonly string[];
}

interface SpoolOptions {
  readonly folder: string;
  readonly handle: Handler;
  readonly log: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Of this boot; absent: every release is taken for one of it. */
  readonly bootId?: string;
}

/**
 * Runs the releases that waited for an agent, oldest first. To be done before the socket is served. Throws
 * BerthError STORE_UNAVAILABLE when the folder cannot be read; a folder that is not there holds nothing.
 */
export async function replaySpool(
  folder: string,
  handle: Handler,
  log: Logger,
  bootId?: string,
): Promise<ReplayResult> {
  const { signal } = new AbortController();
  const boot = bootId === undefined ? {} : { bootId };
  return replayFiles(await spooledIn(folder), { folder, handle, log, signal, ...boot });
}

/** Runs releases that arrive while the agent serves (a client that could not reach it), until `signal` aborts. */
export async function watchSpool(options: SpoolOptions): Promise<void> {
  const { folder, log, clock, signal } = options;
  const pauses = new Map<string, Pause>(); // name of a file -> when it is tried again
  for (let poll = 0; !signal.aborted; poll++) {
    try {
      const names = await spooledIn(folder);
      const due = names.filter((name) => (pauses.get(name)?.until ?? 0) <= poll);
      const { kept } = await replayFiles(due, options);
      forget(pauses, names);
      for (const name of kept) postpone(pauses, name, poll);
    } catch (error) {
      log.error("spool cannot be replayed", { error });
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** Counted in polls. */
interface Pause {
  readonly length: number;
  readonly until: number;
}

function postpone(pauses: Map<string, Pause>, name: string, poll: number): void {
  const length = Math.min((pauses.get(name)?.length ?? 0.5) * 2, LONGEST_PAUSE_POLLS);
  pauses.set(name, { length, until: poll + length });
}

function forget(pauses: Map<string, Pause>, names: readonly string[]): void {
  const there = new Set(names);
  for (const name of pauses.keys()) if (!there.has(name)) pauses.delete(name);
}

/** Names of the files that wait in the folder, and of those that were laid aside. Throws as `replaySpool`. */
export async function listSpool(folder: string): Promise<Record<"waiting" | "bad", readonly string[]>> {
  const names = await filesIn(folder);
  return {
    waiting: names.filter((name) => SPOOLED.test(name)),
    bad: names.filter((name) => name.endsWith(BAD)),
  };
}

async function spooledIn(folder: string): Promise<readonly string[]> {
  return (await filesIn(folder)).filter((name) => SPOOLED.test(name)).sort();
}

async function filesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw new BerthError("STORE_UNAVAILABLE", `the spool ${folder} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

type Replay = Omit<SpoolOptions, "clock">;
type Outcome = keyof ReplayResult | "vanished";

async function replayFiles(names: readonly string[], replay: Replay): Promise<ReplayResult> {
  const outcomes: Record<Outcome, string[]> = { released: [], kept: [], bad: [], vanished: [] };
  for (const name of names) {
    if (replay.signal.aborted) break;
    const outcome = await replayFile(name, replay).catch((error: unknown): Outcome => {
      replay.log.error("spooled release failed", { file: name, error });
      return "kept";
    });
    outcomes[outcome].push(name);
  }
  return outcomes;
}

async function replayFile(name: string, replay: Replay): Promise<Outcome> {
  const path = join(replay.folder, name);
  const bytes = await readSpooled(path);
  if (bytes === "vanished") return bytes;
  const call = bytes === "unreadable" ? "it is no file of a possible length" : releaseIn(bytes);
  if (typeof call === "string") return moveAside(name, call, replay);
  const answer = await replay.handle(inThisBoot(call, name, replay), replay.signal);
  await answer.settle?.("delivered");
  if (answer.exitStatus === 0) {
    await rm(path, { force: true });
    replay.log.info("spooled release done", { file: name, containerID: call.env.get("CNI_CONTAINERID") });
    return "released";
  }
  if (FINAL_CODES.has(errorCodeOf(answer))) return moveAside(name, answer.stdout, replay);
  replay.log.warn("spooled release failed", { file: name, error: answer.stdout });
  return "kept";
}

async function readSpooled(path: string): Promise<Buffer | "vanished" | "unreadable"> {
  try {
    // Nobody but root writes here, yet a link or a pipe must not lead the agent elsewhere or stop it.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const found = await file.stat();
      if (!found.isFile() || found.size > REQUEST_LIMIT) return "unreadable";
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT") return "vanished";
    if (code === "ELOOP" || code === "ENXIO") return "unreadable";
    throw error;
  }
}

/** A stamp of another boot's clock says nothing in this one: whatever was attached since came later, and what comes is new. */
function inThisBoot(call: Call, name: string, { bootId }: Pick<Replay, "bootId">): Call {
  const boot = BOOT.exec(name)?.[1];
  return boot === undefined || bootId === undefined || boot === bootId ? call : { ...call, startNs: 0n };
}

/** The call, or why it is none that may be replayed. An ADD must never be: its sandbox is long gone. */
function releaseIn(bytes: Buffer): Call | string {
  const decoded = decodeCall(bytes);
  if (decoded.kind === "incomplete") return "it is cut off";
  if (decoded.kind === "malformed") return decoded.reason;
  return decoded.frame.env.get("CNI_COMMAND") === "DEL" ? decoded.frame : "it is no DEL";
}

async function moveAside(name: string, reason: string, replay: Replay): Promise<Outcome> {
  await rename(join(replay.folder, name), join(replay.folder, `${name}${BAD}`));
  replay.log.warn("spooled file is no release, moved aside", { file: name, error: reason });
  return "bad";
}

function errorCodeOf(answer: Answer): number {
  try {
    const body: unknown = JSON.parse(answer.stdout);
    const code = typeof body === "object" && body !== null && "code" in body ? body.code : undefined;
    return typeof code === "number" ? code : Number.NaN;
  } catch {
    return Number.NaN;
  }
}
