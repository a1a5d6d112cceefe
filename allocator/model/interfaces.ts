// SPDX-License-Identifier: Apache-2.0
// Which interface of a pod gets which of its addresses (ADR 0027).

import { type Address, parseAddress } from "../ip/address.ts";

/** interface -> its addresses. Absent where none was named: then all are of whichever interface asks first. */
export type Interfaces = Readonly<Record<string, readonly Address[]>>;

/** interface -> names of pools as in `pools` of a request; of none, any pool that serves it. */
export type InterfacePools = Readonly<Record<string, readonly string[]>>;

/** What every runtime calls the interface that a pod has from its cluster's network. */
export const FIRST_INTERFACE = "eth0";

/** As the kernel takes it, and as it can stand in an annotation. */
const NAME = /^[a-zA-Z0-9][-a-zA-Z0-9._]{0,14}$/;

export function isInterfaceName(text: string): boolean {
  return NAME.test(text);
}

/** address -> its interface, made once for the lists of a workload, of which each pod is asked about. */
const places = new WeakMap<Interfaces, ReadonlyMap<Address, string>>();

/** Undefined: the address is of none. */
export function interfaceOf(interfaces: Interfaces, address: Address): string | undefined {
  let found = places.get(interfaces);
  if (found === undefined) {
    const all = namesOf(interfaces).flatMap((name) =>
      (interfaces[name] ?? []).map((one) => [one, name] as const),
    );
    found = new Map(all.toReversed()); // of one that is listed twice the first name counts
    places.set(interfaces, found);
  }
  return found.get(address);
}

/** What is said of the interface, which may be called `constructor`. */
export function saidOf<T>(byInterface: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return byInterface !== undefined && Object.hasOwn(byInterface, name) ? byInterface[name] : undefined;
}

export function namesOf(interfaces: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(interfaces).sort();
}

/** Of several pods' addresses, the interfaces of those of one. */
export function interfacesOf(
  interfaces: Interfaces | undefined,
  addresses: readonly Address[],
): Interfaces | undefined {
  if (interfaces === undefined) return undefined;
  const its = new Map<string, Address[]>(); // interface -> of this pod
  for (const address of addresses) {
    const name = interfaceOf(interfaces, address);
    if (name !== undefined) its.set(name, [...(its.get(name) ?? []), address]);
  }
  return Object.fromEntries(its);
}

/** Whether both say the same of every address. */
export function isSameInterfaces(one: Interfaces | undefined, other: Interfaces | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return wordsOf(one).join() === wordsOf(other).join();
}

function wordsOf(interfaces: Interfaces): readonly string[] {
  return namesOf(interfaces).flatMap((name) =>
    formatAddresses(interfaces[name]?.toSorted() ?? [], interfaces),
  );
}

/** A claim as far as its addresses are concerned. */
export interface Holding {
  readonly addresses: readonly Address[];
  readonly interfaces?: Interfaces;
  readonly request: { readonly interfaces?: Interfaces };
}

/** The interface of each address that the claim has: as it was chosen, or else as the request says. */
export function placesOf({ interfaces, request }: Omit<Holding, "addresses">): Interfaces | undefined {
  return interfaces ?? request.interfaces;
}

/** The addresses of the claim that the interface gets. Undefined: it names no interface, and the first that asks has all. */
export function addressesOn(holding: Holding, name: string): readonly Address[] | undefined {
  const { addresses } = holding;
  const interfaces = placesOf(holding);
  if (interfaces === undefined) return undefined;
  const its = saidOf(interfaces, name) ?? [];
  return addresses.filter((address) => its.includes(address));
}

/** As a pod is told what it has, and as people read it: `10.30.0.51@net1`, or the address alone where no interface was named. */
export function formatAddresses(
  addresses: readonly Address[],
  interfaces: Interfaces | undefined,
): readonly string[] {
  if (interfaces === undefined) return addresses;
  return addresses.map((address) => {
    const name = interfaceOf(interfaces, address);
    return name === undefined ? address : `${address}@${name}`;
  });
}

/** What a pod with the claim is assigned. */
export function formatHolding(holding: Holding): readonly string[] {
  return formatAddresses(holding.addresses, placesOf(holding));
}

/** Addresses assigned to a pod, and their interfaces. */
interface ParsedAddresses {
  readonly addresses: readonly Address[];
  readonly interfaces?: Interfaces;
}

/** What is no address counts for nothing. */
export function parseAddresses(words: readonly string[]): ParsedAddresses {
  const read = words.flatMap((word) => {
    const [text = "", name] = word.trim().split("@", 2);
    const address = parseAddress(text);
    return address === undefined ? [] : [{ address, name }];
  });
  const addresses = read.map(({ address }) => address);
  const named = read.filter((one): one is { address: Address; name: string } => one.name !== undefined);
  if (named.length === 0) return { addresses };
  const groups = Map.groupBy(named, ({ name }) => name);
  const interfaces = [...groups].map(([name, of]) => [name, of.map(({ address }) => address)] as const);
  return { addresses, interfaces: Object.fromEntries(interfaces) };
}
