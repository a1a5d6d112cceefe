// SPDX-License-Identifier: Apache-2.0
// What a pod has in place of an address that it names (`berth.dev/fallback: any`), where Multus reads the addresses of its networks: it says
// them to the plugin, which would be told another one than the pod has.

import type { Labels } from "../base/ports.ts";
import { type Address, familyOf } from "../ip/address.ts";
import { FIRST_INTERFACE, type Interfaces, saidOf } from "../model/interfaces.ts";
import { IPS, MAC } from "./mac-values.ts";
import { NETWORK_ANNOTATIONS, withElements } from "./network-attachments.ts";
import { addressOf } from "./network-values.ts";

/** What the pod was given, or asked for by name, and the interface of each where it names any. */
export interface OfPod {
  readonly addresses: readonly Address[];
  readonly interfaces?: Interfaces | undefined;
}

/**
 * The annotations that change: elements with `ips` have those that their interface was given. What they asked for stays in `berth.dev/ips`, unless
 * something stands there, so that whoever comes again under the name asks for the same. Not what they had of an earlier pod, whose request
 * stands in other words.
 */
export function withGivenIps(annotations: Labels, wanted: OfPod, given: OfPod): Labels {
  const changed: Record<string, string> = {};
  const asked: string[] = [];
  for (const key of NETWORK_ANNOTATIONS) {
    const next = withElements(key, annotations[key], ({ interface: name, item }) => {
      const named = item.ips.map(addressOf);
      const has = on(given, name);
      if (named.length === 0 || has.length === 0) return undefined;
      if (named.every((one) => one !== undefined && has.includes(one))) return undefined;
      const requested = on(wanted, name);
      asked.push(...named.flatMap((one) => (one && requested.includes(one) ? [`${one}@${name}`] : [])));
      return { ...item.json, ips: has.map((address) => `${address}${lengthIn(item.ips, address)}`) };
    });
    if (next !== undefined) changed[key] = next;
  }
  const isSaid = annotations[IPS] !== undefined || annotations[MAC] !== undefined;
  return asked.length === 0 || isSaid ? changed : { ...changed, [IPS]: asked.join(",") };
}

function on({ addresses, interfaces }: OfPod, name: string): readonly Address[] {
  const own = interfaces === undefined && name === FIRST_INTERFACE ? addresses : saidOf(interfaces, name);
  return own?.filter((address) => addresses.includes(address)) ?? [];
}

/** The length of the prefix is the network's: it stays. */
function lengthIn(ips: readonly unknown[], address: Address): string {
  const like = ips.find((ip) => {
    const one = addressOf(ip);
    return one !== undefined && familyOf(one) === familyOf(address);
  });
  return typeof like === "string" ? (/\/\d+$/.exec(like)?.[0] ?? "") : "";
}
