// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { ANNOTATION_FORMATS, IPS, POOLS } from "./annotations.ts";

/** What becomes of a pod that asks another system for an address, in words that Berth does not read. */
export const FOREIGN_CHOICES = ["warn", "refuse", "ignore"] as const;
export type ForeignChoice = (typeof FOREIGN_CHOICES)[number];

interface ForeignKey {
  readonly system: string;
  readonly key: string;
  /** What to write for Berth. */
  readonly instead: string;
}

const keysOf = (system: string, instead: string, ...keys: readonly string[]): readonly ForeignKey[] =>
  keys.map((key) => ({ system, key, instead }));

/**
 * Annotations that ask for an address or a pool, and that Berth does not read (those that it reads are in `ANNOTATION_FORMATS`). The
 * webhook configurations repeat them.
 */
export const FOREIGN_KEYS: readonly ForeignKey[] = [
  ...keysOf("Calico", IPS, "cni.projectcalico.org/ipAddrsNoIpam"),
  ...keysOf("kube-ovn", IPS, "ovn.kubernetes.io/ip_address", "ovn.kubernetes.io/ip_pool"),
  ...keysOf("kube-ovn", POOLS, "ovn.kubernetes.io/logical_switch"),
  ...keysOf("Antrea", POOLS, "ipam.antrea.io/ippools"),
  ...keysOf("Antrea", IPS, "ipam.antrea.io/pod-ips"),
  ...keysOf(
    "Spiderpool",
    POOLS,
    "ipam.spidernet.io/ippool",
    "ipam.spidernet.io/ippools",
    "ipam.spidernet.io/subnet",
    "ipam.spidernet.io/subnets",
  ),
  ...keysOf("HybridNet", IPS, "networking.alibaba.com/ip-pool"),
  ...keysOf(
    "HybridNet",
    POOLS,
    "networking.alibaba.com/specified-network",
    "networking.alibaba.com/specified-subnet",
  ),
  ...keysOf(
    "Cilium",
    POOLS,
    "ipam.cilium.io/ip-pool",
    "ipam.cilium.io/ipv4-pool",
    "ipam.cilium.io/ipv6-pool",
  ),
  ...keysOf("static-ipam", IPS, "static-ipam.ipv4"),
  ...keysOf("kube-ipam", IPS, "kube-ipam.ip"),
];

/**
 * Which requests in Calico's words are for Berth: those for its pools, and others are Calico's matter; every one, as if it was
 * written in Berth's; or none, they are not read.
 */
export const CALICO_CHOICES = ["own", "all", "none"] as const;
export type CalicoChoice = (typeof CALICO_CHOICES)[number];

/** The keys of other systems that Berth reads. */
export const CALICO_KEYS: readonly string[] = ANNOTATION_FORMATS.filter(
  ({ system }) => system === "Calico",
).map(({ key }) => key);

/** Not read, if so chosen. */
const CALICO_UNREAD: readonly ForeignKey[] = CALICO_KEYS.map((key) => ({
  system: "Calico",
  key,
  instead: key.endsWith("pools") ? POOLS : IPS,
}));

export function withoutCalico(annotations: Labels): Labels {
  if (!CALICO_KEYS.some((key) => annotations[key] !== undefined)) return annotations;
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => !CALICO_KEYS.includes(key)));
}

/** On a namespace, for its pods. What a system writes there itself, as kube-ovn does, asks for nothing. */
export const FOREIGN_NAMESPACE_KEYS: readonly ForeignKey[] = [
  ...CALICO_UNREAD.filter(({ instead }) => instead === POOLS),
  ...keysOf("Antrea", POOLS, "ipam.antrea.io/ippools"),
  ...keysOf(
    "Spiderpool",
    POOLS,
    "ipam.spidernet.io/default-ipv4-ippool",
    "ipam.spidernet.io/default-ipv6-ippool",
  ),
  ...FOREIGN_KEYS.filter(({ system }) => system === "Cilium"),
];

/** Multus' list of a pod's further interfaces. */
export const NETWORKS = "k8s.v1.cni.cncf.io/networks";
/** Of kube-ovn for further interfaces: `NAD.NAMESPACE.kubernetes.io/ip_address`, and `.INTERFACE` behind it. */
const OF_INTERFACE = /^[^/]{1,253}\.kubernetes\.io\/ip_(?:address|pool)(?:\.|$)/;
const LONGEST = 120;

/** What each of a pod's annotations would have to be for Berth, in one line each. */
export function foreignRequests(annotations: Labels, calico: CalicoChoice = "all"): string[] {
  const keys = calico === "none" ? [...CALICO_UNREAD, ...FOREIGN_KEYS] : FOREIGN_KEYS;
  const told = unread(keys, annotations);
  const known = new Set(FOREIGN_KEYS.map(({ key }) => key));
  const further = Object.keys(annotations).find((key) => !known.has(key) && OF_INTERFACE.test(key));
  if (further !== undefined) {
    const shown = further.length > LONGEST ? `${further.slice(0, LONGEST)}...` : further;
    told.push(`annotation ${shown} is kube-ovn's, for a further interface, and berth does not read it`);
  }
  if (asksForInterface(annotations[NETWORKS])) {
    told.push(
      `the ips in annotation ${NETWORKS} are for the plugins of further interfaces, and berth reserves none of them; write ${IPS} for an address of the pod's first interface`,
    );
  }
  return told;
}

/** The same of a namespace, whose pods would be given addresses by another system. */
export function foreignDefaults(annotations: Labels): string[] {
  return unread(FOREIGN_NAMESPACE_KEYS, annotations);
}

function unread(keys: readonly ForeignKey[], annotations: Labels): string[] {
  return keys
    .filter(({ key }) => annotations[key] !== undefined)
    .map(
      ({ system, key, instead }) =>
        `annotation ${key} is ${system}'s, and berth does not read it; write ${instead} for an address of berth's`,
    );
}

/** Only the JSON form has addresses; what is no JSON is Multus' to refuse. */
function asksForInterface(value: string | undefined): boolean {
  return value?.trimStart().startsWith("[") === true && /"ips"\s*:\s*\[\s*"/.test(value);
}

/** The same as the administrator wants it: as warnings, or as a refusal. */
export function judgeForeign(told: readonly string[], choice: ForeignChoice): readonly string[] | Refusal {
  if (choice === "ignore") return [];
  const [first] = told;
  if (choice === "warn" || first === undefined) return told;
  return refuse("REQUEST_INVALID", `${first}${first.includes("; ") ? ", or" : ";"} remove it`);
}
