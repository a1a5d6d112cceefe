// SPDX-License-Identifier: Apache-2.0
// What is asked for of several interfaces, in one annotation: `10.20.0.51,10.30.0.51@net1` (ADR 0027), `db,web@net1` (ADR 0030).

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Address } from "../ip/address.ts";
import type { AddressEntry, Request } from "../model/address-request.ts";
import { FIRST_INTERFACE, isInterfaceName } from "../model/interfaces.ts";
import {
  bad,
  itemsOf,
  MAX_ENTRIES,
  namesIn,
  quote,
  readEntries,
  readEntry,
  readPools,
  readSticky,
  repeated,
} from "./annotation-values.ts";

/** Of a pod; some run with eight networks, hardly any with more. */
export const MAX_INTERFACES = 8;
/** Of a pod: two of each of its interfaces, or more of some. */
export const MAX_ADDRESSES = 16;
const TOO_MANY_ADDRESSES = `it names more than ${MAX_ADDRESSES} addresses of one pod`;

/** As `readEntries` has it. With an `@` each pair between commas is of the interface behind it, and of eth0 without one. */
export function readEntriesOn(value: string, key: string): Request | Refusal {
  if (!value.includes("@")) return readEntries(value, key);
  const items = itemsOf(value, key);
  if (!Array.isArray(items)) return items;
  const entries: AddressEntry[] = [];
  const interfaces = new Map<string, Address[]>(); // interface -> of all pods
  for (const [n, item] of items.entries()) {
    const read = readItem(item, key, n);
    if (!(read instanceof Map)) return read;
    const columns = [...read.values()];
    const rows = columns[0]?.length ?? 0;
    for (let row = 0; row < rows; row++) entries.push(columns.flatMap((column) => column[row] ?? []));
    if (entries.length > MAX_ENTRIES) return bad(key, `it has more than ${MAX_ENTRIES} entries`);
    for (const [name, of] of read) interfaces.set(name, [...(interfaces.get(name) ?? []), ...of.flat()]);
  }
  if (interfaces.size > MAX_INTERFACES) return bad(key, tooMany());
  return (
    repeated(entries, key) ??
    tooManyIn(entries, key) ??
    twiceIn(entries, key) ?? { entries, interfaces: Object.fromEntries(interfaces) }
  );
}

/** What is written for one interface, and whether each part of it names that. */
interface Written {
  readonly texts: readonly string[];
  readonly isNamed: boolean;
}

/** Of one pod, or of several by ranges: interface -> its addresses for each of them. */
function readItem(item: string, key: string, n: number): Map<string, readonly AddressEntry[]> | Refusal {
  const parts = item.split(",", MAX_ADDRESSES + 1);
  if (parts.length > MAX_ADDRESSES) return bad(key, TOO_MANY_ADDRESSES);
  const written = new Map<string, Written>(); // interface -> what is written for it
  for (const part of parts) {
    const [text = "", name = FIRST_INTERFACE, ...more] = part.split("@", 3).map((one) => one.trim());
    if (more.length > 0 || !isInterfaceName(name))
      return bad(
        key,
        `${quote(part.trim())} names no interface of up to 15 characters; write 10.30.0.51@net1`,
      );
    const { texts = [], isNamed = true } = written.get(name) ?? {};
    written.set(name, { texts: [...texts, text], isNamed: isNamed && part.includes("@") });
  }
  if (written.size > MAX_INTERFACES) return bad(key, tooMany());
  const read = new Map<string, readonly AddressEntry[]>();
  for (const [name, own] of written) {
    const its = own.isNamed ? readNamed(own.texts, key, n) : readEntry(own.texts.join(","), key, n);
    if (isRefusal(its)) return onInterface(its, name);
    read.set(name, its);
  }
  const lengths = new Set([...read.values()].map((column) => column.length));
  return lengths.size === 1 ? read : bad(key, `the ranges in ${quote(item)} are not equally long`);
}

/**
 * Each says its interface, which may have several of one family so: that nobody meant the addresses of several pods. What a slash sets
 * apart is of two families all the same.
 */
function readNamed(texts: readonly string[], key: string, n: number): readonly AddressEntry[] | Refusal {
  const columns: (readonly AddressEntry[])[] = [];
  for (const text of texts) {
    const read = readEntry(text, key, n);
    if (isRefusal(read)) return read;
    columns.push(read);
  }
  const rows = columns[0]?.length ?? 0;
  if (columns.some((column) => column.length !== rows))
    return bad(key, `the ranges in ${quote(texts.join())} are not equally long`);
  return Array.from({ length: rows }, (_, row) => columns.flatMap((column) => column[row] ?? []));
}

function onInterface(refusal: Refusal, name: string): Refusal {
  return { ...refusal, message: `${refusal.message} (interface ${name})` };
}

export function tooManyIn(entries: readonly AddressEntry[], key: string): Refusal | undefined {
  const isLong = entries.some((entry) => entry.length > MAX_ADDRESSES);
  return isLong ? bad(key, TOO_MANY_ADDRESSES) : undefined;
}

/** One address on two links of a pod would be answered for by both. */
export function twiceIn(entries: readonly AddressEntry[], key: string): Refusal | undefined {
  for (const [n, entry] of entries.entries()) {
    const twice = entry.find((address, at) => entry.indexOf(address) !== at);
    if (twice !== undefined)
      return bad(key, `entry ${n + 1} has ${twice} twice; an address is of one interface`);
  }
  return undefined;
}

function tooMany(): string {
  return `it names more than ${MAX_INTERFACES} interfaces`;
}

/** `db,web@net1`: pools of each interface, in order of preference; without an `@` those of eth0. */
export function readPoolsOn(value: string, key: string): Request | Refusal {
  const names = namesIn(value, ",");
  if (!value.includes("@")) return readPools(names, key);
  const parts = names.map((part) => part.trim()).filter((part) => part !== "");
  const pools = new Map<string, string[]>(); // interface -> names
  for (const part of parts) {
    const [pool = "", name = FIRST_INTERFACE, ...more] = part.split("@", 3).map((one) => one.trim());
    if (more.length > 0 || pool === "" || !isInterfaceName(name))
      return bad(key, `${quote(part)} names no pool of an interface; write db@net1`);
    pools.set(name, [...(pools.get(name) ?? []), pool]);
  }
  if (pools.size > MAX_INTERFACES) return bad(key, tooMany());
  const read = readPools([...pools.values()].flat(), key);
  return isRefusal(read) ? read : { interfacePools: Object.fromEntries(pools) };
}

/** `true`, or the interfaces that keep what they first get: `eth0,net1`. */
export function readStickyOn(value: string, key: string): Request | Refusal {
  if (value === "true" || value === "false") return readSticky(value, key);
  const names = namesIn(value, ",").map((name) => name.trim());
  if (names.length > MAX_INTERFACES) return bad(key, tooMany());
  // a word such as yes is more likely a mistake than the name of an interface
  const isNames = names.every((name) => isInterfaceName(name) && /\d/.test(name));
  if (!isNames || new Set(names).size < names.length)
    return bad(key, `${quote(value)} is not known here; write "true", "false" or interfaces: "eth0,net1"`);
  return { sticky: true, interfacePools: Object.fromEntries(names.map((name) => [name, []])) };
}
