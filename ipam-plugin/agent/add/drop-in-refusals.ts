// SPDX-License-Identifier: Apache-2.0
// What a pod is told whose network was written for another IPAM plugin, in the words of that one.

import { type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { bitsOf, FAMILIES, type Family } from "../../../allocator/ip/address.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { DropIn, Want } from "../../cni/drop-in.ts";

/** Where a plugin's networks name pools. */
const LISTS: Readonly<Record<string, string>> = {
  antrea: "ipam.ippools",
  spiderpool: "ipam.default_ipv4_ippool or default_ipv6_ippool",
  "calico-ipam": "ipam.ipv4_pools or ipv6_pools",
};

/** Where a configuration names these pools; of none, where it names any. */
export function fieldsOf(dropIn: DropIn | undefined, names: readonly string[] = []): string {
  if (dropIn === undefined) return "ipam.pools";
  const naming = wantsOf(dropIn, names);
  const fields = (naming.length > 0 ? naming : dropIn.wants).map(({ field }) => field);
  return [...new Set(fields)].join(" and ");
}

function wantsOf({ wants }: DropIn, names: readonly string[]): readonly Want[] {
  return wants.filter(({ of }) => of.some((one) => typeof one === "string" && names.includes(one)));
}

/** Families of the pools that the configuration means. */
export function familiesOf(pools: readonly Pool[], dropIn: DropIn | undefined): readonly Family[] {
  const meant = dropIn?.families ?? FAMILIES;
  return meant.filter((family) => pools.some((pool) => pool.families.includes(family)));
}

/** A size for pods that ask for nothing: one address at a time, as other plugins give them. */
export function singlesOf(families: readonly Family[]): string {
  return `{${families.map((family) => `${family.toLowerCase()}: ${bitsOf(family)}`).join(", ")}}`;
}

/** For a pod that asks for nothing, where no pool gives such pods addresses; `pools` are all that there are. */
export function uncutForDropIn(
  dropIn: DropIn,
  { network, names }: { readonly network: string; readonly names: readonly string[] },
  pools: readonly Pool[],
): Refusal {
  const { type } = dropIn;
  const there = pools.filter(({ name }) => names.includes(name));
  const missing = names.filter((name) => !there.some((pool) => pool.name === name));
  if (missing.length > 0) return missingForDropIn(dropIn, { network, missing }, there);
  const size = `blockSize: ${singlesOf(there.length > 0 ? familiesOf(there, dropIn) : (dropIn.families ?? FAMILIES))}`;
  if (there.length === 0) {
    const fields = fieldsOf(dropIn) || `a network without ${LISTS[type] ?? "pools"}`;
    const words = `network ${network}: no pool serves ${fields} of type ${type}; make an IPPool with networks: [${network}] and ${size}`;
    return refuse("POOL_UNKNOWN", words);
  }
  const meant = `which ${fieldsOf(dropIn, names)} of type ${type} means`;
  const words = `network ${network}: pool ${quoted(names)}, ${meant}, gives addresses by request alone; make it with ${size}, or write berth.dev/pools into the pod`;
  return refuse("POOL_UNKNOWN", words);
}

function missingForDropIn(
  dropIn: DropIn,
  { network, missing }: { readonly network: string; readonly missing: readonly string[] },
  there: readonly Pool[],
): Refusal {
  const wanted = wantsOf(dropIn, missing);
  const families = FAMILIES.filter((one) => wanted.some(({ family = one }) => family === one));
  const names = `which ${fieldsOf(dropIn, missing)} of type ${dropIn.type} names`;
  const beside = there.map(({ name }) => name);
  const uncut = there.length === 0 ? "" : `, and pool ${quoted(beside)} gives addresses by request alone`;
  const one = missing.length === 1 ? "an IPPool of that name" : "IPPools of those names";
  const words = `network ${network}: there is no pool ${quoted(missing)}, ${names}${uncut}; make ${one} with blockSize: ${singlesOf(families)}, or name another`;
  return refuse("POOL_UNKNOWN", words, { pool: missing.join(",") });
}

/** For a pod that has not asked at admission, where nobody else gets an address. */
export function notAnnotated({ type, annotation = "" }: DropIn, pools: readonly string[]): Refusal {
  const words = `type ${type} gives a pod the address that its annotation ${annotation} names, and this one has none; write an address of pool ${quoted(pools)} into it`;
  return refuse("CLAIM_MISSING", words);
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(", ");
}
