// SPDX-License-Identifier: Apache-2.0

import type { Sample } from "../allocator/base/ports.ts";
import type { RecordCache } from "../allocator/cache/cache.ts";
import { countInBlocks, unnamed } from "../allocator/cache/pool-usage.ts";
import { FAMILIES, type Family, parseCidr } from "../allocator/ip/address.ts";
import { cutSpace } from "../allocator/pool/blocks.ts";
import { capacity, familiesOf, type Pool } from "../allocator/pool/pool.ts";
import type { MetricsRegistry } from "../system/metrics.ts";
import { readCertificate } from "../system/pem/pair.ts";

/** Gauges of what is known of the records, computed when they are asked for. */
export function withMetrics(metrics: MetricsRegistry, cache: RecordCache): void {
  metrics.gauge("berth_reservations", () => [{ labels: {}, value: cache.reservationCount }]);
  metrics.gauge("berth_claims", () => phasesOf(cache));
  metrics.gauge("berth_pools", () => poolsOf(cache));
  metrics.gauge("berth_pool_capacity_addresses", () =>
    cache.pools().flatMap((pool) =>
      familiesIn(pool).map((family) => ({
        labels: { pool: pool.name, family },
        value: Number(capacity(pool, family)),
      })),
    ),
  );
  metrics.gauge("berth_pool_unnamed_capacity_addresses", () => unnamedIn(cache));
  metrics.gauge("berth_pool_addresses", () => addressesOf(cache));
  metrics.gauge("berth_pool_blocks", () => blocksOf(cache));
}

/** Gauges of what one replica is. */
export function withReplicaMetrics(
  metrics: MetricsRegistry,
  replica: {
    readonly version: string;
    readonly ready: () => boolean;
    /** PEM by what it is for (`serving`, `authority`), as they are at this moment. */
    readonly certificates: () => Readonly<Record<string, string>>;
  },
): void {
  const { version, ready, certificates } = replica;
  metrics.gauge("berth_build_info", () => [{ labels: { component: "webhook", version }, value: 1 }]);
  metrics.gauge("berth_ready", () => [{ labels: {}, value: ready() ? 1 : 0 }]);
  metrics.gauge("berth_certificate_expiry_timestamp_seconds", () =>
    Object.entries(certificates()).map(([certificate, pem]) => ({
      labels: { certificate },
      value: readCertificate(pem).validToDate.getTime() / 1000,
    })),
  );
}

function phasesOf(cache: RecordCache): Sample[] {
  return [...cache.claimPhases()].map(([phase, value]) => ({ labels: { phase }, value }));
}

function poolsOf(cache: RecordCache): Sample[] {
  const usable = cache.pools();
  const disabled = usable.filter((pool) => pool.disabled).length;
  const unusable = [...cache.poolRecords()].length - usable.length;
  const states = { open: usable.length - disabled, disabled, unusable };
  return Object.entries(states).map(([state, value]) => ({ labels: { state }, value }));
}

/** Of pools that are cut into blocks alone. */
function blocksOf(cache: RecordCache): Sample[] {
  return cache.pools().flatMap((pool) =>
    familiesIn(pool).flatMap((family) => {
      const space = cutSpace(pool, family);
      if (space === undefined) return [];
      // an address within a block is no block that a node could have had whole
      const whole = [...cache.blocksOf(pool.name)].filter(({ record }) => record.within === undefined);
      const own = whole.filter(({ key }) => parseCidr(key)?.family === family);
      const cooling = own.filter(({ record }) => record.releasedAt !== undefined).length;
      const total = Number(space.count);
      const states = { owned: own.length - cooling, cooling, free: Math.max(0, total - own.length) };
      return Object.entries(states).map(([state, value]) => ({
        labels: { pool: pool.name, family, state },
        value,
      }));
    }),
  );
}

/** A pool that is reserved whole is no fuller for what it has given. */
function unnamedIn(cache: RecordCache): Sample[] {
  return cache.pools().flatMap((pool) =>
    familiesIn(pool).flatMap((family) => {
      const { all } = unnamed(cache, pool, family);
      return all > 0n ? [{ labels: { pool: pool.name, family }, value: Number(all) }] : [];
    }),
  );
}

/** `free` of an IPv6 pool is rounded to what a double holds. */
function addressesOf(cache: RecordCache): Sample[] {
  const totals = cache.reservationTotals();
  return cache.pools().flatMap((pool) =>
    familiesIn(pool).flatMap((family) => {
      const reserved = totals.get(pool.name);
      const held = reserved?.held[family] ?? 0;
      const cooling = reserved?.cooling[family] ?? 0;
      const block = Number(countInBlocks(cache, pool.name, family));
      const rest = Math.max(0, Number(capacity(pool, family)) - held - cooling - block);
      const free = Math.min(rest, Number(unnamed(cache, pool, family).free));
      const withheld = rest - free;
      return Object.entries({ held, cooling, block, withheld, free }).map(([state, value]) => ({
        labels: { pool: pool.name, family, state },
        value,
      }));
    }),
  );
}

function familiesIn(pool: Pool): readonly Family[] {
  return FAMILIES.filter((family) => familiesOf(pool).includes(family));
}
