// SPDX-License-Identifier: Apache-2.0
// Records of the runtime's that say nothing, of whatever plugin's containers: cut off, as by a full disk.

import { readFile, stat } from "node:fs/promises";
import { noneIfAbsent } from "../../../system/path-error.ts";
import type { Host } from "./host.ts";
import { bootTime, filesIn, parsed } from "./runtime-records.ts";

export interface UnreadRecord {
  readonly path: string;
  /** By the file's name. */
  readonly containerID: string;
  readonly interface: string;
}

/** Throws what reading a folder or a file throws. */
export type UnreadRecords = () => Promise<readonly UnreadRecord[]>;

/** libcni names a file NETWORK-CONTAINER-INTERFACE. */
const NAME = /-([^-/]+)-([^-/]+)$/;

/** Those that were written in this boot. Loopback is nobody's to have an address on. A file that could be read is not read again before it changes. */
export function unreadRecordsIn(folders: readonly string[], host: Pick<Host, "read">): UnreadRecords {
  let readable = new Map<string, number>(); // path -> when it was written
  return async () => {
    const bootedAt = await bootTime(host);
    const [before, unread]: [typeof readable, UnreadRecord[]] = [readable, []];
    readable = new Map();
    for (const path of await filesIn(folders)) {
      const [, containerID = "", interfaceName = "lo"] = NAME.exec(path) ?? [];
      const written = (await stat(path).catch(noneIfAbsent(undefined)))?.mtimeMs ?? 0;
      if (interfaceName === "lo" || written < bootedAt) continue;
      if (before.get(path) === written || (await isReadable(path))) readable.set(path, written);
      else unread.push({ path, containerID, interface: interfaceName });
    }
    return unread;
  };
}

/** Or gone. */
async function isReadable(path: string): Promise<boolean> {
  const text = await readFile(path, "utf8").catch(noneIfAbsent("{}"));
  return parsed(text) !== undefined;
}
