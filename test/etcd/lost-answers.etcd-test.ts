// SPDX-License-Identifier: Apache-2.0
// Writes whose answers, or which themselves, are lost on the way: what the store says of them must be what etcd has.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, bareClaim, poolOf, reservationOf } from "../../allocator/store/contract/samples.ts";
import { created, expectReplaced } from "../../allocator/store/contract/subject.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { LossyEtcd } from "./lossy-etcd.ts";

if (havePartsOrSkip(["etcd"])) {
  describe("a write to etcd", () => {
    const etcd = new LossyEtcd();

    const arrived = async (key: string, before?: Stored<"reservation">) => {
      await eventually(`${key} is written`, async () => {
        const there = await etcd.far.get("reservation", key);
        return there?.revision === before?.revision ? undefined : true;
      });
    };
    const removed = async (key: string) => {
      await eventually(`${key} is gone`, async () =>
        (await etcd.far.get("reservation", key)) === undefined ? true : undefined,
      );
    };

    it("that creates is known for its own when its answer is lost, and is not done twice", async () => {
      const key = addr("10.20.1.1");
      const result = await etcd.losing(
        "answers",
        () => etcd.near.create("reservation", reservationOf(key)),
        () => arrived(key),
      );
      assert.equal(result.kind, "created");
      assert.deepEqual(result.stored, await etcd.far.get("reservation", key));
    });

    it("that creates is known for its own after another host has changed the record", async () => {
      const key = addr("10.20.1.2");
      const result = await etcd.losing(
        "answers",
        () => etcd.near.create("reservation", reservationOf(key)),
        async () => {
          await arrived(key);
          const there = await etcd.far.get("reservation", key);
          assert.ok(there);
          await etcd.far.replace("reservation", there, { ...there.record, marked: true });
        },
      );
      assert.equal(result.kind, "created");
      assert.equal(result.stored.record.marked, true);
    });

    it("that creates and never arrives finds what another host has made", async () => {
      const key = addr("10.20.1.3");
      const result = await etcd.losing(
        "requests",
        () => etcd.near.create("reservation", reservationOf(key, { nonce: "near" })),
        async () => void (await created(etcd.far, "reservation", reservationOf(key, { nonce: "far" }))),
      );
      assert.deepEqual([result.kind, result.stored.record.nonce], ["exists", "far"]);
    });

    it("that replaces is done once when its answer is lost", async () => {
      const seen = await created(etcd.near, "reservation", reservationOf(addr("10.20.1.4")));
      const result = await etcd.losing(
        "answers",
        () => etcd.near.replace("reservation", seen, { ...seen.record, marked: true }),
        () => arrived(seen.key, seen),
      );
      assert.deepEqual(expectReplaced(result), await etcd.far.get("reservation", seen.key));
    });

    it("that replaces is known to be done though others have written since", async () => {
      const seen = await created(etcd.near, "reservation", reservationOf(addr("10.20.1.5")));
      const ours = await etcd.losing(
        "answers",
        () => etcd.near.replace("reservation", seen, { ...seen.record, nonce: "near" }),
        async () => {
          await arrived(seen.key, seen);
          for (const nonce of ["far-1", "far-2", "far-3"]) {
            const there = await etcd.far.get("reservation", seen.key);
            assert.ok(there);
            await etcd.far.replace("reservation", there, { ...there.record, nonce });
          }
        },
      );
      assert.equal(expectReplaced(ours).record.nonce, "near");
      assert.equal((await etcd.far.get("reservation", seen.key))?.record.nonce, "far-3");
    });

    it("that replaces and never arrives is a conflict once another host has written", async () => {
      const seen = await created(etcd.near, "reservation", reservationOf(addr("10.20.1.6")));
      const result = await etcd.losing(
        "requests",
        () => etcd.near.replace("reservation", seen, { ...seen.record, nonce: "near" }),
        async () => void (await etcd.far.replace("reservation", seen, { ...seen.record, nonce: "far" })),
      );
      assert.deepEqual(result, { kind: "conflict" });
    });

    it("that removes, or replaces what is then removed, says that it does not know", async () => {
      const [one, other] = [
        await created(etcd.near, "reservation", reservationOf(addr("10.20.1.7"))),
        await created(etcd.near, "reservation", reservationOf(addr("10.20.1.8"))),
      ];
      const removing = etcd.losing(
        "answers",
        () => etcd.near.remove("reservation", one),
        () => removed(one.key),
      );
      await assert.rejects(removing, { code: "STORE_UNAVAILABLE" });
      const replacing = etcd.losing(
        "answers",
        () => etcd.near.replace("reservation", other, { ...other.record, marked: true }),
        async () => {
          await arrived(other.key, other);
          const there = await etcd.far.get("reservation", other.key);
          assert.ok(there);
          await etcd.far.remove("reservation", there);
        },
      );
      await assert.rejects(replacing, { code: "STORE_UNAVAILABLE" });
    });

    it("that removes is a conflict when the record was changed and is still there", async () => {
      const seen = await created(etcd.near, "reservation", reservationOf(addr("10.20.1.9")));
      const result = await etcd.losing(
        "requests",
        () => etcd.near.remove("reservation", seen),
        async () => void (await etcd.far.replace("reservation", seen, { ...seen.record, marked: true })),
      );
      assert.deepEqual(result, { kind: "conflict" });
    });

    it("that is no record is passed over by a watch, and its key stays taken", async () => {
      const key = Buffer.from("/berth/v1/pool/stray").toString("base64");
      await etcd.members.ask("kv/put", { key, value: Buffer.from("nothing").toString("base64") });
      const changes: string[] = [];
      const stop = new AbortController();
      const pool = await created(etcd.far, "pool", poolOf("db"));
      for await (const change of etcd.near.watch("pool", stop.signal)) {
        changes.push(change.type === "put" ? change.stored.key : change.type);
        if (change.type === "synced") stop.abort();
      }
      assert.deepEqual(changes, ["relist", pool.key, "synced"]);
      const taking = etcd.near.create("pool", poolOf("stray"));
      await assert.rejects(taking, { code: "STATE_CORRUPT", message: /\/berth\/v1\/pool\/stray/ });
      await etcd.members.ask("kv/deleterange", { key });
      assert.equal((await etcd.near.create("pool", poolOf("stray"))).kind, "created");
      assert.equal((await etcd.near.create("claim", bareClaim("a"))).kind, "created");
    });
  });
}
