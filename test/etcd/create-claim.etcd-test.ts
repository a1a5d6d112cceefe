// SPDX-License-Identifier: Apache-2.0
// A claim with its reservations in one transaction: all or nothing, also when its answer, or it itself, is lost.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, bareClaim, reservationOf } from "../../allocator/store/contract/samples.ts";
import { created, listed } from "../../allocator/store/contract/subject.ts";
import type { ClaimCreated, Store } from "../../allocator/store/store.ts";
import { havePartsOrSkip } from "../api/binaries.ts";
import { eventually } from "../support/eventually.ts";
import { LossyEtcd } from "./lossy-etcd.ts";
import type { Loss } from "./one-way-proxy.ts";

if (havePartsOrSkip(["etcd"])) {
  describe("a claim that is created with its reservations", () => {
    const etcd = new LossyEtcd();

    const status = {
      attachment: {
        ...{ node: "host-a", containerID: "box", interface: "eth0", podUID: "" },
        ...{ since: 1, detached: false },
      },
    } as const;

    function create(store: Store, name: string, ...texts: readonly string[]): Promise<ClaimCreated> {
      const addresses = texts.map((text) => addr(text));
      const claim = bareClaim(name, { addresses, nonce: name, status });
      const key = { namespace: claim.namespace, name };
      const wanted = addresses.map((address) => reservationOf(address, { nonce: name, claim: key }));
      return store.createClaim?.(claim, wanted) ?? assert.fail("the store cannot");
    }

    const held = async () => (await listed(etcd.far, "reservation")).map(({ key }) => key).toSorted();
    const claims = async () => (await listed(etcd.far, "claim")).map(({ key }) => key).toSorted();

    it("is there with all of them, status included, as of one revision", async () => {
      const made = await create(etcd.near, "both", "10.20.2.1", "fd00:20::1");
      assert.equal(made.kind, "created");
      if (made.kind !== "created") return;
      assert.deepEqual(made.claim, await etcd.far.get("claim", "shop/both"));
      assert.deepEqual(made.claim.record.status, status);
      for (const stored of made.reservations)
        assert.deepEqual(stored, await etcd.far.get("reservation", stored.key));
      const revisions = [made.claim, ...made.reservations].map(({ revision }) => revision);
      assert.equal(new Set(revisions).size, 1);
      const next = await etcd.near.report(made.claim, { message: "changed" });
      assert.equal(next.kind, "replaced", "it may be changed without another look");
    });

    it("writes nothing where one of them is there, and says which", async () => {
      await created(etcd.far, "reservation", reservationOf(addr("10.20.2.3"), { nonce: "other" }));
      const before = [await held(), await claims()];
      assert.deepEqual(await create(etcd.near, "late", "10.20.2.2", "10.20.2.3"), {
        ...{ kind: "exists", claim: false },
        addresses: [addr("10.20.2.3")],
      });
      assert.deepEqual(await create(etcd.near, "both", "10.20.2.4"), {
        ...{ kind: "exists", claim: true, addresses: [] },
      });
      assert.deepEqual([await held(), await claims()], before);
    });

    it("goes to one of any number that want it at once", async () => {
      const all = await Promise.all(
        Array.from({ length: 30 }, (_, i) =>
          create(i % 2 ? etcd.near : etcd.far, `race-${i}`, `10.20.3.${i % 3}`),
        ),
      );
      assert.equal(all.filter(({ kind }) => kind === "created").length, 3);
      assert.equal((await claims()).filter((key) => key.startsWith("shop/race-")).length, 3);
      const same = await Promise.all(
        Array.from({ length: 10 }, (_, i) => create(i % 2 ? etcd.near : etcd.far, "same", `10.20.4.${i}`)),
      );
      assert.equal(same.filter(({ kind }) => kind === "created").length, 1);
      assert.equal((await held()).filter((key) => key.startsWith("10.20.4.")).length, 1);
    });

    function losing(loss: Loss, name: string, address: string, meanwhile: () => Promise<unknown>) {
      return etcd.losing(loss, () => create(etcd.near, name, address), meanwhile);
    }
    const arrived = (name: string) =>
      eventually(`${name} is written`, () => etcd.far.get("claim", `shop/${name}`));

    it("is known for one's own when its answer is lost, though another has changed it since", async () => {
      const made = await losing("answers", "lost", "10.20.5.1", () => arrived("lost"));
      assert.equal(made.kind, "created");
      const changed = await losing("answers", "changed", "10.20.5.2", async () => {
        const there = await arrived("changed");
        await etcd.far.report(there, { message: "changed" });
      });
      assert.equal(changed.kind === "created" && changed.claim.record.status.message, "changed");
    });

    it("is not one's own when it never arrived and another has made it", async () => {
      const claim = await losing("requests", "theirs", "10.20.5.3", () =>
        create(etcd.far, "theirs", "10.20.5.4"),
      );
      assert.deepEqual(claim, { kind: "exists", claim: true, addresses: [] });
      const address = await losing("requests", "mine", "10.20.5.5", () =>
        create(etcd.far, "other", "10.20.5.5"),
      );
      assert.deepEqual(address, { kind: "exists", claim: false, addresses: [addr("10.20.5.5")] });
      assert.ok(!(await held()).includes("10.20.5.3"));
    });

    it("is not one's own when what was written is gone again, in part", async () => {
      const made = await losing("answers", "gone", "10.20.5.6", async () => {
        await arrived("gone");
        const there = (await etcd.far.get("reservation", "10.20.5.6")) ?? assert.fail();
        await etcd.far.remove("reservation", there);
      });
      assert.deepEqual(made, { kind: "exists", claim: true, addresses: [] });
    });
  });
}
