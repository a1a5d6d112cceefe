// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { keyOf } from "../../allocator/store/codec.ts";
import { placeOf, specOf, storedOf } from "../../allocator/store/kubernetes/objects.ts";
import type { Kind, Records, Store } from "../../allocator/store/store.ts";
import type { Client } from "../../kube/api/client.ts";
import { wipe } from "./crds.ts";
import { dryCreate } from "./dry-create.ts";
import { anyBlock, anyClaim, anyPool, anyReservation } from "./records.ts";
import { spoiled } from "./schema.ts";

const ANY: { readonly [K in Kind]: fc.Arbitrary<Records[K]> } = {
  pool: anyPool,
  claim: anyClaim,
  reservation: anyReservation,
  block: anyBlock,
};

export function agreementCases(kind: Kind, on: { store: () => Store; client: () => Client }): void {
  it(`take every ${kind} that Berth can write, and give it back`, async () => {
    await fc.assert(
      fc.asyncProperty(ANY[kind], async (record) => {
        const { kind: outcome, stored } = await on.store().create(kind, record);
        assert.equal(outcome, "created");
        assert.deepEqual(stored.record, record);
        assert.deepEqual(await on.store().get(kind, stored.key), stored);
        const place = placeOf(kind, stored.key);
        const item = place && (await on.client().get(place));
        assert.ok(item);
        await wipe(on.client(), item);
      }),
      { numRuns: 60 },
    );
  });

  it(`take no ${kind} that Berth cannot read`, async () => {
    const client = on.client();
    let refused = 0;
    const spoiling = ANY[kind].chain((record) =>
      fc.tuple(fc.constant(record), spoiled({ spec: specOf(kind, record) })),
    );
    await fc.assert(
      fc.asyncProperty(spoiling, async ([record, object]) => {
        const place = placeOf(kind, keyOf(kind, record));
        assert.ok(place);
        const item = await dryCreate(client, place, object);
        if (typeof item === "string") refused++;
        else assert.equal(storedOf(kind, item).key, keyOf(kind, record));
      }),
      { numRuns: 300 },
    );
    assert.ok(refused > 100, `${refused} of 300 were refused`);
  });
}
