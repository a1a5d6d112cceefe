// SPDX-License-Identifier: Apache-2.0
// Which pools serve a network whose configuration was written for another IPAM plugin.

import { BerthError, isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { FAMILIES, type Family, fromNumber } from "../../../allocator/ip/address.ts";
import {
  contains,
  formatInterval,
  type Interval,
  intersection,
  merge,
  without,
} from "../../../allocator/ip/ip-range.ts";
import { intervalsOf, type Pool, unavailableByDefault } from "../../../allocator/pool/pool.ts";
import type { PoolChoice } from "../../../allocator/pool/pool-choice.ts";
import { servesNetwork } from "../../../allocator/pool/pool-networks.ts";
import type { DropIn, Want, WantedNetwork } from "../../cni/drop-in.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { familiesOf, fieldsOf, singlesOf } from "./drop-in-refusals.ts";

/** The request with the pools that its configuration means. Throws NOT_READY as long as pools may be there that are not known. */
export function withDropIn(addRequest: AddRequest, services: AgentServices): AddRequest | Refusal {
  const { network } = addRequest.scope;
  const ipam = servedIpam(network, addRequest.ipam, services);
  if (!isRefusal(ipam)) {
    // nobody calls STATUS for networks of CNI before 1.1.0
    warningsOfPools(network, ipam, services);
    return ipam === addRequest.ipam ? addRequest : { ...addRequest, ipam };
  }
  if (services.blockFollower.knowsPools) {
    services.networkWarnings.unserved(network, ipam.message);
    return ipam;
  }
  throw new BerthError("NOT_READY", "which pools there are is not known on this node yet; try again");
}

type Known = Pick<AgentServices, "blockFollower" | "networkWarnings" | "pools" | "sharedNetworks">;

/** Names of pools in a configuration that are no pools'; the log is told of them, once, and where the others serve no pod that asks for nothing. */
export function warningsOfPools(network: string, ipam: IpamConfig, services: Known): readonly string[] {
  const { blockFollower, networkWarnings, pools } = services;
  const names = ipam.pools;
  const there = names.length === 0 ? undefined : new Set([...pools()].map(({ name }) => name));
  const missing = names.filter((name) => !there?.has(name) && blockFollower.hasBlocks(name) === false);
  networkWarnings.missing(network, missing, fieldsOf(ipam.dropIn, missing));
  const uncut = uncutOf(ipam, services);
  networkWarnings.uncut(network, {
    names: uncut.map(({ name }) => name),
    size: singlesOf(familiesOf(uncut, ipam.dropIn)),
    isOneHost: blockFollower.makesBlocks,
  });
  return missing;
}

/** The pools that a network names, where none of them says whether it has blocks: whoever made them may have thought of it as little. */
function uncutOf({ pools, dropIn, etcd, rangeSets, addresses }: IpamConfig, services: Known): Pool[] {
  const isOfEtcd =
    services.sharedNetworks?.hasOwn === true || (etcd !== undefined && services.sharedNetworks !== undefined);
  if (isOfEtcd || dropIn?.annotation !== undefined || rangeSets.length + addresses.length > 0) return [];
  const named = pools.flatMap((name) => services.blockFollower.pool(name) ?? []);
  return named.every(({ spec }) => spec.blockSize === undefined) ? named : [];
}

/** The same of a configuration alone. */
export function servedIpam(
  network: string,
  ipam: IpamConfig,
  { sharedNetworks, pools }: Pick<AgentServices, "sharedNetworks" | "pools">,
): IpamConfig | Refusal {
  const { dropIn, etcd, ...rest } = ipam;
  if (dropIn === undefined || (etcd !== undefined && sharedNetworks !== undefined)) return ipam;
  if (sharedNetworks?.hasOwn === true) {
    const words = `network ${network}: ipam.type ${dropIn.type} is served of a cluster's pools, or of those of a single host; hosts that share an etcd take type etcd, or berth with ipam.pools`;
    return refuse("REQUEST_INVALID", words);
  }
  const found = poolsOfDropIn(dropIn, network, [...pools()]);
  return isRefusal(found) ? found : { ...rest, dropIn, pools: found, rangeSets: [] };
}

/** Names of the pools, of each family in the order in which they serve; none: whichever serve the pod. Same pools in, same answer out. */
export function poolsOfDropIn(
  { type, wants }: DropIn,
  network: string,
  pools: readonly Pool[],
): readonly string[] | Refusal {
  const ordered = pools.toSorted((a, b) => b.priority - a.priority || (a.name < b.name ? -1 : 1));
  const meant = new Map<Want, readonly string[]>(); // want -> names of pools
  for (const want of wants) {
    const names = want.of.flatMap((one) =>
      typeof one === "string"
        ? one
        : ordered.filter((pool) => whyNot(pool, one, network) === undefined).map(({ name }) => name),
    );
    if (names.length === 0) return noPool(type, want, { network, pools: ordered });
    meant.set(want, names);
  }
  const all = [...new Set([...meant.values()].flat())];
  return strayFamily(meant, ordered) ?? all;
}

/** A pool of both families that was meant for one of them only would give the other, too. */
function strayFamily(
  meant: ReadonlyMap<Want, readonly string[]>,
  pools: readonly Pool[],
): Refusal | undefined {
  for (const [{ family, field }, names] of meant) {
    const other = [...meant].find(([want]) => want.family !== undefined && want.family !== family);
    if (family === undefined || other === undefined) continue;
    const [want, theirs] = other;
    const stray = pools.find(
      (pool) =>
        names.includes(pool.name) &&
        want.family !== undefined &&
        pool.families.includes(want.family) &&
        !theirs.includes(pool.name),
    );
    if (stray === undefined) continue;
    const words = `pool "${stray.name}" of ${field} has ${want.family ?? ""} addresses, too, and ${want.field} means other pools; make a pool of ${family} alone, or name it in both`;
    return refuse("POOL_FORBIDDEN", words, { pool: stray.name });
  }
  return undefined;
}

/** Why the pool gives what was not meant; undefined: it serves. */
function whyNot(pool: Pool, wanted: WantedNetwork, network: string): string | undefined {
  const { family } = wanted.cidr;
  const ranges = pool.ranges.filter((range) => range.family === family);
  if (ranges.length === 0) return `has no ${family} range`;
  if (servesNetwork(pool, network) === "no")
    return `is for networks ${(pool.spec.networks ?? []).slice(0, 5).join(", ")}`;
  const given = without(merge(intervalsOf(pool, family)), unavailableByDefault(pool, family));
  const stray = without(given, merge(wanted.open)).at(0);
  if (stray !== undefined) return `has ${formatInterval({ family, interval: stray })} besides`;
  const other =
    wanted.isWhole === true ? ranges.find(({ cidr }) => cidr.text !== wanted.cidr.text) : undefined;
  if (other !== undefined) return `has the network ${other.cidr.text}`;
  const { gateway } = wanted;
  const led = gateway === undefined ? undefined : ranges.find((range) => range.gateway !== gateway);
  return led === undefined ? undefined : `has ${led.gateway ? `the gateway ${led.gateway}` : "no gateway"}`;
}

/** What to make, as it would be written, and why a pool that there is does not do. */
function noPool(
  type: string,
  want: Want,
  { network, pools }: { readonly network: string; readonly pools: readonly Pool[] },
): Refusal {
  const networks = want.of.filter((one) => typeof one !== "string");
  const ranges = networks.map(rangeWords).join(", ");
  const near = pools.flatMap((pool) => {
    const one = networks.find((wanted) => isNear(pool, wanted));
    const why = one && whyNot(pool, one, network);
    return why === undefined ? [] : [`pool "${pool.name}" ${why}`];
  });
  const some = near.length === 0 ? "" : ` (${near.slice(0, 3).join("; ")})`;
  const families = FAMILIES.filter((family) => networks.some(({ cidr }) => cidr.family === family));
  const words = `network ${network}: no pool has what ${want.field} of type ${type} means${some}; make an IPPool with ranges: [${ranges}], networks: [${network}] and blockSize: ${singlesOf(families)}`;
  return refuse("POOL_UNKNOWN", words);
}

function rangeWords({ cidr, open, from, to, exclude = [], gateway }: WantedNetwork): string {
  const [first, last] = [open.at(0)?.first ?? cidr.base, open.at(-1)?.last ?? cidr.base];
  const ends = { from: from ?? fromNumber(first, cidr.family), to: to ?? fromNumber(last, cidr.family) };
  const isAll = contains({ first, last }, cidr.base);
  const holes = exclude.length === 0 ? "" : `, exclude: [${exclude.map((one) => `"${one}"`).join(", ")}]`;
  const led = gateway === undefined ? "" : `, gateway: "${gateway}"`;
  return `{cidr: "${cidr.text}"${isAll ? "" : `, from: "${ends.from}", to: "${ends.to}"`}${holes}${led}}`;
}

function isNear(pool: Pool, { cidr, open }: WantedNetwork): boolean {
  const whole = (interval: Interval) => open.some((one) => intersection(one, interval) !== undefined);
  return intervalsOf(pool, cidr.family).some(whole);
}

/** The choice without families that the configuration leaves out; a family that it means and that no pool has is a refusal. */
export function withFamilies(choice: PoolChoice, dropIn: DropIn | undefined): PoolChoice | Refusal {
  const meant = dropIn?.families;
  if (meant === undefined) return choice;
  const families: readonly Family[] = choice.families.filter((family) => meant.includes(family));
  const missing = meant.find((family) => !families.includes(family));
  if (missing === undefined) return { ...choice, families };
  const names = choice.pools.map(({ name }) => `"${name}"`).join(", ");
  const uncut = choice.pools.some((pool) => pool.families.includes(missing));
  const next = uncut ? `a blockSize of it: ${singlesOf([missing])}` : "a range";
  const why = uncut ? "gives none of it to pods that ask for nothing" : "has none";
  const words = `the network's configuration means an ${missing} address, and pool ${names} ${why}; add ${next}, or leave ${missing} out of ipam`;
  return refuse("FAMILY_UNAVAILABLE", words, { family: missing });
}
