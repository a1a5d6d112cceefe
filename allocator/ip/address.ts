// SPDX-License-Identifier: Apache-2.0
import { Address6 } from "ip-address";
import { BerthError } from "../base/errors.ts";

declare const brand: unique symbol;

/** Canonical text of one IP: RFC 5952, no prefix, no zone, IPv4-mapped folded to IPv4. Safe as a Map key. */
export type Address = string & { readonly [brand]: "Address" };
export type Family = "IPv4" | "IPv6";
export const FAMILIES: readonly Family[] = ["IPv4", "IPv6"];

/** A network. `base` has no host bits, whatever the text that was read had: that is what `hostBits` tells. */
export interface Cidr {
  readonly family: Family;
  readonly base: bigint;
  readonly prefixLength: number;
  readonly hostBits: boolean;
  /** Canonical, of the network itself: `10.0.0.0/24` also when `10.0.0.7/24` was read. */
  readonly text: string;
}

/** Eight groups of four hex digits, the last two written as a dotted quad: 6 * 5 + 15. */
const LONGEST_IPV6 = 45;
const IPV6_CHARACTERS = /^[0-9a-fA-F:.]+$/;
const PREFIX_LENGTH = /^(?:0|[1-9][0-9]{0,2})$/;
/** ::ffff:0:0/96, RFC 4291 section 2.5.5.2: the upper 96 bits. */
const MAPPED = 0xffffn;
const DOT = 46;
const ZERO = 48;
const NO_OCTET = -1;

/** How many bits an address of the family has. */
export function bitsOf(family: Family): number {
  return family === "IPv4" ? 32 : 128;
}

/** Strict dotted decimal, by hand: a pool of a million addresses is read and sorted through here. */
function readIPv4(text: string): number | undefined {
  if (text.length < 7 || text.length > 15) return undefined;
  let value = 0;
  let dots = 0;
  let octet = NO_OCTET;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT && octet !== NO_OCTET) {
      value = value * 256 + octet;
      octet = NO_OCTET;
      dots++;
      continue;
    }
    octet = appendDigit(octet, code - ZERO);
    if (octet === NO_OCTET) return undefined;
  }
  return dots === 3 && octet !== NO_OCTET ? value * 256 + octet : undefined;
}

/** NO_OCTET for what is no digit, for more than 255, and for a leading zero (octal to some, RFC 6943 section 3.1.1). */
function appendDigit(octet: number, digit: number): number {
  if (digit < 0 || digit > 9 || octet === 0) return NO_OCTET;
  const value = octet === NO_OCTET ? digit : octet * 10 + digit;
  return value > 255 ? NO_OCTET : value;
}

function readIPv6(text: string): bigint | undefined {
  if (text.length > LONGEST_IPV6 || !IPV6_CHARACTERS.test(text)) return undefined;
  try {
    return new Address6(text).bigInt();
  } catch {
    return undefined;
  }
}

/** The canonical text, which has at most one `::` and no dotted quad, by hand: records are compared again and again. */
function canonicalIPv6(text: Address): bigint {
  const [head = "", tail] = text.split("::");
  const before = groupsOf(head);
  const upper = numberOf(before);
  return tail === undefined ? upper : (upper << BigInt(16 * (8 - before.length))) | numberOf(groupsOf(tail));
}

function groupsOf(part: string): readonly string[] {
  return part === "" ? [] : part.split(":");
}

function numberOf(groups: readonly string[]): bigint {
  return groups.reduce((sum, group) => (sum << 16n) | BigInt(Number.parseInt(group, 16)), 0n);
}

function writeIPv4(n: number): Address {
  return `${n >>> 24}.${(n >>> 16) & 255}.${(n >>> 8) & 255}.${n & 255}` as Address;
}

/** The address that the text writes, or undefined for anything else: a prefix, a zone, blanks, leading zeros. */
export function parseAddress(text: string): Address | undefined {
  if (readIPv4(text) !== undefined) return text as Address; // the strict form is the canonical one
  const number = readIPv6(text);
  return number === undefined ? undefined : fromNumber(number, "IPv6");
}

export function familyOf(address: Address): Family {
  return address.includes(":") ? "IPv6" : "IPv4";
}

/** The address as an unsigned integer of 32 or 128 bits. */
export function toNumber(address: Address): bigint {
  const small = readIPv4(address);
  return small === undefined ? canonicalIPv6(address) : BigInt(small);
}

/**
 * The address of that number; numbers in ::ffff:0:0/96 give the IPv4 address (ranges that hold them are refused).
 * Throws BerthError INTERNAL for a number outside the family.
 */
export function fromNumber(n: bigint, family: Family): Address {
  if (n < 0n || n >> BigInt(bitsOf(family)) !== 0n) {
    throw new BerthError("INTERNAL", `${n} is no ${family} address`);
  }
  if (family === "IPv4") return writeIPv4(Number(n));
  if (n >> 32n === MAPPED) return writeIPv4(Number(n & 0xffffffffn));
  return Address6.fromBigInt(n).correctForm() as Address;
}

/** For sorting: IPv4 before IPv6, then by number. */
export function compareAddresses(a: Address, b: Address): number {
  const [smallA, smallB] = [readIPv4(a), readIPv4(b)];
  if (smallA !== undefined && smallB !== undefined) return smallA - smallB;
  if (smallA !== undefined) return -1;
  if (smallB !== undefined) return 1;
  const [wideA, wideB] = [toNumber(a), toNumber(b)];
  if (wideA === wideB) return 0;
  return wideA < wideB ? -1 : 1;
}

/** The network that the text writes (`10.0.0.0/24`), or undefined; host bits are taken off and told. */
export function parseCidr(text: string): Cidr | undefined {
  const slash = text.indexOf("/");
  if (slash < 0 || slash > LONGEST_IPV6) return undefined;
  const address = parseAddress(text.slice(0, slash));
  const length = text.slice(slash + 1);
  if (address === undefined || !PREFIX_LENGTH.test(length)) return undefined;
  const family = familyOf(address);
  const folded = family === "IPv4" && text.includes(":") ? 96 : 0;
  const prefixLength = Number(length) - folded;
  const hostLength = bitsOf(family) - prefixLength;
  if (prefixLength < 0 || hostLength < 0) return undefined;
  const number = toNumber(address);
  const base = (number >> BigInt(hostLength)) << BigInt(hostLength);
  const network = { family, base, prefixLength };
  return { ...network, hostBits: base !== number, text: formatCidr(network) };
}

/** `10.0.0.0/24`: the canonical text of a network. */
export function formatCidr(cidr: Pick<Cidr, "family" | "base" | "prefixLength">): string {
  return `${fromNumber(cidr.base, cidr.family)}/${cidr.prefixLength}`;
}

/** The highest number in the network. */
export function lastOf(cidr: Cidr): bigint {
  return cidr.base + (1n << BigInt(bitsOf(cidr.family) - cidr.prefixLength)) - 1n;
}
