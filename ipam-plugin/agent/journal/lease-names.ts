// SPDX-License-Identifier: Apache-2.0
import { type BigIntStats, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import { type Address, parseAddress } from "../../../allocator/ip/address.ts";
import { isAbsence } from "../../../system/path-error.ts";

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

  /**
   * Address -> nothing, for whose it is stands in the file. None where there is no such folder. Throws STORE_UNAVAILABLE for one
   * that cannot be read.
   */
  async in(folder: string): Promise<ReadonlyMap<Address, string>> {
    const before = this.#now();
    const seen = statOf(folder);
    if (seen === undefined) return NONE;
    const version = `${seen.dev}:${seen.ino}:${seen.mtimeNs}:${seen.ctimeNs}`;
    const known = this.#known.get(folder);
    if (known?.version === version) return known.addresses;
    const names = await namesIn(folder, this.#list);
    if (names === undefined) return NONE;
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

/** Undefined where there is no such folder. Throws STORE_UNAVAILABLE for one that cannot be read. */
export async function namesIn(
  folder: string,
  list: (folder: string) => Promise<readonly string[]> = readdir,
): Promise<readonly string[] | undefined> {
  return await list(folder).catch((error: unknown) => noneOrFault(folder, error));
}

/** Synchronous: the folder is on this host's disk, and a trip to a thread and back would be a tenth of an ADD and more. */
function statOf(folder: string): BigIntStats | undefined {
  try {
    return statSync(folder, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    return noneOrFault(folder, error);
  }
}

/** What cannot be read (too many files are open, the disk fails) may say that containers have addresses. It may be read the next time. */
function noneOrFault(folder: string, error: unknown): undefined {
  if (isAbsence(error)) return undefined;
  const words = `host-local's files in ${folder} cannot be read: ${messageOf(error)}`;
  throw new BerthError("STORE_UNAVAILABLE", words, { details: { path: folder }, cause: error });
}
