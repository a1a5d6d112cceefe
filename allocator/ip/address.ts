// SPDX-License-Identifier: Apache-2.0
import { Address6 } from "ip-address";
import { BerthError } from "../base/errors.ts";
import { readGroups, writeGroups } from "./ipv6-text.ts";

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
  const number = readGroups(withoutQuad(text));
  if (number !== undefined) return number;
  try {
    return new Address6(text).bigInt();
  } catch {
    return undefined;
  }
}

/** Its last 32 bits may be dotted decimal; any other text stays as it is. */
function withoutQuad(text: string): string {
  const behind = text.lastIndexOf(":") + 1;
  if (!text.includes(".", behind)) return text;
  const quad = readIPv4(text.slice(behind));
  if (quad === undefined) return text;
  return `${text.slice(0, behind)}${(quad >>> 16).toString(16)}:${(quad & 0xffff).toString(16)}`;
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

/** Whether the addresses are of these families, of each at least one, and of no other. */
export function areOfFamilies(addresses: readonly Address[], families: readonly Family[]): boolean {
  const of = new Set(addresses.map(familyOf));
  return of.size === families.length && families.every((family) => of.has(family));
}

/** The address as an unsigned integer of 32 or 128 bits. */
export function toNumber(address: Address): bigint {
  const small = readIPv4(address);
  return small === undefined ? (readGroups(address) ?? 0n) : BigInt(small);
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
  return writeGroups(n) as Address;
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
  const network = readNumbers(text);
  return network && { ...network, text: formatCidr(network) };
}

/** The same without its canonical text, which costs more than all the rest. */
export function readNumbers(text: string): Omit<Cidr, "text"> | undefined {
  const slash = text.indexOf("/");
  if (slash < 0 || slash > LONGEST_IPV6) return undefined;
  const written = text.slice(0, slash);
  const small = readIPv4(written);
  const wide = small === undefined ? readIPv6(written) : BigInt(small);
  const length = text.slice(slash + 1);
  if (wide === undefined || !PREFIX_LENGTH.test(length)) return undefined;
  const isFolded = small === undefined && wide >> 32n === MAPPED;
  const family = small === undefined && !isFolded ? "IPv6" : "IPv4";
  const number = isFolded ? wide & 0xffffffffn : wide;
  const prefixLength = Number(length) - (isFolded ? 96 : 0);
  const hostLength = bitsOf(family) - prefixLength;
  if (prefixLength < 0 || hostLength < 0) return undefined;
  const base = (number >> BigInt(hostLength)) << BigInt(hostLength);
  return { family, base, prefixLength, hostBits: base !== number };
}

/** `10.0.0.0/24`: the canonical text of a network. */
export function formatCidr(cidr: Pick<Cidr, "family" | "base" | "prefixLength">): string {
  return `${fromNumber(cidr.base, cidr.family)}/${cidr.prefixLength}`;
}

/** The highest number in the network. */
export function lastOf(cidr: Omit<Cidr, "text">): bigint {
  return cidr.base + (1n << BigInt(bitsOf(cidr.family) - cidr.prefixLength)) - 1n;
}
