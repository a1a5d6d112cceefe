// SPDX-License-Identifier: Apache-2.0
// `spec.request.interfaces` of a claim: which interface of its pod gets which address (ADR 0027).

import { type Refusal, refuse } from "../base/errors.ts";
import { quote } from "../base/validation.ts";
import { type Address, parseAddress } from "../ip/address.ts";
import { misusedLink } from "../model/interface-macs.ts";
import { type InterfacePools, type Interfaces, isInterfaceName, namesOf } from "../model/interfaces.ts";
import { MAX_ADDRESSES, MAX_INTERFACES } from "./interface-values.ts";
import type { Fields } from "./kubernetes-object.ts";

const FIELD = "spec.request.interfaces";
/** As in the schema: a claim that did not pass it costs no more. */
export const MAX_POOLS_OF_CLAIM = 256;

/** Undefined: there is none. Every address is of exactly one interface, so that nobody has to guess about the rest. */
export function readInterfaces(
  request: Fields,
  addresses: readonly Address[],
): Interfaces | Refusal | undefined {
  const value = request.get("interfaces") ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value !== "object" || Array.isArray(value))
    return bad(FIELD, `takes addresses by interface, such as {net1: [10.30.0.51]}, not ${quote(value)}`);
  const interfaces: Record<string, readonly Address[]> = {};
  const said = Object.entries(request.at("interfaces").value);
  if (said.length > MAX_INTERFACES) return bad(FIELD, `has more than ${MAX_INTERFACES} interfaces`);
  for (const [name, list] of said) {
    const own = readOf(name, list, addresses);
    if (!Array.isArray(own)) return own;
    interfaces[name] = own;
  }
  const placed = namesOf(interfaces).flatMap((name) => interfaces[name] ?? []);
  const twice = placed.find((address, at) => placed.indexOf(address) !== at);
  if (twice !== undefined) return bad(FIELD, `has ${twice} twice; an address is of one interface`);
  const missing = addresses.find((address) => !placed.includes(address));
  if (missing !== undefined) return bad(FIELD, `says no interface of ${missing}; give each address one`);
  return interfaces;
}

function readOf(name: string, list: unknown, addresses: readonly Address[]): Address[] | Refusal {
  const field = `${FIELD}.${name.slice(0, 60)}`;
  if (!isInterfaceName(name)) return bad(field, "is not the name of an interface, such as net1");
  if (!Array.isArray(list)) return bad(field, `takes a list, not ${quote(list)}`);
  if (list.length > MAX_ADDRESSES) return bad(field, `has more than ${MAX_ADDRESSES} addresses`);
  const own: Address[] = [];
  for (const one of list) {
    const address = typeof one === "string" ? parseAddress(one) : undefined;
    if (address === undefined) return bad(field, `has ${quote(one)}, which is not an IP address`);
    if (!addresses.includes(address)) return bad(field, `has ${address}, which spec.request.addresses lacks`);
    own.push(address);
  }
  return own.length === 0 ? bad(field, "has no address; leave the interface out") : own;
}

const POOLS_FIELD = "spec.request.interfacePools";

/** Names of pools by interface; undefined: there are none. */
export function readInterfacePools(
  request: Fields,
  said: {
    readonly addresses: readonly Address[];
    readonly interfaces: Interfaces | undefined;
    readonly pools: readonly string[];
  },
): InterfacePools | Refusal | undefined {
  const value = request.get("interfacePools") ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value !== "object" || Array.isArray(value))
    return bad(POOLS_FIELD, `takes pools by interface, such as {net1: [web]}, not ${quote(value)}`);
  if (said.pools.length > 0)
    return bad(POOLS_FIELD, "cannot stand beside spec.request.pools; write those as {eth0: [db]}");
  if (said.addresses.length > 0 && said.interfaces === undefined)
    return bad(
      POOLS_FIELD,
      "needs the interfaces of spec.request.addresses, such as interfaces: {eth0: [10.20.0.51]}",
    );
  const entries = Object.entries(request.at("interfacePools").value);
  // each is planned by itself, beside what the others keep
  if (entries.length > MAX_INTERFACES) return bad(POOLS_FIELD, `has more than ${MAX_INTERFACES} interfaces`);
  const wrong = entries.find(([name]) => !isInterfaceName(name));
  if (wrong !== undefined)
    return bad(`${POOLS_FIELD}.${wrong[0].slice(0, 60)}`, "is not the name of an interface, such as net1");
  const misused = misusedLink({ interfacePools: request.at("interfacePools").value as InterfacePools });
  if (misused !== undefined) return bad(`${POOLS_FIELD}:`, misused.words);
  const long = entries.find(([, list]) => Array.isArray(list) && list.length > MAX_POOLS_OF_CLAIM);
  if (long !== undefined)
    return bad(`${POOLS_FIELD}.${long[0]}`, `has more than ${MAX_POOLS_OF_CLAIM} pools`);
  const other = entries.find(([, list]) => !isNames(list));
  if (other !== undefined)
    return bad(`${POOLS_FIELD}.${other[0]}`, `takes a list of names of pools, not ${quote(other[1])}`);
  return entries.length === 0
    ? bad(POOLS_FIELD, "names no interface; leave it out")
    : (Object.fromEntries(entries) as InterfacePools);
}

function isNames(list: unknown): boolean {
  return Array.isArray(list) && list.every((one) => typeof one === "string" && one !== "");
}

function bad(field: string, why: string): Refusal {
  return refuse("REQUEST_INVALID", `${field} ${why}`, { field });
}
