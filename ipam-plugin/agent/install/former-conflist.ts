// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../../allocator/base/ports.ts";
import { isObject } from "../../../allocator/base/validation.ts";
import { writeDurably } from "../../../system/durable-file.ts";

/** What the agent has put into the host's folder of configurations, by its name there. */
export interface WrittenConflist {
  readonly name: string;
  readonly text: string;
}

/** As the record beside the journal has it. */
interface Remembered {
  readonly name: string;
  readonly digest: string;
}

const PRIVATE = 0o600;

/**
 * Removes the list that this node's agent wrote before, under another name: a runtime takes the first by name, and would go on with that
 * one. Only while it is as it was written: what somebody changed since is theirs, and is told. To be called when the new one is there.
 * Throws the errors of node:fs.
 */
export async function removeFormer(
  now: WrittenConflist,
  { folder, record, log }: { readonly folder: string; readonly record: string; readonly log: Logger },
): Promise<void> {
  const former = await recordIn(record);
  const next: Remembered = { name: now.name, digest: digestOf(now.text) };
  if (former?.name === next.name && former.digest === next.digest) return;
  if (former !== undefined && former.name !== next.name) await remove(former, folder, log);
  await writeDurably(record, JSON.stringify(next), PRIVATE);
}

async function remove({ name, digest }: Remembered, folder: string, log: Logger): Promise<void> {
  const path = join(folder, name);
  const found = await readFile(path).catch(unlessAbsent);
  if (found === undefined) return;
  if (digestOf(found) === digest) {
    await rm(path);
    log.info("conflist of the former name removed", { path });
    return;
  }
  const remedy = "remove it, unless the runtime is to take it: it takes the first by name";
  log.warn("the conflist of the former name was changed since it was written, and stays", { path, remedy });
}

/** Undefined: none was written, or by an agent that kept no record. */
async function recordIn(path: string): Promise<Remembered | undefined> {
  const text = await readFile(path, "utf8").catch(unlessAbsent);
  if (text === undefined) return undefined;
  try {
    const said: unknown = JSON.parse(text);
    const { name, digest } = isObject(said) ? said : {};
    return typeof name === "string" && typeof digest === "string" ? { name, digest } : undefined;
  } catch {
    return undefined; // it is written anew
  }
}

function unlessAbsent(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}

function digestOf(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
