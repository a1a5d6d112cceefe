// SPDX-License-Identifier: Apache-2.0

import type { RecordReader } from "../cache/reader.ts";
import { parseAddress } from "../ip/address.ts";

/** What an address, a CIDR or a pool's name may consist of. */
const WORDS = /[0-9a-z.:/-]+/g;
const IPV4 = /\d{1,3}(?:\.\d{1,3}){3}/g;
const LONGEST_ADDRESS = 45;

/**
 * Whether an address or a pool of Berth's occurs anywhere in a value that Berth cannot read. Lenient: what is wrongly found is
 * refused, and what is overlooked would be left to another system.
 */
export function namesOwnIn(view: Pick<RecordReader, "pools" | "poolOf">, value: string): boolean {
  const text = value.toLowerCase();
  const words = new Set([...text.matchAll(WORDS)].flatMap(([word]) => partsOf(word)));
  const isPool = view
    .pools()
    .some(({ name, ranges }) => words.has(name) || ranges.some(({ cidr }) => words.has(cidr.text)));
  if (isPool) return true;
  const addresses = [...text.matchAll(IPV4)].map(([one]) => one.replace(/\b0+(?=\d)/g, ""));
  return [...words, ...addresses].some((one) => {
    const address = one.length > LONGEST_ADDRESS ? undefined : parseAddress(one);
    return address !== undefined && view.poolOf(address) !== undefined;
  });
}

/** As in `address/prefix`, `pool:name`, `first-last`, and before a full stop. */
function partsOf(word: string): string[] {
  const parts = ["/", ":", /[/-]/].flatMap((separator) => word.split(separator));
  return [word, ...parts.flatMap((part) => [part, part.replace(/^[.-]/, "").replace(/[.-]$/, "")])];
}
