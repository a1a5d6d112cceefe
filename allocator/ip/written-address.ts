// SPDX-License-Identifier: Apache-2.0
// Addresses that stand where the name of a pool is meant: as such a name they would mean no address, or any.

import { type Address, parseAddress, parseCidr } from "./address.ts";

export interface WrittenAddress {
  /** In words, with its article. */
  readonly is: string;
  /** As `berth.dev/ips` has it; absent: it is none. */
  readonly asIps?: string;
}

/** `10.20.0.300` and `010.20.0.51`, with a prefix or without. */
const LIKE_IPV4 = /^\d+(?:\.\d+){3}(?:\/\d+)?$/;
/** `a-b`, or as kube-ovn's pools have it, `a..b`. */
const BETWEEN = /\s*(?:-|\.\.)\s*/;
/** Longer than any two addresses; whatever is longer was written to cost time. */
const LONGEST = 100;

/** Undefined: it is neither an address nor like one, and may be a name or the CIDR of a range. */
export function writtenAddress(text: string): WrittenAddress | undefined {
  if (text.length > LONGEST) return undefined;
  const address = parseAddress(text);
  if (address !== undefined) return { is: "an address", asIps: address };
  const cidr = parseCidr(text);
  if (cidr !== undefined) return cidr.hostBits ? withPrefix(text) : undefined;
  return writtenRange(text) ?? (LIKE_IPV4.test(text) ? { is: "no IP address" } : undefined);
}

/** A range of addresses; its end may be the last number alone. Undefined: it is none. */
export function writtenRange(text: string): WrittenAddress | undefined {
  const [from, to] = endsOfRange(text) ?? [];
  return to && { is: "a range of addresses", asIps: `${from}-${to}` };
}

/** Of a range that is written so, the first address and the last. */
export function endsOfRange(text: string): readonly [Address, Address] | undefined {
  if (text.length > LONGEST) return undefined;
  const [first = "", end = "", ...more] = text.split(BETWEEN, 3);
  const from = parseAddress(first);
  if (from === undefined || more.length > 0) return undefined;
  const isNumber = /^\d{1,3}$/.test(end) && from.includes(".");
  const to = parseAddress(isNumber ? `${from.slice(0, from.lastIndexOf(".") + 1)}${end}` : end);
  return to && [from, to];
}

function withPrefix(text: string): WrittenAddress {
  const bare = text.slice(0, text.indexOf("/"));
  return { is: "an address with a prefix", asIps: parseAddress(bare) ?? bare };
}

/** A CIDR as a pool's range has it, which letter case and leading zeros do not change; any other text as it is. */
export function canonicalCidr(text: string): string {
  const cidr = text.includes("/") ? parseCidr(text) : undefined;
  return cidr === undefined || cidr.hostBits ? text : cidr.text;
}
