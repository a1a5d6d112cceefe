// SPDX-License-Identifier: Apache-2.0
import {
  type Address,
  bitsOf,
  type Cidr,
  type Family,
  familyOf,
  fromNumber,
  lastOf,
  parseAddress,
  parseCidr,
  toNumber,
} from "../../allocator/ip/address.ts";
import { contains, type Interval, intersection } from "../../allocator/ip/ip-range.ts";
import { type CniError, cniError, isCniError } from "./errors.ts";
import type { Fields } from "./json-fields.ts";

/**
 * A subnet with bounds, as host-local has them: less strict than a pool's range (the bounds may be the network and
 * broadcast address, the gateway may lie anywhere), so that its configurations keep working.
 */
export interface Subnet {
  readonly family: Family;
  readonly cidr: Cidr;
  readonly bounds: Interval;
  readonly gateway: Address;
}

/** Subnets of one family, of which an attachment gets one address. Not empty. */
export type RangeSet = readonly [Subnet, ...Subnet[]];

/** What these plugins give of a network that nobody says bounds of: all but its first address, and the last of IPv4. Undefined: it is too small. */
export function usualBounds(cidr: Cidr): Interval | undefined {
  const { family, base, prefixLength } = cidr;
  if (prefixLength > bitsOf(family) - 2) return undefined;
  return { first: base + 1n, last: family === "IPv4" ? lastOf(cidr) - 1n : lastOf(cidr) };
}

/** `10.1.2.1-10.1.2.254`: the bounds of the subnets, comma separated. */
export function formatSet(set: readonly Subnet[]): string {
  return set.map(formatBounds).join(",");
}

/** The subnet of the set that contains the address within its bounds. */
export function subnetOf(set: RangeSet, address: Address): Subnet | undefined {
  const n = toNumber(address);
  return set.find(({ family, bounds }) => family === familyOf(address) && contains(bounds, n));
}

/** Reads and checks range sets, with the words of host-local. */
export function readRangeSets(sets: readonly (readonly Fields[])[]): readonly RangeSet[] | CniError {
  const read: RangeSet[] = [];
  for (const [i, entries] of sets.entries()) {
    const set = readSet(entries);
    if (isCniError(set)) return { ...set, msg: `invalid range set ${i}: ${set.msg}` };
    read.push(set);
  }
  for (const [i, set] of read.entries()) {
    const other = read.findIndex((next, j) => j > i && set.some((a) => next.some((b) => overlap(a, b))));
    if (other >= 0) return invalid(`range set ${i} overlaps with ${other}`);
  }
  return read;
}

function readSet(entries: readonly Fields[]): RangeSet | CniError {
  const subnets: Subnet[] = [];
  for (const entry of entries) {
    const subnet = readSubnet(entry);
    if (isCniError(subnet)) return subnet;
    subnets.push(subnet);
  }
  const [first, ...rest] = subnets;
  if (first === undefined) return invalid("empty range set");
  if (rest.some(({ family }) => family !== first.family)) return invalid("mixed address families");
  for (const [i, a] of subnets.entries()) {
    const b = subnets.find((next, j) => j > i && overlap(a, next));
    if (b !== undefined) return invalid(`subnets ${formatBounds(a)} and ${formatBounds(b)} overlap`);
  }
  return [first, ...rest];
}

function readSubnet(entry: Fields): Subnet | CniError {
  const text = entry.text("subnet") ?? "";
  const [gatewayText, startText, endText] = ["gateway", "rangeStart", "rangeEnd"].map((key) =>
    entry.text(key),
  );
  if (entry.problem !== undefined) return entry.problem;
  const cidr = readNetwork(text);
  if (isCniError(cidr)) return cidr;
  const usual = usualBounds(cidr) ?? invalid(`Network ${text} too small to allocate from`);
  if (isCniError(usual)) return usual;
  const gateway = readGateway(gatewayText, cidr);
  if (isCniError(gateway)) return gateway;
  const first = readBound("RangeStart", startText, { cidr, least: cidr.base }) ?? usual.first;
  if (isCniError(first)) return first;
  const last = readBound("RangeEnd", endText, { cidr, least: first }) ?? usual.last;
  if (isCniError(last)) return last;
  return { family: cidr.family, cidr, bounds: { first, last }, gateway };
}

function readNetwork(text: string): Cidr | CniError {
  const cidr = parseCidr(text);
  if (cidr === undefined) return invalid(`invalid CIDR address: ${text}`);
  const { family, base, prefixLength, hostBits } = cidr;
  if (family === "IPv4" && text.includes(":")) return invalid("IPNet IP and Mask version mismatch");
  if (!hostBits || usualBounds(cidr) === undefined) return cidr;
  const network = fromNumber(base, family);
  return invalid(
    `Network has host bits set. For a subnet mask of length ${prefixLength} the network address is ${network}`,
  );
}

/** Default: the first host address. host-local takes a gateway of the other family, which no kernel does. */
function readGateway(text: string | undefined, cidr: Cidr): Address | CniError {
  if (!text) return fromNumber(cidr.base + 1n, cidr.family);
  const gateway = parseAddress(text);
  if (gateway === undefined) return invalid(`invalid IP address: ${text}`);
  if (familyOf(gateway) === cidr.family) return gateway;
  return invalid(`gateway ${gateway} is ${familyOf(gateway)}, network ${cidr.text} is ${cidr.family}`);
}

function readBound(
  name: string,
  text: string | undefined,
  within: { cidr: Cidr; least: bigint },
): bigint | CniError | undefined {
  if (!text) return undefined;
  const { cidr, least } = within;
  const address = parseAddress(text);
  if (address === undefined) return invalid(`invalid IP address: ${text}`);
  const n = toNumber(address);
  const inside = familyOf(address) === cidr.family && contains({ first: least, last: lastOf(cidr) }, n);
  return inside ? n : invalid(`${name} ${address} not in network ${cidr.text}`);
}

function overlap(a: Subnet, b: Subnet): boolean {
  return a.family === b.family && intersection(a.bounds, b.bounds) !== undefined;
}

function formatBounds({ family, bounds }: Subnet): string {
  return `${fromNumber(bounds.first, family)}-${fromNumber(bounds.last, family)}`;
}

function invalid(msg: string): CniError {
  return cniError("INVALID_CONFIG", msg);
}
