// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { type Address, fromNumber, lastOf, toNumber } from "../../../allocator/ip/address.ts";
import { contains, type Interval, intersection } from "../../../allocator/ip/ip-range.ts";
import { formatSet, type RangeSet, type Subnet, subnetOf } from "../../cni/range-set.ts";
import type { ResultAddress } from "../../cni/result.ts";
import type { TakenAddresses } from "../journal/address-set.ts";
import { nameOf } from "../journal/attachment.ts";

/** What an ADD would take: one address of each range set, in their order. */
interface RangeResult {
  readonly addresses: readonly ResultAddress[];
}

interface Window {
  readonly subnet: Subnet;
  readonly interval: Interval;
}

/**
 * Chooses as host-local does: of each set the requested address that it contains, else the next free one behind the
 * last that was given away, round all subnets of the set. All sets or none; takes nothing itself.
 */
export function pickAddresses(
  space: TakenAddresses,
  sets: readonly RangeSet[],
  requested: readonly Address[],
): RangeResult | Refusal {
  const wanted = new Set(requested);
  const addresses: ResultAddress[] = [];
  for (const [i, set] of sets.entries()) {
    const request = [...wanted].find((address) => subnetOf(set, address) !== undefined);
    if (request !== undefined) wanted.delete(request);
    const picked = request === undefined ? pickNext(space, set, i) : pickRequested(space, set, request);
    if (isRefusal(picked))
      return { ...picked, message: `failed to allocate for range ${i}: ${picked.message}` };
    addresses.push(picked);
  }
  if (wanted.size === 0) return { addresses };
  return refuse("ADDRESS_OUTSIDE", `failed to allocate all requested IPs: ${[...wanted].join(" ")}`);
}

function pickRequested(space: TakenAddresses, set: RangeSet, address: Address): ResultAddress | Refusal {
  const subnet = subnetOf(set, address) ?? set[0];
  if (address === subnet.gateway)
    return refuse("ADDRESS_EXCLUDED", `requested ip ${address} is subnet's gateway`);
  if (!contains(usableOf(subnet), toNumber(address))) {
    const { text } = subnet.cidr;
    return refuse(
      "ADDRESS_EXCLUDED",
      `requested ip ${address} is the network or broadcast address of ${text}`,
    );
  }
  const holder = space.holderOf(address);
  if (holder === undefined) return resultOf(subnet, address);
  const where = `is not available in range set ${formatSet(set)}`;
  const words = `requested IP address ${address} ${where}; ${nameOf(holder)} has it`;
  return refuse("ADDRESS_TAKEN", words, { address });
}

function pickNext(space: TakenAddresses, set: RangeSet, index: number): ResultAddress | Refusal {
  for (const { subnet, interval } of windows(set, space.position(index))) {
    const address = firstFree(space, subnet, interval);
    if (address !== undefined) return resultOf(subnet, address);
  }
  return refuse("POOL_EXHAUSTED", `no IP addresses available in range set: ${formatSet(set)}`);
}

/** The set once round, beginning behind `last`; from the start when `last` is not, or no longer, in the set. */
function windows(set: RangeSet, last: Address | undefined): readonly Window[] {
  const whole = set.map((subnet): Window => ({ subnet, interval: usableOf(subnet) }));
  const home = last && subnetOf(set, last);
  if (last === undefined || home === undefined) return whole;
  const i = set.indexOf(home);
  const n = toNumber(last);
  return [
    ...part(home, { first: n + 1n, last: home.bounds.last }),
    ...whole.slice(i + 1),
    ...whole.slice(0, i),
    ...part(home, { first: home.bounds.first, last: n }),
  ];
}

function part(subnet: Subnet, bounds: Interval): readonly Window[] {
  const interval = intersection(usableOf(subnet), bounds);
  return interval === undefined ? [] : [{ subnet, interval }];
}

function firstFree(space: TakenAddresses, subnet: Subnet, { first, last }: Interval): Address | undefined {
  const gateway = toNumber(subnet.gateway);
  const n = space.nextFree(subnet.family, first, last);
  const free = n === gateway ? space.nextFree(subnet.family, n + 1n, last) : n;
  return free === undefined ? undefined : fromNumber(free, subnet.family);
}

/**
 * Network and broadcast address go to nobody, nor does the subnet-router anycast address of IPv6 (RFC 4291 section
 * 2.6.1). host-local gives them away if its bounds say so.
 */
function usableOf({ family, cidr, bounds }: Subnet): Interval {
  const hosts = { first: cidr.base + 1n, last: family === "IPv4" ? lastOf(cidr) - 1n : lastOf(cidr) };
  return intersection(bounds, hosts) ?? { first: 1n, last: 0n };
}

function resultOf({ cidr, gateway }: Subnet, address: Address): ResultAddress {
  return { address, prefixLength: cidr.prefixLength, gateway };
}
