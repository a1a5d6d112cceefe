// SPDX-License-Identifier: Apache-2.0
import { type BigIntStats, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { type Address, parseAddress } from "../../../allocator/ip/address.ts";

/**
 * A folder's times count in ticks of the kernel, at most 10 ms: what changes it in the tick of its last change leaves no
 * trace. One whose last change is so long ago has another time after the next.
 */
const SETTLED_MS = 1_000;
/** Of one network; what more names take to keep costs more memory than it saves time. */
const MOST_NAMES = 4_096;
const MOST_FOLDERS = 64;

interface Listing {
  readonly version: string;
  readonly addresses: ReadonlyMap<Address, string>;
}

const NONE: ReadonlyMap<Address, string> = new Map();

/** The addresses that files are named by, in folders that seldom change: a folder is read again when it has changed. */
export class LeaseNames {
  readonly #known = new Map<string, Listing>(); // folder -> what was in it
  readonly #now: () => number;
  readonly #list: (folder: string) => Promise<readonly string[]>;

  /** `now` is the clock that the files' times are of. */
  constructor(now: () => number, list: (folder: string) => Promise<readonly string[]> = readdir) {
    this.#now = now;
    this.#list = list;
  }

  /** Address -> nothing, for whose it is stands in the file. None where there is no such folder, or it cannot be read. */
  async in(folder: string): Promise<ReadonlyMap<Address, string>> {
    const before = this.#now();
    const seen = statOf(folder);
    if (seen === undefined) return NONE;
    const version = `${seen.dev}:${seen.ino}:${seen.mtimeNs}:${seen.ctimeNs}`;
    const known = this.#known.get(folder);
    if (known?.version === version) return known.addresses;
    const names = await this.#list(folder).catch(() => []);
    const found = names.map(parseAddress).filter((address) => address !== undefined);
    const addresses = new Map(found.map((address) => [address, ""]));
    this.#known.delete(folder);
    const isSettled = before - Number(seen.mtimeMs) >= SETTLED_MS;
    if (isSettled && names.length <= MOST_NAMES) this.#keep(folder, { version, addresses });
    return addresses;
  }

  #keep(folder: string, listing: Listing): void {
    if (this.#known.size >= MOST_FOLDERS) this.#known.clear();
    this.#known.set(folder, listing);
  }
}

/** Synchronous: the folder is on this host's disk, and a trip to a thread and back would be a tenth of an ADD and more. */
function statOf(folder: string): BigIntStats | undefined {
  try {
    return statSync(folder, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
