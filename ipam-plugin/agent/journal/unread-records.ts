// SPDX-License-Identifier: Apache-2.0
// Records of the runtime's that say nothing, of whatever plugin's containers: cut off, as by a full disk.

import { readFile, stat } from "node:fs/promises";
import { noneIfAbsent } from "../../../system/path-error.ts";
import type { IsKnown } from "../claims/claim-source.ts";
import type { Host } from "./host.ts";
import { bootTime, filesIn, parsed } from "./runtime-records.ts";

export interface UnreadRecord {
  readonly path: string;
  /** By the file's name. */
  readonly containerID: string;
  readonly interface: string;
}

/** Of containers that are not known otherwise. Throws what reading a folder or a file throws. */
export type UnreadRecords = (isKnown: IsKnown) => Promise<readonly UnreadRecord[]>;

/** libcni names a file NETWORK-CONTAINER-INTERFACE. */
const NAME = /-([^-/]+)-([^-/]+)$/;

/**
 * Those that were written in this boot. Loopback is nobody's to have an address on. A file that could be read is not read again before it
 * changes. Each DEL asks, on a node that has a file for each of its containers: nothing is looked at but the names of those that are known.
 */
export function unreadRecordsIn(folders: readonly string[], host: Pick<Host, "read">): UnreadRecords {
  let readable = new Map<string, number>(); // path -> when it was written
  return async (isKnown) => {
    const others = (await filesIn(folders))
      .map(named)
      .filter((one) => one.interface !== "lo" && !isKnown(one));
    if (others.length === 0) return [];
    const bootedAt = await bootTime(host);
    const before = readable;
    const after = new Map<string, number>(); // not seen by others before it is whole: many look at once
    const unread: UnreadRecord[] = [];
    for (const record of others) {
      const written = (await stat(record.path).catch(noneIfAbsent(undefined)))?.mtimeMs ?? 0;
      if (written < bootedAt) continue;
      const { path } = record;
      if (before.get(path) === written || (await isReadable(path))) after.set(path, written);
      else unread.push(record);
    }
    readable = after;
    return unread.filter((record) => !isKnown(record));
  };
}

function named(path: string): UnreadRecord {
  const [, containerID = "", interfaceName = "lo"] = NAME.exec(path) ?? [];
  return { path, containerID, interface: interfaceName };
}

/** Or gone. */
async function isReadable(path: string): Promise<boolean> {
  const text = await readFile(path, "utf8").catch(noneIfAbsent("{}"));
  return parsed(text) !== undefined;
}
