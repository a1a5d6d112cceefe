// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import { countPoolUsage, type PoolUsage, ranOutOf, UNUSED } from "../../allocator/cache/pool-usage.ts";
import type { Family } from "../../allocator/ip/address.ts";
import { cutLength, cutSpace, hostBits } from "../../allocator/pool/blocks.ts";
import { capacity, familiesOf, type Pool, parseStoredPool } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { poolManifest } from "../apply/manifest.ts";
import { rangesOf } from "../apply/object-addresses.ts";
import { allOf, loadCache } from "../backend/embedded-backend.ts";
import { ageOf, countOf } from "../terminal/output.ts";
import { listing } from "./listing.ts";

interface Row {
  readonly stored: Stored<"pool">;
  readonly pool: Pool | Refusal;
  readonly use: PoolUsage;
  /** Of which nothing is left but for requests by address. */
  readonly full: readonly Family[];
  /** What claims of each namespace hold, most first. */
  readonly holders: readonly Holder[];
}

interface Holder {
  readonly namespace: string;
  readonly held: Readonly<Record<Family, number>>;
}

export const pools = listing<Row>({
  names: ["pools", "pool", "ippools", "ippool"],
  noun: "pool",
  scope: "cluster",
  async load({ store }) {
    const cache = await loadCache(store);
    const usage = await countPoolUsage(cache, async () => {});
    return (await allOf(store, "pool")).map((stored) => {
      const pool = parseStoredPool(stored.record);
      const full = isRefusal(pool) ? [] : ranOutOf(cache, pool);
      const use = usage.get(stored.key) ?? UNUSED;
      return { stored, pool, use, full, holders: holdersOf(cache, stored.key) };
    });
  },
  keyOf: ({ stored }) => ({ namespace: "", name: stored.key }),
  manifest: ({ stored, use }) => poolManifest(stored, use),
  columns: ({ now }) => [
    { title: "NAME", cell: ({ stored }) => stored.key },
    { title: "RANGES", cell: ({ stored }) => rangesOf(stored.record.spec.ranges) },
    { title: "IPV4 TAKEN", cell: (row) => takenOf(row, "IPv4") },
    { title: "IPV6 TAKEN", cell: (row) => takenOf(row, "IPv6") },
    { title: "STATE", cell: stateOf },
    { title: "PRIORITY", wide: true, cell: ({ stored }) => String(stored.record.spec.priority ?? 0) },
    { title: "COOLDOWN", wide: true, cell: ({ stored }) => stored.record.spec.cooldown ?? "30s" },
    {
      title: "GATEWAYS",
      wide: true,
      cell: ({ stored }) => stored.record.spec.ranges.flatMap(({ gateway }) => gateway ?? []).join(", "),
    },
    {
      title: "RESERVED FOR REQUESTS",
      wide: true,
      cell: ({ stored }) => stored.record.spec.reserved?.join(", ") ?? "",
    },
    { title: "A NAMESPACE AT MOST", wide: true, cell: ({ pool }) => boundsOf(pool) },
    { title: "BY NAMESPACE", wide: true, cell: ({ holders }) => byNamespace(holders) },
    { title: "AGE", cell: ({ stored }) => ageOf(stored.createdAt, now) },
  ],
});

function holdersOf(cache: RecordCache, pool: string): readonly Holder[] {
  const namespaces = new Set<string>();
  for (const { record } of cache.reservations())
    if (record.pool === pool) namespaces.add(record.claim.namespace);
  return [...namespaces]
    .map((namespace) => ({ namespace, held: cache.held(pool, namespace) }))
    .filter(({ held }) => sumOf(held) > 0)
    .toSorted((a, b) => sumOf(b.held) - sumOf(a.held) || (a.namespace < b.namespace ? -1 : 1));
}

function sumOf({ IPv4, IPv6 }: Holder["held"]): number {
  return IPv4 + IPv6;
}

/** Namespaces that a line has room for. */
const SHOWN = 5;

/** `shop: 3 IPv4 1 IPv6, bank: 1 IPv4`. */
function byNamespace(holders: readonly Holder[]): string {
  const shown = holders.slice(0, SHOWN).map(({ namespace, held: { IPv4, IPv6 } }) => {
    const counts = [IPv4 > 0 ? `${IPv4} IPv4` : "", IPv6 > 0 ? `${IPv6} IPv6` : ""].filter(
      (one) => one !== "",
    );
    return `${namespace}: ${counts.join(" ")}`;
  });
  const more = holders.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

function boundsOf(pool: Pool | Refusal): string {
  if (isRefusal(pool)) return "";
  const bounds = pool.bounds.map((bound) =>
    bound.kind === "said" ? countOf(BigInt(bound.most)) : `${countOf(BigInt(bound.most))} ${bound.family}`,
  );
  return bounds.length === 0 ? "all" : bounds.join(" ");
}

function takenOf({ pool, use }: Row, family: Family): string {
  if (isRefusal(pool) || !familiesOf(pool).includes(family)) return "";
  const { reserved, cooling, inBlocks = 0 } = use.byFamily[family];
  const length = pool.spec.nodeCIDRs && cutLength(pool, family);
  if (length === undefined)
    return `${countOf(BigInt(reserved + cooling + inBlocks))} of ${countOf(capacity(pool, family))}`;
  const taken = BigInt(inBlocks) >> hostBits(family, length);
  return `${countOf(taken)} of ${countOf(cutSpace(pool, family)?.count ?? 0n)} /${length}`;
}

function stateOf({ pool, full }: Row): string {
  if (isRefusal(pool)) return `invalid: ${pool.message}`;
  if (pool.disabled) return "disabled";
  if (full.length === 0) return "open";
  return full.length === familiesOf(pool).length ? "full" : `no ${full.join()} left`;
}
