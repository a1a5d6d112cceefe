// SPDX-License-Identifier: Apache-2.0
// MAC addresses in other systems' words go with what a pod asks for on the same interface, in whoever's words.

import { isRefusal, type Refusal } from "../base/errors.ts";
import { macOfAddress } from "../ip/mac.ts";
import type { Request } from "../model/address-request.ts";
import { linkedTo, misusedLink } from "../model/interface-macs.ts";
import { FIRST_INTERFACE, type Interfaces, namesOf, saidOf } from "../model/interfaces.ts";
import { bad } from "./annotation-values.ts";

/** By itself a MAC address is no request: it says more about one. */
export function asksOnlyMacs(request: Request): boolean {
  const { interfaces, pools, interfacePools, sticky } = request;
  const isAsking = pools !== undefined || interfacePools !== undefined || sticky === true;
  // what is no MAC address is refused by whoever reads on
  return interfaces !== undefined && !isAsking && isOfLinks(interfaces) && misusedLink(request) === undefined;
}

function isOfLinks(interfaces: Interfaces): boolean {
  return namesOf(interfaces).every((name) => linkedTo(name) !== undefined);
}

/** Without them where nothing else is asked for. What is only to be kept is of the first interface beside them. */
export function placeMacs(request: Request): Request {
  const { entries: _, interfaces = {}, fromOrdinalZero: __, ...rest } = request;
  if (asksOnlyMacs(request)) return rest;
  const isSticky = request.sticky === true && request.pools === undefined;
  if (!isSticky || request.interfacePools !== undefined || namesOf(interfaces).length === 0) return request;
  return isOfLinks(interfaces) ? { ...request, interfacePools: { [FIRST_INTERFACE]: [] } } : request;
}

/**
 * A MAC address that is pinned on an interface for which nothing asks for an address: its agent would look for both in the claim, and find
 * one (ADR 0031). `key` is the annotation that names it, so far as is known.
 */
export function addressedMacs(request: Request | Refusal, key: string): Request | Refusal {
  if (isRefusal(request)) return request;
  const { interfaces = {}, interfacePools = {} } = request;
  const link = namesOf(interfaces).find((one) => {
    const name = linkedTo(one);
    const isAddressed = [interfaces, interfacePools].some(
      (of) => saidOf<unknown>(of, name ?? "") !== undefined,
    );
    return name !== undefined && !isAddressed;
  });
  if (link === undefined || misusedLink(request) !== undefined) return request;
  const [mac = ""] = (interfaces[link] ?? []).map(macOfAddress);
  const name = linkedTo(link) ?? "";
  const words = `MAC address ${mac} is pinned on ${name}, for which nothing asks for an address; write one into berth.dev/ips, or a pool into berth.dev/pools: NAME@${name}`;
  return bad(key, words);
}
