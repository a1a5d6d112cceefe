// SPDX-License-Identifier: Apache-2.0
import { nearestWord } from "../../allocator/base/nearest-word.ts";
import { type CniError, cniError } from "./errors.ts";
import type { Fields } from "./json-fields.ts";

export const RANGE_KEYS: readonly string[] = ["subnet", "rangeStart", "rangeEnd", "gateway"];
export const ADDRESS_KEYS: readonly string[] = ["address", "gateway"];
export const IPAM_KEYS: readonly string[] = [
  ...["type", "dataDir", "pools", "ranges", "addresses", "routes", "dns", "resolvConf", "etcdConfig"],
  ...RANGE_KEYS,
];

/** host-local and cni-ipam-etcd take it, and go by the network's name instead. */
const WITHOUT_MEANING: readonly string[] = ["name"];

/** What other IPAM plugins call the same, by what Berth has for it. */
const INSTEAD: readonly (readonly [RegExp, string])[] = [
  [
    /exclu|omit|reserv/,
    "leave the addresses out with rangeStart and rangeEnd, or make a pool, whose ranges have exclude, and name it in ipam.pools",
  ],
  [
    /^(?:node_slice|enable_overlapping|overlapping_ranges)/,
    "a pool serves all nodes; make one, and name it in ipam.pools",
  ],
  [/^(?:ip)?ranges?(?:_start|_end)?$/, "write ranges, subnet, rangeStart and rangeEnd as for host-local"],
  [/pool/, "write the names of pools into ipam.pools"],
  [/etcd/, "write ipam.etcdConfig, as for cni-ipam-etcd"],
  [
    /static|^addr|^assign|^ips?$|^ipv[46]$|^ipam/,
    "write ipam.addresses as for static, or annotate the pod with berth.dev/ips",
  ],
];

/** It may decide which address a pod gets, whoever's it is. */
const ABOUT_ADDRESSES =
  /range|addr|pool|subnet|network_name|cidr|exclu|omit|reserv|static|alloc|slice|etcd|^assign|^ips?$|^ipv?[46]$|^gw$|gateway/;

/**
 * A key that Berth does not read, and that would decide on addresses: without it pods would get others than was meant. Either it is nearly
 * one of Berth's, or another plugin's.
 */
export function misreadKey(fields: Fields, known: readonly string[], plugin = "berth"): CniError | undefined {
  for (const key of unreadKeys(fields, known)) {
    const near = nearestWord(key, known);
    if (near !== undefined)
      return invalid(`${fields.nameOf(key)} is no field of ${plugin}'s; did you mean ${near}?`);
    const lower = key.toLowerCase();
    if (!ABOUT_ADDRESSES.test(lower)) continue;
    if (plugin !== "berth")
      return invalid(
        `${fields.nameOf(key)} is no field of ${plugin}'s that berth knows; berth's own go with "type": "berth"`,
      );
    const advice = INSTEAD.find(([form]) => form.test(lower))?.[1] ?? `known here: ${known.join(", ")}`;
    return invalid(`${fields.nameOf(key)} is no field of berth's; ${advice}`);
  }
  return undefined;
}

/** Keys that mean nothing here. Those that are not misread are ignored, as host-local ignores them, and told in the log. */
export function unreadKeys(fields: Fields, known: readonly string[]): readonly string[] {
  const all = new Set([...known, ...WITHOUT_MEANING].map((key) => key.toLowerCase()));
  return fields.keys.filter((key) => !all.has(key.toLowerCase()));
}

function invalid(msg: string): CniError {
  return cniError("INVALID_CONFIG", msg);
}
