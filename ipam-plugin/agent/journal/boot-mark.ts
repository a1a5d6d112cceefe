// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import { writeDurably } from "../../../system/durable-file.ts";
import type { RuntimeRecord } from "./runtime-records.ts";

/** Which journal served this node, in which boot. */
interface Mark {
  /** /proc/sys/kernel/random/boot_id */
  readonly bootId: string;
  /** The id that the journal has of itself. */
  readonly journal: string;
}

/** Where the mark is kept: beside the socket, in memory that goes with the boot (`/run`). */
export interface MarkFile {
  readonly path: string;
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  /** Whoever reads it finds the old text or the new one, whole. */
  write(text: string): Promise<void>;
}

export function markFileOf(socketPath: string): MarkFile {
  const path = `${socketPath}.journal`;
  return {
    path,
    async read() {
      try {
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
    },
  };
}

export function markText(mark: Mark): string {
  return `${JSON.stringify(mark)}\n`;
}

/**
 * `none`: nothing has served in this boot, or nothing is left that says so. `ours`: this journal has. `another`: one
 * that is not this one has, or the mark cannot be read: what it knew of the sandboxes that are up is not known here.
 */
export function judgeMark(text: string | undefined, { bootId, journal }: Mark): "none" | "ours" | "another" {
  if (text === undefined) return "none";
  const mark = readMark(text);
  if (mark === undefined) return "another";
  if (mark.bootId !== bootId) return "none";
  return mark.journal === journal ? "ours" : "another";
}

/** The journal that asks to serve. */
export interface Candidate extends Mark {
  /** Its file. */
  readonly place: string;
  /** What the runtime says of sandboxes that are up and that the journal knows nothing of, not even a tombstone. */
  readonly unknownSandboxes: () => Promise<readonly RuntimeRecord[]>;
}

/**
 * Binds the node to this journal until the next boot: to be done before anything is served. Throws JOURNAL_MISMATCH when
 * another one has served in this boot, by the mark or, where none is left, by the runtime's records: this one does not
 * know the sandboxes that are up, and would give their addresses away.
 */
export async function bindToBoot(
  file: MarkFile,
  { place, unknownSandboxes, ...own }: Candidate,
): Promise<void> {
  const verdict = judgeMark(await file.read(), own);
  if (verdict === "ours") return;
  if (verdict === "another") throw mismatch(place, file, "");
  const unknown = await unknownSandboxes();
  if (unknown[0] !== undefined) throw mismatch(place, file, strangerWords(unknown[0], unknown.length - 1));
  await file.write(markText(own));
}

/** Why the mark forbids the journal to serve; undefined: it does not. */
export async function refusalByMark(
  file: MarkFile,
  { place, ...own }: Omit<Candidate, "unknownSandboxes">,
): Promise<string | undefined> {
  return judgeMark(await file.read(), own) === "another" ? mismatch(place, file, "").message : undefined;
}

function mismatch(place: string, { path }: MarkFile, example: string): BerthError {
  const words =
    `the journal ${place} is not the one that has served this node since it booted: it does not know the sandboxes ` +
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

function readMark(text: string): Mark | undefined {
  try {
    const { bootId, journal }: Partial<Record<string, unknown>> = JSON.parse(text);
    return typeof bootId === "string" && typeof journal === "string" ? { bootId, journal } : undefined;
  } catch {
    return undefined;
  }
}

function unusable(path: string, cause: unknown): BerthError {
  const words = `${path}, which says what journal serves this node, cannot be used: ${messageOf(cause)}`;
  return new BerthError("CONFIG_INVALID", words, { details: { path }, cause });
}
