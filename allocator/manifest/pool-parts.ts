// SPDX-License-Identifier: Apache-2.0
// The addresses of one family of a pool, as requests name them.

import { type Family, parseCidr } from "../ip/address.ts";

/** `db/IPv4` or a CIDR; undefined: the name of a whole pool. */
export function familyOfPart(name: string): Family | undefined {
  if (name.endsWith("/IPv4")) return "IPv4";
  return name.endsWith("/IPv6") ? "IPv6" : parseCidr(name)?.family;
}

/** Of each pool the addresses of that family alone. */
export function partsOfFamily(names: readonly string[], family: Family): readonly string[] {
  return names.map((name) => (familyOfPart(name) === undefined ? `${name}/${family}` : name));
}
