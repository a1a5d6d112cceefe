// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Kind, Records, Store } from "../../allocator/store/store.ts";
import {
  addr,
  bindingTo,
  claimRecord,
  DB_POOL,
  reservationRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { deniedAs, workload } from "../../test/support/objects.ts";
import { overlay } from "../../test/support/overlay.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";

const LIST = { "berth.dev/ips": "10.20.0.70;10.20.0.71", "berth.dev/when-scaled": "Release" };
const SET = workload("StatefulSet", "mysql", { replicas: 2, annotations: LIST });

/** The store, where another replica acts just before a reservation is made. */
function interrupted(store: Store, before: (address: string) => Promise<void>): Store {
  return overlay(store, {
    create: async <K extends Kind>(kind: K, record: Records[K]) => {
      if ("address" in record) await before(record.address);
      return await store.create(kind, record);
    },
  });
}

describe("a StatefulSet that is refused half-way", () => {
  it("neither changes nor gives back what another replica made for a pod that runs", async () => {
    const bound = claimRecord({ nonce: "theirs", binding: bindingTo("mysql-0", "node-a") });
    const wrap = (store: Store) =>
      interrupted(store, async (address) => {
        if (address === "10.20.0.70") {
          for (const reservation of reservationsOf(bound)) await store.create("reservation", reservation);
          await store.create("claim", bound);
        } else {
          const other = { claim: { namespace: "shop", name: "other" }, nonce: "other's" };
          await store.create("reservation", reservationRecord(address, other));
        }
      });
    await using world = await openWorld({ pools: [DB_POOL], wrap });
    assert.match(
      deniedAs(await send(world, "/validate/workloads", SET)),
      /^ADDRESS_TAKEN: pod mysql-1: address 10\.20\.0\.71 in pool "db" is held by shop\/other/,
    );
    const claim = await world.realStore.get("claim", "shop/mysql-0");
    assert.equal(claim?.record.retention.whenScaled, "Retain");
    assert.deepEqual(claim.record.binding, bound.binding);
    assert.deepEqual(claim.record.addresses, [addr("10.20.0.70")]);
    const [reservation] = reservationsOf(bound);
    assert.deepEqual((await world.realStore.get("reservation", "10.20.0.70"))?.record, reservation);
  });

  it("does not give back what came to be used meanwhile, though it made it", async () => {
    const binding = bindingTo("mysql-0", "node-a");
    const wrap = (store: Store) =>
      interrupted(store, async (address) => {
        if (address === "10.20.0.70") return;
        const made = await store.get("claim", "shop/mysql-0");
        if (made !== undefined) await store.replace("claim", made, { ...made.record, binding });
        const other = { claim: { namespace: "shop", name: "other" }, nonce: "other's" };
        await store.create("reservation", reservationRecord(address, other));
      });
    await using world = await openWorld({ pools: [DB_POOL], wrap });
    assert.equal((await send(world, "/validate/workloads", SET)).allowed, false);
    const claim = await world.realStore.get("claim", "shop/mysql-0");
    assert.deepEqual(claim?.record.binding, binding);
    assert.equal(claim.record.releasing, undefined);
  });
});
