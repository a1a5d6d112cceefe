// SPDX-License-Identifier: Apache-2.0
import { closeSync, existsSync, fstatSync, ftruncateSync, lstatSync, openSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import { writeDurably } from "../../../system/durable-file.ts";
import { isFull } from "../../../system/path-error.ts";
import type { RuntimeRecord } from "./runtime-records.ts";

/** Which journal served this node, in which boot, and how far it had come. */
interface Mark {
  /** /proc/sys/kernel/random/boot_id */
  readonly bootId: string;
  /** The id that the journal has of itself. */
  readonly journal: string;
  /** How many writes it has had: one that has had fewer is an older copy. */
  readonly position: number;
}

/** Where the mark is kept: beside the socket, in memory that goes with the boot (`/run`). */
export interface MarkFile {
  readonly path: string;
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  /** Whoever reads it finds the old text or the new one, whole. */
  write(text: string): Promise<void>;
  /**
   * Puts a text of the same length in the place of what was written, in microseconds: without a sync, because what it
   * says is over when the memory that it is in is lost. What somebody has put there, or taken away, meanwhile, is made good.
   */
  update(text: string): void;
  /** Repeatable. */
  close(): void;
}

export function markFileOf(socketPath: string): MarkFile {
  const path = `${socketPath}.journal`;
  let open: OpenFile | undefined; // the file that was written last
  const close = () => {
    if (open !== undefined) closeSync(open.handle);
    open = undefined;
  };
  return {
    path,
    async read() {
      try {
        requireFile(path);
        return await readFile(path, "utf8");
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
        throw unusable(path, error);
      }
    },
    async write(text) {
      await writeDurably(path, text, 0o600).catch((error: unknown) => {
        throw unusable(path, error);
      });
      close();
    },
    update(text) {
      if (open !== undefined && !isInPlace(path, open)) close();
      if (open === undefined) {
        requireFile(path);
        open = opened(existsSync(path) ? openSync(path, "r+") : openSync(path, "wx", 0o600));
        ftruncateSync(open.handle, text.length);
      }
      writeSync(open.handle, text, 0);
    },
    close,
  };
}

/** A pipe would be waited for, without a word. */
function requireFile(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined || found.isFile()) return;
  throw unusable(path, new Error("it is a link, a folder or a pipe, and not a file; remove it"));
}

interface OpenFile {
  readonly handle: number;
  readonly dev: number;
  readonly ino: number;
}

function opened(handle: number): OpenFile {
  const { dev, ino } = fstatSync(handle);
  return { handle, dev, ino };
}

/** Whether what is open is what others find there. */
function isInPlace(path: string, open: OpenFile): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.ino === open.ino && found.dev === open.dev;
}

/** Positions up to 2^53 have so many digits: the text of one journal is as long as it was, whatever its position. */
const DIGITS = 16;

export function markText({ bootId, journal, position }: Mark): string {
  return `${JSON.stringify({ bootId, journal, position: String(position).padStart(DIGITS, "0") })}\n`;
}

/** The mark of a journal that a person has let serve. It becomes `id`: its other copies, which know less or more, stay behind. */
export function adoptionText({ bootId, journal, position }: Mark, id: string): string {
  return `${JSON.stringify({ bootId, journal, position: String(position).padStart(DIGITS, "0"), adopted: id })}\n`;
}

/** What a mark says of a journal. */
type Verdict =
  /** Nothing has served in this boot, or nothing is left that says so. */
  | { readonly kind: "none" }
  /** This journal has. */
  | { readonly kind: "ours" }
  /** A person has let it serve, under this id from now on. */
  | { readonly kind: "adopted"; readonly id: string }
  /** It has, and has had writes since that are not in this copy of it. */
  | { readonly kind: "older" }
  /** One that is not this one has, or the mark cannot be read: what it knew of the sandboxes that are up is not known here. */
  | { readonly kind: "another" };

export function judgeMark(text: string | undefined, { bootId, journal, position }: Mark): Verdict {
  if (text === undefined) return { kind: "none" };
  const mark = readMark(text);
  if (mark === undefined) return { kind: "another" };
  if (mark.bootId !== bootId) return { kind: "none" };
  if (mark.journal !== journal && mark.adopted !== journal) return { kind: "another" };
  if (position < mark.position) return { kind: "older" };
  const isNew = mark.adopted !== undefined && mark.adopted !== journal;
  return isNew ? { kind: "adopted", id: mark.adopted } : { kind: "ours" };
}

