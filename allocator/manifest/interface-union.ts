// SPDX-License-Identifier: Apache-2.0
// What several annotations say of a pod's interfaces, put together (ADR 0030).

import type { Address } from "../ip/address.ts";
import type { AddressEntry } from "../model/address-request.ts";
import { FIRST_INTERFACE, type InterfacePools, type Interfaces } from "../model/interfaces.ts";

/** One entry for each pod, and the interfaces of their addresses, if any is named. */
export interface SaidAddresses {
  readonly entries: readonly AddressEntry[];
  readonly interfaces?: Interfaces;
}

type Columns = ReadonlyMap<string, readonly AddressEntry[]>; // interface -> what each pod has there

/** Each interface has what any of the two says of it; who names none means the first. Undefined: they say different things. */
export function unitedAddresses(one: SaidAddresses, other: SaidAddresses): SaidAddresses | undefined {
  if (one.interfaces === undefined && other.interfaces === undefined)
    return isSameRows(one.entries, other.entries) ? one : undefined;
  if (one.entries.length !== other.entries.length) return undefined;
  const [columns, others] = [columnsOf(one), columnsOf(other)];
  for (const [name, rows] of others) {
    const own = columns.get(name);
    if (own !== undefined && !isSameRows(own, rows)) return undefined;
  }
  return fromColumns(new Map([...columns, ...others]));
}

function columnsOf({ entries, interfaces }: SaidAddresses): Columns {
  if (interfaces === undefined) return new Map([[FIRST_INTERFACE, entries]]);
  return new Map(
    Object.entries(interfaces).map(([name, its]) => {
      const own = new Set<Address>(its);
      return [name, entries.map((entry) => entry.filter((address) => own.has(address)))] as const;
    }),
  );
}

function fromColumns(columns: Columns): SaidAddresses {
  const lists = [...columns.values()];
  const entries = (lists[0] ?? []).map((_, row) => lists.flatMap((rows) => rows[row] ?? []));
  const interfaces = Object.fromEntries([...columns].map(([name, rows]) => [name, rows.flat()]));
  return { entries, interfaces };
}

/** The order of one pod's addresses means nothing. */
function isSameRows(some: readonly AddressEntry[], others: readonly AddressEntry[]): boolean {
  const words = (rows: readonly AddressEntry[]) => JSON.stringify(rows.map((row) => row.toSorted()));
  return words(some) === words(others);
}

/** Each interface has the pools that any of the two names for it. Undefined: they name different ones. */
export function unitedPools(one: InterfacePools, other: InterfacePools): InterfacePools | undefined {
  const united = new Map(Object.entries(one));
  for (const [name, pools] of Object.entries(other)) {
    const before = united.get(name) ?? [];
    if (before.length > 0 && pools.length > 0 && JSON.stringify(before) !== JSON.stringify(pools))
      return undefined;
    united.set(name, before.length > 0 ? before : pools);
  }
  return Object.fromEntries(united);
}
