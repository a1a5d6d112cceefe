// SPDX-License-Identifier: Apache-2.0
// MAC addresses of a pod's interfaces: `02:00:00:00:00:51,02:00:00:00:00:52@net1` (ADR 0031).

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { Address } from "../ip/address.ts";
import { addressOfMac, parseMac } from "../ip/mac.ts";
import type { Request } from "../model/address-request.ts";
import {
  LINK_PREFIX,
  type MisusedLink,
  macAsAddress,
  misusedLink,
  severalMacsOn,
} from "../model/interface-macs.ts";
import { FIRST_INTERFACE, isInterfaceName } from "../model/interfaces.ts";
import { bad, itemsOf, MAX_ENTRIES, quote } from "./annotation-values.ts";
import { MAX_INTERFACES, readEntriesOn } from "./interface-values.ts";
import { LONGEST_VALUE } from "./merged-request.ts";

export const IPS = "berth.dev/ips";
export const MAC = "berth.dev/mac";
/** Where such is asked for in Berth's own words. */
const ASKED_IN: Readonly<Record<MisusedLink["of"], string>> = {
  addresses: IPS,
  pools: "berth.dev/pools",
  "any pool": "berth.dev/sticky",
};

/** `berth.dev/ips` with the MAC addresses that stand beside it, entry by entry. */
export function readEntriesWithMacs(value: string, key: string, annotations: Labels): Request | Refusal {
  const macs = annotations[MAC];
  if (macs === undefined) return readEntriesOn(value, key);
  const own = itemsOf(value, key);
  if (isRefusal(own)) return own;
  const links = linksIn(macs, MAC);
  if (isRefusal(links)) return links;
  const uneven = own.length === links.length ? unevenRange(own, links, key) : undefined;
  if (uneven !== undefined) return uneven;
  if (own.length !== links.length) {
    const words = `it has ${links.length} entries, and ${key} ${own.length}; write both lists alike, with a range where the other has one`;
    return bad(MAC, words);
  }
  const alone = readEntriesOn(links.join(";"), MAC);
  if (isRefusal(alone)) return alone;
  return readEntriesOn(own.map((item, n) => `${item},${links[n] ?? ""}`).join(";"), key);
}

/** Of an entry that is for several pods: as many MAC addresses as there are addresses. */
function unevenRange(own: readonly string[], links: readonly string[], key: string): Refusal | undefined {
  for (const [n, item] of own.entries()) {
    if (!item.includes("-") && links[n]?.includes("-") !== true) continue;
    const [addresses, macs] = [readEntriesOn(item, key), readEntriesOn(links[n] ?? "", MAC)];
    if (isRefusal(addresses) || isRefusal(macs)) continue;
    const [pods, others] = [addresses.entries?.length, macs.entries?.length];
    if (pods === others) continue;
    return bad(
      MAC,
      `entry ${n + 1} has MAC addresses for ${others} pods, and ${key} addresses for ${pods}; write ranges of one length`,
    );
  }
  return undefined;
}

/** Beside `berth.dev/ips`, `readEntriesWithMacs` reads it; beside other words that ask for addresses it stands by itself, as those of peers do. */
export function readMacs(value: string, key: string, annotations: Labels): Request | Refusal {
  const links = linksIn(value, key);
  if (isRefusal(links)) return links;
  return annotations[IPS] === undefined ? readEntriesOn(links.join(";"), key) : {};
}

/** Each item as `berth.dev/ips` would have it. How much there is of it is looked at first: a review brings megabytes. */
function linksIn(value: string, key: string): readonly string[] | Refusal {
  if (value.length > LONGEST_VALUE) return bad(key, `it is longer than ${LONGEST_VALUE} characters`);
  if (/^[\s;]*$/.test(value))
    return bad(key, "it is empty; write a MAC address such as 02:00:00:00:00:51, or remove it");
  const items = itemsOf(value, key);
  if (isRefusal(items)) return items;
  if (items.length > MAX_ENTRIES) return bad(key, `it has more than ${MAX_ENTRIES} entries`);
  const links: string[] = [];
  for (const item of items) {
    const parts: string[] = [];
    const written = item.split(",", MAX_INTERFACES + 1);
    if (written.length > MAX_INTERFACES) return bad(key, `it names more than ${MAX_INTERFACES} interfaces`);
    for (const part of written) {
      const link = linkOf(part.trim(), key);
      if (typeof link !== "string") return link;
      parts.push(link);
    }
    links.push(parts.join(","));
  }
  return links;
}

/** `MAC`, or `MAC-MAC` of one maker's, `@interface` behind it. */
function linkOf(part: string, key: string): string | Refusal {
  const [text = "", name = FIRST_INTERFACE, ...more] = part.split("@", 3).map((one) => one.trim());
  const link = `${LINK_PREFIX}${name}`;
  if (more.length > 0 || !isInterfaceName(link))
    return bad(key, `${quote(part)} names no interface of up to 11 characters; write 02:00:00:00:00:52@net1`);
  const one = parseMac(text);
  const ends = one === undefined ? text.split("-", 3).map((end) => parseMac(end.trim())) : [one];
  const macs = ends.filter((end) => end !== undefined);
  const [first = "", last = first] = macs;
  if (macs.length !== ends.length || macs.length > 2)
    return bad(key, `${quote(part)} is no MAC address of an interface, such as 02:00:00:00:00:51`);
  if (first.slice(0, 8) !== last.slice(0, 8))
    return bad(key, `${quote(part)}: a range keeps its first three bytes; write several with ; between them`);
  return `${macs.map(addressOfMac).join("-")}@${link}`;
}

/** A MAC address that is asked for as an IP address, in whoever's words, or the other way round. */
function refuseMacsAsAddresses(
  request: Request,
  keyNaming: (address: Address) => string | undefined,
): Refusal | undefined {
  const misused = misusedLink(request);
  if (misused !== undefined) return bad(ASKED_IN[misused.of], misused.words);
  for (const [n, entry] of (request.entries ?? []).entries()) {
    const name = severalMacsOn(entry, request.interfaces);
    if (name !== undefined)
      return bad(
        MAC,
        `entry ${n + 1} has several MAC addresses for ${name}, which has one; write another interface behind each: 02:00:00:00:00:52@net1`,
      );
  }
  const address = macAsAddress((request.entries ?? []).flat(), request.interfaces);
  if (address === undefined) return undefined;
  return bad(
    keyNaming(address) ?? IPS,
    `${address} is a link-local address, which stands for a MAC address; write that into ${MAC}`,
  );
}

/** `keyNaming`: the annotation that names the address. */
export function checked(
  request: Request | Refusal,
  keyNaming: (address: Address) => string | undefined,
): Request | Refusal {
  return isRefusal(request) ? request : (refuseMacsAsAddresses(request, keyNaming) ?? request);
}
