// SPDX-License-Identifier: Apache-2.0
// How the value of each annotation is written.

import { isRefusal, type Refusal } from "../base/errors.ts";
import { parseDuration } from "../base/go-duration.ts";
import { type Address, type Family, familyOf, fromNumber, parseAddress } from "../ip/address.ts";
import { parseInterval, turnedRound } from "../ip/ip-range.ts";
import { refuseAddress } from "../ip/mac.ts";
import { canonicalCidr } from "../ip/written-address.ts";
import type { AddressEntry, Request } from "../model/address-request.ts";
import type { Retention, RetentionChoice } from "../model/claim.ts";

/** The longest list that one annotation may carry; a template is copied into every pod. */
export const MAX_ENTRIES = 1024;
/** One address of each family. */
const MAX_OF_A_POD = 2;
const MAX_POOLS = 64;
/** With what stands between commas and is no name. */
const MAX_NAMES = 16 * MAX_POOLS;
/** What people write between names instead of a comma. */
const SEPARATORS = /[;|\s]+/;
/** Of JSON, where a name is meant. */
const NO_NAME = /["'[\]{}]/;
/** A pool's family behind its name. A prefix length is that of a CIDR, which has dots or colons. */
const FAMILY_OF_POOL = /\/IPv[46]$/;
const FAMILY_MISSPELT = /^[^/:]*\/(?:ip-?)?v[46]$/i;
/** Of a Kubernetes name; no CIDR is longer. */
const LONGEST_NAME = 253;

export function bad(key: string, why: string): Refusal {
  return refuseAddress("REQUEST_INVALID", `annotation ${key}: ${why}`, { annotation: key });
}

/** A value as it may stand in a message: quoted, and never longer than a line. */
export function quote(value: string): string {
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
}

/** `a` · `a,b` or `a/b` of two families · entries apart by `;` · ranges `a-b`, in pairs `a-b/c-d`. */
export function readEntries(value: string, key: string): Request | Refusal {
  const items = itemsOf(value, key);
  if (!Array.isArray(items)) return items;
  const entries: AddressEntry[] = [];
  for (const [n, item] of items.entries()) {
    const read = readEntry(item, key, n);
    if (isRefusal(read)) return read;
    entries.push(...read);
    if (entries.length > MAX_ENTRIES) return bad(key, `it has more than ${MAX_ENTRIES} entries`);
  }
  return repeated(entries, key) ?? { entries };
}

/** What is written for each pod, or for several by ranges. */
export function itemsOf(value: string, key: string): string[] | Refusal {
  const items = value.split(";", MAX_ENTRIES + 2).map((item) => item.trim());
  if (items.at(-1) === "") items.pop();
  return items.length === 0 ? bad(key, "it is empty; write an address such as 10.20.0.51") : items;
}

/** The second pod with the address could never start. */
export function repeated(entries: readonly AddressEntry[], key: string): Refusal | undefined {
  const seen = new Set<Address>();
  for (const [n, entry] of entries.entries()) {
    const again = entry.find((address) => seen.has(address));
    if (again !== undefined)
      return bad(key, `entry ${n + 1} has ${again} again; give each pod addresses of its own`);
    for (const address of entry) seen.add(address);
  }
  return undefined;
}

/** Of one pod, or of several by ranges. */
export function readEntry(item: string, key: string, n: number): readonly AddressEntry[] | Refusal {
  const prefixed = item.split(",", MAX_OF_A_POD).find((part) => WITH_PREFIX.test(part.trim()));
  if (prefixed !== undefined) return bad(key, hasPrefix(prefixed.trim(), n));
  const parts = item.split(/[,/]/, MAX_OF_A_POD + 1);
  if (parts.length > MAX_OF_A_POD) return bad(key, tooManyFor(item, key));
  const columns: AddressEntry[] = [];
  for (const part of parts) {
    const read = readPart(part.trim(), key, n);
    if (isRefusal(read)) return read;
    columns.push(read);
  }
  const rows = columns[0]?.length ?? 0;
  if (columns.some((column) => column.length !== rows)) {
    return bad(key, `the ranges in ${quote(item)} are not equally long`);
  }
  const entries = Array.from({ length: rows }, (_, row) => columns.flatMap((column) => column[row] ?? []));
  return entries.every(isOneOfEach) ? entries : bad(key, twoOfAFamily(item, key));
}

/** A slash sets two families apart, too: what stands behind it is an address or nothing of this entry's. */
const WITH_PREFIX = /^[\d.a-f:-]+\/\d{1,3}$/i;

function hasPrefix(part: string, n: number): string {
  const bare = part.slice(0, part.indexOf("/"));
  return `entry ${n + 1}, ${quote(part)}, has a prefix; write ${quote(bare)}, for the pool says the prefix`;
}

/** Of the keys whose lists are for several pods. */
const FOR_SEVERAL_PODS = /^berth[.]dev[/]|[/]ip_pool([.]|$)/;

function twoOfAFamily(item: string, key: string): string {
  const onOne = key.startsWith("berth.dev/") ? ", or with @eth0 behind each several of one" : "";
  return `${quote(item)} has two addresses of one family; a pod gets one of each${onOne}${severalPods(key)}`;
}

function tooManyFor(item: string, key: string): string {
  return `${quote(item)} has more than two addresses; a pod gets one of each family${severalPods(key)}`;
}

function severalPods(key: string): string {
  return FOR_SEVERAL_PODS.test(key) ? ', and the entries of several pods are set apart by ";"' : "";
}

export function isOneOfEach(entry: AddressEntry): boolean {
  return new Set(entry.map(familyOf)).size === entry.length;
}

function readPart(part: string, key: string, n: number): readonly Address[] | Refusal {
  if (!part.includes("-")) return readAddress(part, key, n);
  const range = parseInterval(part);
  if (range === undefined) return noRange(part, key, n);
  const { first, last } = range.interval;
  if (last - first >= BigInt(MAX_ENTRIES)) return bad(key, `it has more than ${MAX_ENTRIES} entries`);
  return Array.from({ length: Number(last - first) + 1 }, (_, i) =>
    fromNumber(first + BigInt(i), range.family),
  );
}

function noRange(part: string, key: string, n: number): Refusal {
  const meant = turnedRound(part);
  const why =
    meant === undefined
      ? "is no range of addresses (write 10.20.0.51-10.20.0.55)"
      : `ends before it begins; write ${quote(meant)}`;
  return bad(key, `entry ${n + 1}, ${quote(part)}, ${why}`);
}

function readAddress(text: string, key: string, n: number): readonly Address[] | Refusal {
  const address = parseAddress(text);
  if (address !== undefined) return [address];
  return bad(
    key,
    `entry ${n + 1}, ${quote(text)}, is not an IP address (write 10.20.0.51 or fd00:20::51, no prefix)`,
  );
}

/** What stands between the separators: no more than it takes to see that they are too many. */
export function namesIn(value: string, separator: string | RegExp): readonly string[] {
  return value.split(separator, MAX_NAMES + 1);
}

export function readPools(names: readonly string[], key: string): Request | Refusal {
  const pools = names.map((name) => canonicalCidr(name.trim())).filter((name) => name !== "");
  if (pools.length === 0)
    return bad(key, "it names no pool; write the name of an IPPool, or several with commas");
  if (pools.length > MAX_POOLS || names.length > MAX_NAMES)
    return bad(key, `it names more than ${MAX_POOLS} pools`);
  const long = pools.find((name) => name.length > LONGEST_NAME);
  if (long !== undefined) return bad(key, `${quote(long)} is too long for the name of a pool`);
  const written = pools.find((name) => NO_NAME.test(name));
  if (written !== undefined)
    return bad(
      key,
      `${quote(written)} is no name of a pool; write the name alone, without quotes or brackets`,
    );
  const family = pools.find((name) => FAMILY_MISSPELT.test(name) && !FAMILY_OF_POOL.test(name));
  if (family !== undefined) {
    const [name, version] = [family.slice(0, family.indexOf("/")), family.slice(-1)];
    return bad(key, `${quote(family)} is no name of a pool; write ${quote(`${name}/IPv${version}`)}`);
  }
  const several = pools.find((name) => SEPARATORS.test(name));
  if (several !== undefined) {
    const meant = several.split(SEPARATORS).filter((name) => name !== "");
    return bad(
      key,
      `${quote(several)} is no name of a pool; pools are set apart by commas: ${quote(meant.join(","))}`,
    );
  }
  return { pools };
}

export function readSticky(value: string, key: string): Request | Refusal {
  if (value === "true" || value === "false") return { sticky: value === "true" };
  return bad(key, `${quote(value)} is not known here; write "true" or "false"`);
}

export function readFamilies(value: string, key: string): Request | Refusal {
  const names = namesIn(value, ",").map((name) => name.trim());
  const families = names.filter((name): name is Family => name === "IPv4" || name === "IPv6");
  if (families.length !== names.length || new Set(families).size !== families.length) {
    return bad(key, `${quote(value)} is not known here; write IPv4, IPv6 or "IPv4,IPv6"`);
  }
  return { families };
}

export function readFallback(value: string, key: string): Request | Refusal {
  if (value === "any") return { fallback: "any" };
  if (value === "none") return {};
  return bad(key, `${quote(value)} is not known here; write any, or none for a refusal`);
}

export function readChoice(value: string, key: string): RetentionChoice | Refusal {
  return value === "Release" || value === "Retain"
    ? value
    : bad(key, `${quote(value)} is not known here; write Release or Retain`);
}

export function retention(choice: RetentionChoice | Refusal, event: keyof Retention): Request | Refusal {
  return isRefusal(choice) ? choice : { retention: { [event]: choice } };
}

export function readTtl(value: string, key: string): Request | Refusal {
  const ttlMs = parseDuration(value);
  return ttlMs === undefined
    ? bad(key, `${quote(value)} is not a duration; write 30s, 5m or 48h`)
    : { retention: { ttlMs } };
}

/** Of 64 names of pools. JSON of empty lists takes ten times its length in memory. */
export const LONGEST_JSON = 24 * 1024;

/** JSON inside a string; undefined: it is none, or longer than any that is served. */
export function parsedJson(value: string): unknown {
  if (value.length > LONGEST_JSON) return undefined;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return undefined;
  }
}

/** Calico's lists are JSON inside a string: '["10.20.0.51","fd00:20::51"]'. */
function readArray(value: string, key: string): readonly string[] | Refusal {
  const parsed = parsedJson(value);
  if (Array.isArray(parsed) && parsed.length > 0 && parsed.every((item) => typeof item === "string"))
    return parsed;
  return bad(key, `${quote(value)} is not a JSON list of strings, such as '["10.20.0.51"]'`);
}

export function readAddressArray(value: string, key: string): Request | Refusal {
  const texts = readArray(value, key);
  if (isRefusal(texts)) return texts;
  if (texts.length > MAX_OF_A_POD) return bad(key, tooManyFor(value, key));
  const entry: Address[] = [];
  for (const [n, text] of texts.entries()) {
    const read = readAddress(text, key, n);
    if (isRefusal(read)) return read;
    entry.push(...read);
  }
  return isOneOfEach(entry) ? { entries: [entry] } : bad(key, twoOfAFamily(value, key));
}
