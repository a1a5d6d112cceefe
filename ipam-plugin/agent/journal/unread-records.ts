// SPDX-License-Identifier: Apache-2.0
// Records of the runtime's that say nothing, of whatever plugin's containers: cut off, as by a full disk.

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { noneIfAbsent } from "../../../system/path-error.ts";
import type { Host } from "./host.ts";
import { bootTime, parsed } from "./runtime-records.ts";

export interface UnreadRecord {
  readonly path: string;
  /** By the file's name. */
  readonly containerID: string;
  readonly interface: string;
}

/** Throws what reading a folder or a file throws. */
export type UnreadRecords = () => Promise<readonly UnreadRecord[]>;

/** libcni names a file NETWORK-CONTAINER-INTERFACE. */
const NAME = /-([^-]+)-([^-]+)$/;

/** Those that were written in this boot. Loopback is nobody's to have an address on. A file that could be read is not read again before it changes. */
export function unreadRecordsIn(folders: readonly string[], host: Pick<Host, "read">): UnreadRecords {
  let readable = new Map<string, number>(); // path -> when it was written
  return async () => {
    const bootedAt = await bootTime(host);
    const [before, unread]: [typeof readable, UnreadRecord[]] = [readable, []];
    readable = new Map();
    for (const record of await filesIn(folders)) {
      const { path } = record;
      const written = (await stat(path).catch(noneIfAbsent(undefined)))?.mtimeMs ?? 0;
      if (record.interface === "lo" || written < bootedAt) continue;
      if (before.get(path) === written || (await isReadable(path))) readable.set(path, written);
      else unread.push(record);
    }
    return unread;
  };
}

async function filesIn(folders: readonly string[]): Promise<readonly UnreadRecord[]> {
  const all = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(folder).catch(noneIfAbsent<string[]>([]));
      return names.map((name) => ({ name, path: join(folder, name) }));
    }),
  );
  return all.flat().map(({ name, path }) => {
    const [, containerID = "", interfaceName = "lo"] = NAME.exec(name) ?? [];
    return { path, containerID, interface: interfaceName };
  });
}

/** Or gone. */
async function isReadable(path: string): Promise<boolean> {
  const text = await readFile(path, "utf8").catch(noneIfAbsent("{}"));
  return parsed(text) !== undefined;
}
