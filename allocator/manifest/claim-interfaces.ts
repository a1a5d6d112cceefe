// SPDX-License-Identifier: Apache-2.0
// `spec.request.interfaces` of a claim: which interface of its pod gets which address (ADR 0027).

import { type Refusal, refuse } from "../base/errors.ts";
import { quote } from "../base/validation.ts";
import { type Address, familyOf, parseAddress } from "../ip/address.ts";
import { type Interfaces, isInterfaceName, namesOf } from "../model/interfaces.ts";
import type { Fields } from "./kubernetes-object.ts";

const FIELD = "spec.request.interfaces";

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
  const own: Address[] = [];
  for (const one of list) {
    const address = typeof one === "string" ? parseAddress(one) : undefined;
    if (address === undefined) return bad(field, `has ${quote(one)}, which is not an IP address`);
    if (!addresses.includes(address)) return bad(field, `has ${address}, which spec.request.addresses lacks`);
    if (own.some((other) => familyOf(other) === familyOf(address)))
      return bad(field, "has two addresses of one family; an interface has one of each");
    own.push(address);
  }
  return own.length === 0 ? bad(field, "has no address; leave the interface out") : own;
}

function bad(field: string, why: string): Refusal {
  return refuse("REQUEST_INVALID", `${field} ${why}`, { field });
}
