// SPDX-License-Identifier: Apache-2.0
// Addresses of several interfaces in one annotation: `10.20.0.51,10.30.0.51@net1` (ADR 0027).

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Address } from "../ip/address.ts";
import type { AddressEntry, Request } from "../model/address-request.ts";
import { FIRST_INTERFACE, isInterfaceName } from "../model/interfaces.ts";
import { bad, itemsOf, MAX_ENTRIES, quote, readEntries, readEntry, repeated } from "./annotation-values.ts";

/** Of a pod; some run with eight networks, hardly any with more. */
const MAX_INTERFACES = 8;

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
    repeated(entries, key) ?? twiceIn(entries, key) ?? { entries, interfaces: Object.fromEntries(interfaces) }
  );
}

/** Of one pod, or of several by ranges: interface -> its addresses for each of them. */
function readItem(item: string, key: string, n: number): Map<string, readonly AddressEntry[]> | Refusal {
  const parts = item.split(",", 2 * MAX_INTERFACES + 1);
  if (parts.length > 2 * MAX_INTERFACES) return bad(key, tooMany());
  const texts = new Map<string, string[]>(); // interface -> what is written for it
  for (const part of parts) {
    const [text = "", name = FIRST_INTERFACE, ...more] = part.split("@", 3).map((one) => one.trim());
    if (more.length > 0 || !isInterfaceName(name))
      return bad(key, `${quote(part.trim())} names no interface; write 10.30.0.51@net1`);
    texts.set(name, [...(texts.get(name) ?? []), text]);
  }
  if (texts.size > MAX_INTERFACES) return bad(key, tooMany());
  const read = new Map<string, readonly AddressEntry[]>();
  for (const [name, own] of texts) {
    const its = readEntry(own.join(","), key, n);
    if (isRefusal(its)) return onInterface(its, name);
    read.set(name, its);
  }
  const lengths = new Set([...read.values()].map((column) => column.length));
  return lengths.size === 1 ? read : bad(key, `the ranges in ${quote(item)} are not equally long`);
}

function onInterface(refusal: Refusal, name: string): Refusal {
  return { ...refusal, message: `${refusal.message} (interface ${name})` };
}

/** One address on two links of a pod would be answered for by both. */
function twiceIn(entries: readonly AddressEntry[], key: string): Refusal | undefined {
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
