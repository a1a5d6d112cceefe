// SPDX-License-Identifier: Apache-2.0
// What cni-ipam-etcd keeps of a network in etcd: its ranges, and for each address that it gave the container's id.
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import type { EtcdClient } from "../../allocator/store/etcd/client.ts";
import { pagesOf } from "../../allocator/store/etcd/pages.ts";
import { isCniError } from "../../ipam-plugin/cni/errors.ts";
import { Fields } from "../../ipam-plugin/cni/json-fields.ts";
import { type RangeSet, readRangeSets } from "../../ipam-plugin/cni/range-set.ts";

const FOLDER = "/etcd-cni/networks/";
/** No container's id: cni-ipam-etcd neither gives an address that has it, nor takes it away. */
const MARK = "berth";

/** One address that it gave, and has not taken back. */
export interface Used {
  readonly address: Address;
  readonly container: string;
  /** At which its key was written last. */
  readonly revision: number;
}

/** What its keys say now. */
interface Kept {
  readonly used: readonly Used[];
  /** Of Berth's, since an import. */
  readonly marked: ReadonlySet<Address>;
}

export class FormerNetwork {
  readonly name: string;
  readonly #keys: Pick<EtcdClient, "range" | "change">;

  constructor(keys: Pick<EtcdClient, "range" | "change">, name: string) {
    this.#keys = keys;
    this.name = name;
  }

  /** Undefined: it never served this network. Throws STATE_CORRUPT naming the key that cannot be read. */
  async rangeSets(): Promise<readonly RangeSet[] | undefined> {
    const key = `${FOLDER}${this.name}`;
    const [entry] = (await this.#keys.range({ key })).entries;
    if (entry === undefined) return undefined;
    const sets = readRangeSets(setsIn(key, entry.value));
    if (!isCniError(sets)) return sets;
    throw new BerthError("STATE_CORRUPT", `${key} in etcd: ${sets.msg}`);
  }

  async kept(): Promise<Kept> {
    const folder = this.#used;
    const range = { key: folder, end: `${folder.slice(0, -1)}0` }; // "0" comes after "/"
    const used: Used[] = [];
    const marked = new Set<Address>();
    for await (const { entries } of pagesOf({ client: this.#keys, log: noopLogger }, range)) {
      for (const entry of entries) {
        const { key, value, modRevision } = entry;
        const address = parseAddress(key.slice(folder.length));
        if (address === undefined) continue; // it gives no such address
        if (entry.overlong === true) throw noContainer(key);
        const { container, isMarked } = holderIn(value);
        if (isMarked) marked.add(address);
        else used.push({ address, container, revision: modRevision });
      }
    }
    return { used, marked };
  }

  /** From here on it gives the address to nobody. `changed`: it has done something with it meanwhile. */
  async mark(address: Address, used?: Used): Promise<"marked" | "changed"> {
    const key = this.#keyOf(address);
    const value = used === undefined ? MARK : `${MARK} ${used.container}`;
    const answer = await this.#keys.change({ key, modRevision: used?.revision ?? 0, value });
    const isMarked = answer.kind === "lost" ? (await this.#entryOf(key))?.value === value : answer.done;
    return isMarked ? "marked" : "changed";
  }

  /** Whose the address is now; undefined: nobody's. */
  async at(address: Address): Promise<(Used & { readonly isMarked: boolean }) | undefined> {
    const entry = await this.#entryOf(this.#keyOf(address));
    if (entry === undefined || entry.value === MARK) return undefined;
    return { address, revision: entry.modRevision, ...holderIn(entry.value) };
  }

  get #used(): string {
    return `${FOLDER}${this.name}/used/`;
  }

  #keyOf(address: Address): string {
    return `${this.#used}${address}`;
  }

  async #entryOf(key: string) {
    return (await this.#keys.range({ key })).entries[0];
  }
}

/** The container that has the address, and whether it is Berth's since an import; a mark alone is nobody's. */
function holderIn(value: string): { readonly container: string; readonly isMarked: boolean } {
  if (value === MARK) return { container: "", isMarked: true };
  const isMarked = value.startsWith(`${MARK} `);
  return { container: isMarked ? value.slice(MARK.length + 1) : value, isMarked };
}

function noContainer(key: string): BerthError {
  return new BerthError("STATE_CORRUPT", `${key} in etcd is longer than the id of any container; delete it`);
}

function setsIn(key: string, value: string): Fields[][] {
  try {
    const sets: unknown = JSON.parse(value);
    if (!Array.isArray(sets)) throw new Error("no list of range sets");
    return sets.map((set: unknown) => {
      if (!Array.isArray(set)) throw new Error("a range set is no list");
      return set.map((one: unknown) => new Fields(Object(one)));
    });
  } catch (error) {
    throw new BerthError("STATE_CORRUPT", `${key} in etcd: ${messageOf(error)}`, { cause: error });
  }
}
