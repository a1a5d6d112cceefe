// SPDX-License-Identifier: Apache-2.0

import type { RecordReader } from "../cache/reader.ts";
import {
  type Address,
  type Family,
  familyOf,
  fromNumber,
  lastOf,
  parseAddress,
  readNumbers,
  toNumber,
} from "../ip/address.ts";
import { IntervalSet } from "../ip/interval-set.ts";
import { endsOfRange } from "../ip/written-address.ts";
import type { Pool } from "../pool/pool.ts";

/** What an address, a CIDR or a pool's name may consist of. */
const WORDS = /[0-9a-z.:/-]+/g;
const IPV4 = /\d{1,3}(?:\.\d{1,3}){3}/g;
const LONGEST_ADDRESS = 45;
/** What stands between the items of a list, be it JSON. */
const BETWEEN_ITEMS = /[,;"'[\]{}]/;

type Ranges = Readonly<Record<Family, IntervalSet>>;

/**
 * Whether an address or a pool of Berth's occurs anywhere in a value that Berth cannot read. Lenient: what is wrongly found is
 * refused, and what is overlooked would be left to another system.
 */
export function namesOwnIn(view: Pick<RecordReader, "pools">, value: string): boolean {
  const words = wordsIn(value);
  const isPool = view
    .pools()
    .some(({ name, ranges }) => words.has(name) || ranges.some(({ cidr }) => words.has(cidr.text)));
  return isPool || ownAddressIn(view, value) !== undefined;
}

/** The first address of Berth's that occurs in such a value. */
export function ownAddressIn(view: Pick<RecordReader, "pools">, value: string): Address | undefined {
  const addresses = [...value.matchAll(IPV4)].map(([one]) => one.replace(/\b0+(?=\d)/g, ""));
  const own = rangesOf(view.pools());
  for (const one of [...wordsIn(value), ...addresses]) {
    const address = one.length > LONGEST_ADDRESS ? undefined : parseAddress(one);
    if (address !== undefined && firstBetween(own, address, address) !== undefined) return address;
  }
  return ownBetween(own, value);
}

/** The first address of Berth's in a range or CIDR that is written so. Undefined: it is neither, or has none. */
export function ownWithin(view: Pick<RecordReader, "pools">, text: string): Address | undefined {
  return ownBetween(rangesOf(view.pools()), text);
}

/** The same of a range or a CIDR, of which it may have neither end. */
function ownBetween(own: Ranges, value: string): Address | undefined {
  for (const item of new Set(value.split(BETWEEN_ITEMS))) {
    const text = item.trim();
    const ends = endsOfRange(text) ?? endsOfCidr(text);
    const found = ends && firstBetween(own, ...ends);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** All addresses (`0.0.0.0/0`) are those of nobody, as a route may have them; and with host bits it is one address with a prefix. */
function endsOfCidr(text: string): readonly [Address, Address] | undefined {
  const cidr = readNumbers(text);
  if (cidr === undefined || cidr.hostBits || cidr.prefixLength === 0) return undefined;
  return [fromNumber(cidr.base, cidr.family), fromNumber(lastOf(cidr), cidr.family)];
}

function firstBetween(own: Ranges, from: Address, to: Address): Address | undefined {
  const family = familyOf(from);
  if (family !== familyOf(to)) return undefined;
  const found = own[family].nextTaken(toNumber(from), toNumber(to));
  return found === undefined ? undefined : fromNumber(found, family);
}

/** Of all pools, as they are until one changes: a tenant may write thousands of addresses, and there may be a thousand pools. */
const known = new WeakMap<readonly Pool[], Ranges>();

function rangesOf(pools: readonly Pool[]): Ranges {
  const seen = known.get(pools);
  if (seen !== undefined) return seen;
  const made = { IPv4: new IntervalSet(), IPv6: new IntervalSet() };
  for (const { ranges } of pools) for (const range of ranges) made[range.family].addInterval(range);
  known.set(pools, made);
  return made;
}

function wordsIn(value: string): ReadonlySet<string> {
  return new Set([...value.toLowerCase().matchAll(WORDS)].flatMap(([word]) => partsOf(word)));
}

/** As in `address/prefix`, `pool:name`, `first-last`, and before a full stop. */
function partsOf(word: string): string[] {
  const parts = ["/", ":", /[/-]/].flatMap((separator) => word.split(separator));
  return [word, ...parts.flatMap((part) => [part, part.replace(/^[.-]/, "").replace(/[.-]$/, "")])];
}
