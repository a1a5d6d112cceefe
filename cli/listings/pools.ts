// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Family } from "../../allocator/ip/address.ts";
import { familyOf } from "../../allocator/ip/address.ts";
import { capacity, familiesOf, type Pool, parseStoredPool } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { type PoolUse, poolManifest, useOf } from "../apply/manifest.ts";
import { rangesOf } from "../apply/object-addresses.ts";
import { allOf } from "../backend/embedded-backend.ts";
import { ageOf, countOf } from "../terminal/output.ts";
import { listing } from "./listing.ts";

interface Row {
  readonly stored: Stored<"pool">;
  readonly pool: Pool | Refusal;
  readonly use: PoolUse;
  /** Reserved or cooling, by family. */
  readonly taken: Readonly<Record<Family, number>>;
}

export const pools = listing<Row>({
  names: ["pools", "pool", "ippools", "ippool"],
  noun: "pool",
  scope: "cluster",
  async load({ store }) {
    const reservations = (await allOf(store, "reservation")).map(({ record }) => record);
    const claims = (await allOf(store, "claim")).map(({ record }) => record);
    return (await allOf(store, "pool")).map((stored) => {
      const own = reservations.filter(({ pool }) => pool === stored.key);
      const ipv6 = own.filter(({ address }) => familyOf(address) === "IPv6").length;
      return {
        stored,
        pool: parseStoredPool(stored.record),
        use: useOf(stored, own, claims),
        taken: { IPv4: own.length - ipv6, IPv6: ipv6 },
      };
    });
  },
  keyOf: ({ stored }) => ({ namespace: "", name: stored.key }),
  manifest: ({ stored, use }) => poolManifest(stored, use),
  columns: ({ now }) => [
    { title: "NAME", cell: ({ stored }) => stored.key },
    { title: "RANGES", cell: ({ stored }) => rangesOf(stored.record.spec.ranges) },
    { title: "IPV4 TAKEN", cell: (row) => takenOf(row, "IPv4") },
    { title: "IPV6 TAKEN", cell: (row) => takenOf(row, "IPv6") },
    { title: "STATE", cell: ({ pool }) => stateOf(pool) },
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
    { title: "AGE", cell: ({ stored }) => ageOf(stored.createdAt, now) },
  ],
});

function takenOf({ pool, taken }: Row, family: Family): string {
  if (isRefusal(pool) || !familiesOf(pool).includes(family)) return "";
  return `${taken[family]} of ${countOf(capacity(pool, family))}`;
}

function stateOf(pool: Pool | Refusal): string {
  if (isRefusal(pool)) return `invalid: ${pool.message}`;
  return pool.disabled ? "disabled" : "open";
}
