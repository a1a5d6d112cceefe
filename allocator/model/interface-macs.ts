// SPDX-License-Identifier: Apache-2.0
// The MAC address of an interface of a pod, among the addresses of its claim (ADR 0031).

import { quote } from "../base/validation.ts";
import { type Address, parseAddress } from "../ip/address.ts";
import { macOfAddress } from "../ip/mac.ts";
import {
  addressesOn,
  formatHolding,
  type Holding,
  type InterfacePools,
  type Interfaces,
  namesOf,
  parseAddresses,
} from "./interfaces.ts";

/** Stands for the link of that name: what a claim has for `mac-net1` is the MAC address of net1. No plugin attaches it. */
export const LINK_PREFIX = "mac-";

/** Undefined: the claim pins none. */
export function macOn(claim: Holding, name: string): string | undefined {
  const [address] = addressesOn(claim, `${LINK_PREFIX}${name}`) ?? [];
  return address && macOfAddress(address);
}

/** interface -> its MAC address, of what a pod was told. Its claim may still have what was asked for before. */
export function parseMacs(words: readonly string[]): ReadonlyMap<string, string> {
  const parsed = { ...parseAddresses(words), request: {} };
  const named = namesOf(parsed.interfaces ?? {}).flatMap((link) => linkedTo(link) ?? []);
  return new Map(named.map((name) => [name, macOn(parsed, name)] as const).filter(isKnown));
}

/** As people read what a claim has: of `fe80::ff:fe00:51@mac-net1` the MAC address of net1. */
export function shownAs(text: string): string {
  const [address = "", name] = text.split("@");
  const parsed = parseAddress(address);
  const mac = parsed && macOfAddress(parsed);
  if (mac === undefined) return text;
  return name === undefined ? mac : `${mac}@${linkedTo(name) ?? name}`;
}

/** The same of a claim, as it is. */
export function macsOf(claim: Holding): ReadonlyMap<string, string> {
  return parseMacs(formatHolding(claim));
}

export function isLink(name: string): boolean {
  return name.startsWith(LINK_PREFIX);
}

/** The interface whose MAC address is kept for `mac-net1`; undefined: addresses are. */
export function linkedTo(name: string): string | undefined {
  return isLink(name) ? name.slice(LINK_PREFIX.length) : undefined;
}

function isKnown(pair: readonly [string, string | undefined]): pair is readonly [string, string] {
  return pair[1] !== undefined;
}

/** A name that stands for a link, which has a MAC address and nothing else, and what is asked for of it; in words, too. */
export interface MisusedLink {
  readonly of: "addresses" | "pools" | "any pool";
  readonly words: string;
}

export function misusedLink(asked: {
  readonly interfaces?: Interfaces | undefined;
  readonly interfacePools?: InterfacePools | undefined;
}): MisusedLink | undefined {
  const pooled = namesOf(asked.interfacePools ?? {}).find(isLink);
  if (pooled !== undefined) {
    const isAny = asked.interfacePools?.[pooled]?.length === 0;
    return { of: isAny ? "any pool" : "pools", words: noSuch(pooled, "address of a pool") };
  }
  for (const name of namesOf(asked.interfaces ?? {}).filter(isLink)) {
    const address = asked.interfaces?.[name]?.find((one) => macOfAddress(one) === undefined);
    if (address !== undefined) return { of: "addresses", words: noSuch(name, `address ${address}`) };
  }
  return undefined;
}

function noSuch(name: string, what: string): string {
  const link = name.slice(LINK_PREFIX.length);
  const advice = link === "" ? "give the interface another name" : `ask for it on ${quote(link)}`;
  return `interface ${quote(name)} stands for a MAC address and gets no ${what}; ${advice}`;
}

/** The interface for which one pod names several MAC addresses, of which a link has one. */
export function severalMacsOn(
  addresses: readonly Address[],
  interfaces: Interfaces | undefined,
): string | undefined {
  const link = namesOf(interfaces ?? {})
    .filter(isLink)
    .find((name) => addresses.filter((address) => interfaces?.[name]?.includes(address)).length > 1);
  return link && linkedTo(link);
}

/** An address that is a MAC address, and is asked for as one of IP. */
export function macAsAddress(
  addresses: readonly Address[],
  interfaces: Interfaces | undefined,
): Address | undefined {
  const links = namesOf(interfaces ?? {}).filter(isLink);
  const pinned = new Set(links.flatMap((name) => interfaces?.[name] ?? []));
  return addresses.find((address) => macOfAddress(address) !== undefined && !pinned.has(address));
}
