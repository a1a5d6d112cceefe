// SPDX-License-Identifier: Apache-2.0
// An address that no range of a pool has.

import { type Refusal, refuse } from "../base/errors.ts";
import { listed } from "../base/listed.ts";
import type { RecordReader } from "../cache/reader.ts";
import { type Address, familyOf, fromNumber, toNumber } from "../ip/address.ts";
import { type Interval, merge, without } from "../ip/ip-range.ts";
import { macOfAddress } from "../ip/mac.ts";
import { servesPods } from "../pool/node-cidrs.ts";
import { familiesOf, intervalsOf, type Pool } from "../pool/pool.ts";
import { hasMacsAlone } from "../pool/special-addresses.ts";
import { neverGiven, quoted } from "./refusal-messages.ts";

/** Names the pools that may serve whoever asks, if any of them may. */
export function addressOutside(
  view: RecordReader,
  address: Address,
  isOpen: (pool: Pool) => boolean = () => true,
): Refusal {
  const own = gatewayOf(view, address);
  if (own !== undefined && isOpen(own)) return neverGiven(view, own, address, "is the gateway of");
  const isMac = macOfAddress(address) !== undefined;
  const ranges = rangesOf(view, address, isOpen);
  const add = isMac ? `; or write ${address} into a pool's ranges (docs/cluster.md, MAC addresses)` : "";
  const make = isMac
    ? `; create an IPPool with a range around ${address}, see docs/cluster.md, MAC addresses`
    : ", create an IPPool first";
  const have =
    ranges.length === 0
      ? `${noneOfIts(view, address)}${make}`
      : `name one of a pool: ${listed(ranges, 5)}${add}`;
  return refuse("ADDRESS_OUTSIDE", `${nameOf(address)} is in no pool; ${have}`, { address });
}

/** The same to who wants to know of the address, and does not ask for one. */
export function notInPools(view: RecordReader, address: Address): Refusal {
  const own = gatewayOf(view, address);
  if (own !== undefined) {
    const words = `address ${address} is the gateway of pool ${quoted(own.name)}: nobody gets it`;
    return refuse("ADDRESS_EXCLUDED", words, { address, pool: own.name });
  }
  const ranges = rangesOf(view, address, () => true);
  const have = ranges.length === 0 ? noneOfIts(view, address) : `pools have: ${listed(ranges, 5)}`;
  return refuse("ADDRESS_OUTSIDE", `${nameOf(address)} is in no pool; ${have}`, { address });
}

function nameOf(address: Address): string {
  const mac = macOfAddress(address);
  return mac === undefined ? `address ${address}` : `MAC address ${mac}`;
}

function gatewayOf(view: RecordReader, address: Address): Pool | undefined {
  return view.pools().find(({ gateways }) => gateways.has(address));
}

function noneOfIts(view: RecordReader, address: Address): string {
  if (macOfAddress(address) !== undefined) return "there is no pool of MAC addresses";
  return `there is no ${familyOf(address)} pool${view.pools().every(servesPods) ? "" : " for pods"}`;
}

/** Pools and their ranges, from the first address that a pod may have to the last. */
function rangesOf(view: RecordReader, address: Address, isOpen: (pool: Pool) => boolean): string[] {
  const family = familyOf(address);
  const isMac = macOfAddress(address) !== undefined;
  const all = view.pools().filter((pool) => servesPods(pool) && familiesOf(pool).includes(family));
  const open = all.filter(isOpen);
  return (open.length > 0 ? open : all).flatMap((pool) => {
    const never = neverIn(pool, address);
    return intervalsOf(pool, family).flatMap((interval) => {
      const given = without([interval], never);
      const ends = [given.at(0)?.first, given.at(-1)?.last].flatMap((n) =>
        n === undefined ? [] : fromNumber(n, family),
      );
      const shown = isMac ? ends.flatMap((one) => macOfAddress(one) ?? []) : ends;
      const isMeant = shown.length === 2 && (isMac || !hasMacsAlone(pool));
      return isMeant ? [`${quoted(pool.name)} ${shown.join("-")}`] : [];
    });
  });
}

/** What the pool gives to nobody, of the family of the address. */
function neverIn({ excluded, gateways }: Pool, address: Address): readonly Interval[] {
  const family = familyOf(address);
  const own = excluded.filter((one) => one.family === family).map(({ interval }) => interval);
  const led = [...gateways].filter((one) => familyOf(one) === family).map(toNumber);
  return merge([...own, ...led.map((n) => ({ first: n, last: n }))]);
}
