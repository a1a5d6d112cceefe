// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf, fromNumber, toNumber } from "./address.ts";
import { type Refusal, refuse } from "./errors.ts";
import { describeIdentity } from "./identity.ts";
import { freeNeighbours } from "./pick.ts";
import { familiesOf, type Pool, spaceOf, standing } from "./pool.ts";
import type { Reservation } from "./reservation.ts";
import { holderOf, type View } from "./view.ts";

export function standingRefusal(view: View, pool: Pool, address: Address): Refusal | undefined {
  const kind = standing(pool, address);
  if (kind === "open" || kind === "reserved") return undefined;
  const why = kind === "gateway" ? "is the gateway of" : "is excluded from";
  return refuse(
    "ADDRESS_EXCLUDED",
    `address ${address} ${why} pool ${q(pool.name)}${instead(view, pool, address)}`,
    {
      address,
      pool: pool.name,
    },
  );
}

/** The words for an address that somebody else holds; `found` is what the authority answered, if it did. */
export function taken(view: View, pool: Pool, address: Address, found: Reservation | undefined): Refusal {
  const details = { address, pool: pool.name };
  if (found === undefined) {
    return refuse(
      "ADDRESS_TAKEN",
      `address ${address} in pool ${q(pool.name)} is taken${instead(view, pool, address)}`,
      details,
    );
  }
  const { key, claim } = holderOf(view, found);
  const whose = claim === undefined ? key : `${key} (${describeIdentity(claim.identity)})`;
  const how =
    found.releasedAt === undefined ? `is held by ${whose}` : `was given back by ${key} and is cooling down`;
  const near = instead(view, pool, address);
  const joint = near === "" ? "; " : "; or ";
  const next =
    found.releasedAt === undefined ? `release it with: berthctl release ${key}` : "try again later";
  return refuse("ADDRESS_TAKEN", `address ${address} in pool ${q(pool.name)} ${how}${near}${joint}${next}`, {
    ...details,
    holder: key,
  });
}

function instead(view: View, pool: Pool, address: Address): string {
  const family = familyOf(address);
  const near = freeNeighbours(spaceOf(pool, family), view.unpickable(pool, family), toNumber(address), 3);
  return near.length === 0 ? "" : `; free nearby: ${near.map((n) => fromNumber(n, family)).join(", ")}`;
}

export function outside(view: View, address: Address): Refusal {
  const family = familyOf(address);
  const pools = view.pools().filter((pool) => familiesOf(pool).includes(family));
  const ranges = pools.flatMap((pool) =>
    spaceOf(pool, family).map(
      (s) => `${q(pool.name)} ${fromNumber(s.first, family)}-${fromNumber(s.last, family)}`,
    ),
  );
  const have =
    ranges.length === 0 ? `there is no ${family} pool` : `pools have ${ranges.slice(0, 5).join(", ")}`;
  return refuse("ADDRESS_OUTSIDE", `address ${address} is in no pool; ${have}`, { address });
}

export function unknownPool(view: View, name: string): Refusal {
  const names = view.pools().map((pool) => q(pool.name));
  const have = names.length === 0 ? "there are no pools yet" : `there are ${names.slice(0, 10).join(", ")}`;
  return refuse("POOL_UNKNOWN", `there is no pool ${q(name)}; ${have}`, { pool: name });
}

export function noPool(view: View, namespace: string): Refusal {
  if (view.pools().length === 0) return unknownAny();
  return refuse(
    "POOL_FORBIDDEN",
    `no pool is open to this pod in namespace ${namespace}; name one with berth.dev/pools or ask for a pool that selects the namespace`,
    { namespace },
  );
}

function unknownAny(): Refusal {
  return refuse("POOL_UNKNOWN", "there are no pools yet; create an IPPool first");
}

export function noFamily(pools: readonly Pool[], family: Family): Refusal {
  const names = pools.map((pool) => pool.name);
  return refuse(
    "FAMILY_UNAVAILABLE",
    `no ${family} range in pool ${names.map(q).join(", ")}; ask for another family or add a pool that has it`,
    { pool: names.join(","), family },
  );
}

/** `besides`: addresses that others of the same review would get. */
export function exhausted(view: View, pools: readonly Pool[], family: Family, besides = 0): Refusal {
  const names = pools.map((pool) => pool.name);
  let held = 0;
  for (const { record } of view.reservations()) {
    if (names.includes(record.pool) && familyOf(record.address) === family) held++;
  }
  const others = besides === 0 ? "" : `, and the pods before this one get ${besides}`;
  return refuse(
    "POOL_EXHAUSTED",
    `no free ${family} address in pool ${names.map(q).join(", ")}: ${held} are held or cooling${others}; add a range, or release claims that are not needed`,
    { pool: names.join(","), family },
  );
}

/** A name in a message. */
export function q(name: string): string {
  return JSON.stringify(name);
}
