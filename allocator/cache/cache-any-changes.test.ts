// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  poolRecord,
  reservationRecord,
  storedAs,
} from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { noopLogger } from "../base/ports.ts";
import { toNumber } from "../ip/address.ts";
import type { Block } from "../model/block.ts";
import type { Claim } from "../model/claim.ts";
import type { PoolRecord } from "../pool/pool.ts";
import type { Change, Kind, Stored } from "../store/store.ts";
import { RecordCache } from "./cache.ts";
import { pickable, TINY } from "./testing/picks.ts";

const POOLS: readonly PoolRecord[] = [
  TINY,
  poolRecord("tiny", "10.0.0.0/28"),
  poolRecord("tiny", ["10.0.0.0/30", "fd00::/126"]),
  poolRecord("twin", "10.0.0.0/29"), // overlaps tiny, as two pools may for a moment
  poolRecord("twin", "10.0.1.0/29", { reserved: ["10.0.1.2"], priority: 3 }),
  { name: "twin", spec: { ranges: [{ cidr: "10.0.0.3/29" }] } },
];
const ADDRESSES = addrs(
  "10.0.0.1",
  "10.0.0.2",
  "10.0.0.3",
  "10.0.0.4",
  "10.0.0.9",
  "10.0.1.2",
  "10.0.1.3",
  "fd00::1",
);

const BLOCKS = ["10.0.0.2/31", "10.0.0.4/30", "10.0.1.2/31", "fd00::/127", "10.0.0.2/32", "10.0.0.4/32"];

const CLAIMS: readonly Partial<Claim>[] = [
  {},
  { nonce: "", addresses: [] },
  { binding: bindingTo("mysql-0", "") },
  { binding: bindingTo("mysql-0", "node-a") },
  { binding: bindingTo("mysql-0", "node-a"), status: { attachment: attachmentOf("mysql-0") } },
  { retained: { since: 1, because: "scaled" } },
];

type Step = { readonly kind: Kind; readonly change: Change<Kind> } | "look";

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.constant<Step>("look"),
  fc
    .constantFrom<Kind>("pool", "claim", "reservation", "block")
    .chain((kind) =>
      fc.constantFrom("relist" as const, "synced" as const).map((type): Step => ({ kind, change: { type } })),
    ),
  fc
    .constantFrom(...POOLS)
    .map((pool): Step => ({ kind: "pool", change: { type: "put", stored: storedAs("pool", pool) } })),
  fc.constantFrom("tiny", "twin").map((key): Step => ({ kind: "pool", change: { type: "gone", key } })),
  fc
    .tuple(
      fc.constantFrom(...ADDRESSES),
      fc.constantFrom("tiny", "twin"),
      fc.constantFrom("shop", "bank"),
      fc.boolean(),
    )
    .map(([address, pool, namespace, cooling]): Step => {
      const over = { pool, claim: { namespace, name: "mysql-0" }, ...(cooling ? { releasedAt: 1 } : {}) };
      return {
        kind: "reservation",
        change: { type: "put", stored: storedAs("reservation", reservationRecord(address, over)) },
      };
    }),
  fc.constantFrom(...ADDRESSES).map((key): Step => ({ kind: "reservation", change: { type: "gone", key } })),
  fc
    .tuple(fc.constantFrom("mysql-0", "mysql-1", "mysql-2"), fc.constantFrom(...CLAIMS))
    .map(([name, over]): Step => {
      const stored = storedAs("claim", claimRecord({ ...over, name }));
      return { kind: "claim", change: { type: "put", stored } };
    }),
  fc
    .constantFrom("shop/mysql-0", "shop/mysql-1")
    .map((key): Step => ({ kind: "claim", change: { type: "gone", key } })),
  fc
    .record({
      cidr: fc.constantFrom(...BLOCKS),
      pool: fc.constantFrom("tiny", "twin"),
      holes: fc.subarray(["10.0.0.2/32", "10.0.0.4/31"]),
    })
    .map(({ cidr, pool, holes }): Step => {
      const around = BLOCKS.find((one) => one !== cidr && one.startsWith(`${cidr.split("/")[0]}/`));
      const within = cidr.endsWith("/32") && around !== undefined ? { within: around } : {};
      const block: Block = { cidr, pool, node: "node-a", nodeUID: "", holes, ...within };
      return { kind: "block", change: { type: "put", stored: storedAs("block", block) } };
    }),
  fc.constantFrom(...BLOCKS).map((key): Step => ({ kind: "block", change: { type: "gone", key } })),
);

/** Everything that a view tells, as one value. */
function reported(view: RecordCache): unknown {
  const byKey = (a: Stored<Kind>, b: Stored<Kind>) => (a.key < b.key ? -1 : 1);
  return {
    pools: view.pools().map(({ name, spec }) => ({ name, spec, pickable: pickable(view, name) })),
    reservations: [...view.reservations()].sort(byKey),
    use: ["tiny", "twin"].flatMap((pool) =>
      ["shop", "bank"].map((namespace) => [view.held(pool, namespace), view.cooling(pool, namespace)]),
    ),
    totals: view.reservationTotals(),
    phases: view.claimPhases(),
    blocks: BLOCKS.map((cidr) => view.block(cidr)),
    owning: ADDRESSES.map((address) => view.blockOwning(address)?.cidr),
    over: view.pools().flatMap((pool) => {
      const parts = [...view.blocksOver(pool, "IPv4"), ...view.blocksOver(pool, "IPv6")];
      return parts.map(({ block: { cidr } }) => `${pool.name} ${cidr}`).sort();
    }),
    homes: ADDRESSES.map((address) => [toNumber(address), view.poolOf(address)?.name]),
  };
}

/** A cache that has seen only what is left in this one. */
function afreshFrom(cache: RecordCache): RecordCache {
  const fresh = new RecordCache(noopLogger);
  for (const stored of cache.reservations()) fresh.apply("reservation", { type: "put", stored });
  for (const stored of cache.claims()) fresh.apply("claim", { type: "put", stored });
  for (const stored of ["twin", "tiny"].flatMap((pool) => [...cache.blocksOf(pool)]))
    fresh.apply("block", { type: "put", stored });
  for (const name of ["twin", "tiny"]) {
    const stored = cache.poolRecord(name);
    if (stored !== undefined) fresh.apply("pool", { type: "put", stored });
  }
  return fresh;
}

describe("a cache after any changes", () => {
  it("is what one is that saw only what is left", () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 40 }), (changes) => {
        const cache = new RecordCache(noopLogger);
        for (const step of changes) {
          if (step === "look") reported(cache);
          else cache.apply(step.kind, step.change);
        }
        const fresh = afreshFrom(cache);
        assert.deepEqual(reported(cache), reported(fresh));
      }),
      { numRuns: runsOf(2_000) },
    );
  });
});
