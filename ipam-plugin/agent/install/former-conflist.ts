// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../../allocator/base/ports.ts";
import { isObject } from "../../../allocator/base/validation.ts";
import { writeDurably } from "../../../system/durable-file.ts";

/** What the agent puts into the host's folder of configurations, by its name there. */
interface WrittenConflist {
  readonly name: string;
  readonly text: string;
}

/** One that the agent has written, or was about to write; of a name there may be several. */
interface Remembered {
  readonly name: string;
  readonly digest: string;
}

const PRIVATE = 0o600;

/**
 * Remembers in the record beside the journal what is about to be written: a file that is there when the process dies must not count as
 * somebody's. What was written before stays in it, since the write may not come to be. Throws the errors of node:fs.
 */
export async function remember(next: WrittenConflist, record: string): Promise<void> {
  const known = await recordIn(record);
  const added = rememberedOf(next);
  if (!known.some((one) => isSame(one, added))) await write(record, [...known, added]);
}

/**
 * Removes the lists that this node's agent wrote before, under other names: a runtime takes the first by name, and would go on with that
 * one. Only while one is as it was written: what somebody changed since is theirs, and is told. To be called when the new one is there.
 * Throws the errors of node:fs.
 */
export async function removeFormer(
  now: WrittenConflist,
  { folder, record, log }: { readonly folder: string; readonly record: string; readonly log: Logger },
): Promise<void> {
  const known = await recordIn(record);
  const current = rememberedOf(now);
  const former = Map.groupBy(known, ({ name }) => name);
  former.delete(now.name);
  for (const [name, written] of former) {
    const digests = written.map(({ digest }) => digest);
    await remove(join(folder, name), digests, log);
  }
  if (known.length !== 1 || !known.every((one) => isSame(one, current))) await write(record, [current]);
}

async function remove(path: string, digests: readonly string[], log: Logger): Promise<void> {
  const found = await readFile(path).catch(unlessAbsent);
  if (found === undefined) return;
  if (digests.includes(digestOf(found))) {
    await rm(path);
    log.info("conflist of the former name removed", { path });
    return;
  }
  const remedy = "remove it, unless the runtime is to take it: it takes the first by name";
  log.warn("the conflist of the former name was changed since it was written, and stays", { path, remedy });
}

async function write(record: string, written: readonly Remembered[]): Promise<void> {
  await writeDurably(record, JSON.stringify({ written }), PRIVATE);
}

/** None: none was written, or by an agent that kept no record. */
async function recordIn(path: string): Promise<readonly Remembered[]> {
  const text = await readFile(path, "utf8").catch(unlessAbsent);
  if (text === undefined) return [];
  try {
    const said: unknown = JSON.parse(text);
    const written: unknown = isObject(said) ? said["written"] : undefined;
    return Array.isArray(written) ? written.flatMap(readEntry) : [];
  } catch {
    return []; // it is written anew
  }
}

function readEntry(entry: unknown): Remembered[] {
  const { name, digest } = isObject(entry) ? entry : {};
  return typeof name === "string" && typeof digest === "string" ? [{ name, digest }] : [];
}

function rememberedOf({ name, text }: WrittenConflist): Remembered {
  return { name, digest: digestOf(text) };
}

function isSame(one: Remembered, other: Remembered): boolean {
  return one.name === other.name && one.digest === other.digest;
}

function unlessAbsent(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}

function digestOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
