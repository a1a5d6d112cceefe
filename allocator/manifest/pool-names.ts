// SPDX-License-Identifier: Apache-2.0
// Names of pools, as annotations have them.

import { isRefusal, type Refusal } from "../base/errors.ts";
import { type Family, parseCidr } from "../ip/address.ts";
import { type WrittenAddress, writtenAddress } from "../ip/written-address.ts";
import type { Request } from "../model/address-request.ts";
import { bad, quote, readPools } from "./annotation-values.ts";

/** RFC 1123, as these systems call their pools; what else is written there is a form that Berth does not read. */
const POOL_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/IPv[46])?$/;

/**
 * An address or a range is read as no name: a pool may be called so with that system, and whoever writes it may as well mean the
 * addresses. Where they are Berth's, the pod must not be let in without them.
 */
export function namedPools(names: readonly string[], key: string): Request | Refusal {
  for (const name of names) {
    const written = writtenAddress(name.trim());
    if (written !== undefined) return bad(key, notAName(key, name.trim(), written));
  }
  const read = readPools(names, key);
  if (isRefusal(read)) return read;
  const strange = read.pools?.find((name) => !POOL_NAME.test(name) && parseCidr(name) === undefined);
  return strange === undefined ? read : bad(key, `${quote(strange)} is no name of a pool${caseOf(strange)}`);
}

/** What such a list takes beside a name. */
const TAKES_ADDRESSES = /[/]ip_pool([.]|$)/;

function notAName(key: string, text: string, { is, asIps }: WrittenAddress): string {
  const isWhat = `${quote(text)} is ${is}`;
  if (asIps === undefined) return `${isWhat} and no name of a pool`;
  const isList = TAKES_ADDRESSES.test(key);
  if (isList && !asIps.includes("-")) return `${isWhat}, and no name of a pool; write ${quote(asIps)}`;
  const each = isList ? "write each address, with commas between them, or" : "write";
  return `${isWhat}, and no name of a pool; ${each} ${quote(asIps)} into berth.dev/ips`;
}

/** What names cannot have in them and may well be meant. */
function caseOf(name: string): string {
  if (name.includes("*")) return "; wildcards are not served: write the names, in the order of preference";
  return POOL_NAME.test(name.toLowerCase()) ? `; write ${quote(name.toLowerCase())}` : "";
}

/** `db/IPv4` or a CIDR; undefined: the name of a whole pool. */
export function familyOfPart(name: string): Family | undefined {
  if (name.endsWith("/IPv4")) return "IPv4";
  return name.endsWith("/IPv6") ? "IPv6" : parseCidr(name)?.family;
}

/** Of each pool the addresses of that family alone. */
export function partsOfFamily(names: readonly string[], family: Family): readonly string[] {
  return names.map((name) => (familyOfPart(name) === undefined ? `${name}/${family}` : name));
}