/** The journal that asks to serve. */
interface Candidate extends Mark {
  /** Its file. */
  readonly place: string;
  /** What the runtime says of sandboxes that are up and that the journal knows nothing of, not even a tombstone. */
  readonly unknownSandboxes: () => Promise<readonly RuntimeRecord[]>;
  /** Gives the journal another id, on the disk when this resolves. */
  readonly rename: (id: string) => Promise<void>;
}

/**
 * Binds the node to this journal until the next boot: to be done before anything is served. Gives what says in the mark how far
 * the journal has come, to be called after each write before anybody is told of it. Throws JOURNAL_MISMATCH when another one,
 * or more of this one, has served in this boot, by the mark or, where none is left, by the runtime's records: this one does
 * not know the sandboxes that are up, and would give their addresses away.
 */
export async function bindToBoot(
  file: MarkFile,
  { place, unknownSandboxes, rename, ...own }: Candidate,
): Promise<(position: number) => void> {
  const text = await file.read();
  const verdict = judgeMark(text, own);
  if (verdict.kind === "another" || verdict.kind === "older") throw mismatch(place, file, verdict.kind);
  if (verdict.kind === "none") {
    const unknown = await unknownSandboxes();
    if (unknown[0] !== undefined)
      throw mismatch(place, file, "another", strangerWords(unknown[0], unknown.length - 1));
  }
  if (verdict.kind === "adopted") await rename(verdict.id);
  const mark = verdict.kind === "adopted" ? { ...own, journal: verdict.id } : own;
  if (text !== markText(mark)) await file.write(markText(mark));
  return (position) => file.update(markText({ ...mark, position }));
}

/**
 * Why the mark forbids the journal to serve; undefined: it does not. The journal is read after the mark, which may be
 * written meanwhile and is never ahead of it: else one that is being served would look older than itself.
 */
export async function refusalByMark(
  file: MarkFile,
  {
    place,
    bootId,
    read,
  }: Pick<Candidate, "place" | "bootId"> & { readonly read: () => Omit<Mark, "bootId"> },
): Promise<string | undefined> {
  const text = await file.read();
  const { kind } = judgeMark(text, { bootId, ...read() });
  return kind === "another" || kind === "older" ? mismatch(place, file, kind).message : undefined;
}

function mismatch(place: string, { path }: MarkFile, kind: "another" | "older", example = ""): BerthError {
  const which = kind === "older" ? "an older copy of" : "not";
  const words =
    `the journal ${place} is ${which} the one that has served this node since it booted: it does not know the sandboxes ` +
    `that are up${example}, and would give their addresses away; start Berth on the journal that did, or reboot the node; if ` +
    `it is lost: "berthctl adopt", docs/recovery.md (mark: ${path})`;
  return new BerthError("JOURNAL_MISMATCH", words, { details: { path } });
}

function strangerWords(record: RuntimeRecord, others: number): string {
  const more = others === 0 ? "" : ` and ${others} more`;
  return ` (${describeRecord(record)}, by ${record.path}${more})`;
}

/** `container 1f0c, eth0, with 10.1.2.3 in network net` */
export function describeRecord(record: RuntimeRecord): string {
  const { containerID, interface: name, addresses, network } = record;
  return `container ${containerID}, ${name}, with ${addresses.join(" and ") || "no address"} in network ${network}`;
}

/** One of an earlier version says no position: nothing is known of it. */
function readMark(text: string): (Mark & { readonly adopted?: string }) | undefined {
  try {
    const { bootId, journal, position, adopted }: Partial<Record<string, unknown>> = JSON.parse(text);
    if (typeof bootId !== "string" || typeof journal !== "string") return undefined;
    const known = typeof position === "string" ? Number(position) : 0;
    if (!Number.isSafeInteger(known)) return undefined;
    return { bootId, journal, position: known, ...(typeof adopted === "string" ? { adopted } : {}) };
  } catch {
    return undefined;
  }
}

function unusable(path: string, cause: unknown): BerthError {
  const words = `${path}, which says what journal serves this node, cannot be used: ${messageOf(cause)}`;
  const code = isFull(cause) ? "STORE_FULL" : "CONFIG_INVALID";
  return new BerthError(code, words, { details: { path }, cause });
}
