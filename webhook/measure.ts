// SPDX-License-Identifier: Apache-2.0
import { FAMILIES, type Family, familyOf } from "../allocator/address.ts";
import type { Mirror } from "../allocator/mirror.ts";
import { capacity, familiesOf } from "../allocator/pool.ts";
import type { MetricsRegistry, Sample } from "../system/metrics.ts";

/** Gauges of what is known of the records, computed when they are asked for. */
export function measure(metrics: MetricsRegistry, mirror: Mirror): void {
  metrics.gauge("berth_reservations", () => [{ labels: {}, value: sizeOf(mirror.reservations()) }]);
  metrics.gauge("berth_claims", () => [{ labels: {}, value: sizeOf(mirror.claims()) }]);
  metrics.gauge("berth_pool_addresses", () => samplesOf(mirror));
}

function sizeOf(items: Iterable<unknown>): number {
  let n = 0;
  for (const _ of items) n++;
  return n;
}

/** `capacity` of an IPv6 pool is rounded to what a double holds. */
function samplesOf(mirror: Mirror): Sample[] {
  const counts = new Map<string, { held: number; cooling: number }>(); // pool/family -> addresses
  for (const { record } of mirror.reservations()) {
    const key = `${record.pool}/${familyOf(record.address)}`;
    const count = counts.get(key) ?? { held: 0, cooling: 0 };
    if (record.releasedAt === undefined) count.held++;
    else count.cooling++;
    counts.set(key, count);
  }
  return mirror.pools().flatMap((pool) =>
    FAMILIES.filter((family) => familiesOf(pool).includes(family)).flatMap((family: Family) => {
      const { held, cooling } = counts.get(`${pool.name}/${family}`) ?? { held: 0, cooling: 0 };
      const all = Number(capacity(pool, family));
      const states = { capacity: all, held, cooling, free: all - held - cooling };
      return Object.entries(states).map(([state, value]) => ({
        labels: { pool: pool.name, family, state },
        value,
      }));
    }),
  );
}
