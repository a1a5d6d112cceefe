// SPDX-License-Identifier: Apache-2.0
// How other systems write MAC addresses of a pod. Each is kept as an address of the interface's link (ADR 0031).

import { isRefusal } from "../base/errors.ts";
import type { Request } from "../model/address-request.ts";
import { LINK_PREFIX } from "../model/interface-macs.ts";
import { FIRST_INTERFACE } from "../model/interfaces.ts";
import { type DialectReader, entriesIn, ordinalList } from "./dialect-values.ts";
import { macAddress } from "./network-values.ts";

/** Of the pod's first interface. */
export const readMacWord: DialectReader = (value, key) => readMacOn(value, key, FIRST_INTERFACE);

export function readMacOn(value: string, key: string, name: string): ReturnType<DialectReader> {
  const address = macAddress(value, name, key);
  return isRefusal(address) ? address : onLink({ entries: [[address]] }, name);
}

/** `m1,m2`, by the last number of the pods' names. */
export const readMacList: DialectReader = (value, key) => {
  const read = ordinalList(entriesIn(value, ","), key, (item) => {
    const address = macAddress(item, FIRST_INTERFACE, key);
    return isRefusal(address) ? address : [[address]];
  });
  return isRefusal(read) ? read : onLink(read, FIRST_INTERFACE);
};

function onLink(request: Request, name: string): Request {
  return { ...request, interfaces: { [`${LINK_PREFIX}${name}`]: (request.entries ?? []).flat() } };
}
