// SPDX-License-Identifier: Apache-2.0
// Berth's records are Berth's to write, webhook or none: claims but for what people say in them, reservations, status.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import {
  CLAIMS,
  collectionPath,
  itemPath,
  NAMESPACES,
  POOLS,
  RESERVATIONS,
} from "../../kube/api/resource.ts";
import { bindingTo, claimRecord, reservationRecord } from "../support/fixtures.ts";
import { claimObject, poolObject } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { listItems } from "./list-items.ts";
import { PolicyBench } from "./policy-bench.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the policies of records, with no webhook there", () => {
    let bench: PolicyBench;
    const create = (...args: Parameters<PolicyBench["create"]>) => bench.create(...args);
    const patch = (...args: Parameters<PolicyBench["patch"]>) => bench.patch(...args);

    before(async () => {
      bench = await PolicyBench.start();
    });
    after(() => bench?.close());

    describe("of claims", () => {
      const place = (name: string) => itemPath(CLAIMS, { namespace: "shop", name });
      const yours = (field: string, how = "leave it as it is") =>
        `claims.berth.dev: spec.${field} is written by berth; ${how}`;
      const bound = claimRecord({
        name: "bound",
        binding: bindingTo("bound", "node-a"),
        status: {},
      });

      before(async () => {
        await bench.store.create("claim", bound);
      });

      it("leave to people what they say, and to Berth what it says", async () => {
        assert.equal(await create(claimObject("own", { request: { pools: ["db"] } })), "");
        assert.equal(
          await create(claimObject("hand", { request: { pools: ["db"] }, handMade: true })),
          yours("handMade", "leave it out"),
        );
        const admittedAt = "2026-01-01T00:00:00Z";
        assert.equal(
          await create(claimObject("hand", { request: { pools: ["db"] }, admittedAt })),
          yours("admittedAt", "leave it out"),
        );
        const { status: _, namespace: __, name: ___, binding: ____, ...rest } = bound;
        const { ttlMs: _____, ...retention } = rest.retention;
        assert.equal(
          await create(claimObject("forged", { ...rest, retention })),
          yours("addresses", "leave it out"),
        );
        assert.equal(
          await patch(place("own"), { spec: { request: { pools: ["web"] }, retention: { ttl: "1h" } } }),
          "",
        );
        assert.equal(await patch(place("own"), { metadata: { labels: { team: "shop" } } }), "");
      });

      it("refuse every change of Berth's own fields, and of its finalizer", async () => {
        const since = "2026-01-01T00:00:00Z";
        for (const [field, value] of Object.entries({
          addresses: ["10.20.0.99"],
          nonce: "n2",
          binding: null,
          retained: { since, because: "deleted" },
          admittedAt: since,
          handMade: true,
          releasing: true,
        })) {
          assert.equal(await patch(place("bound"), { spec: { [field]: value } }), yours(field));
        }
        assert.equal(
          await patch(place("bound"), { spec: { binding: { node: "node-b" } } }),
          yours("binding"),
        );
        assert.equal(
          await patch(place("bound"), { spec: { identity: { name: "other" } } }),
          "claims.berth.dev: spec.identity is written by berth; leave it as it is",
        );
        assert.match(
          await patch(place("bound"), { metadata: { finalizers: null } }),
          /^claims\.berth\.dev: finalizer berth\.dev\/in-use is taken away by berth when the sandbox has ended/,
        );
        assert.equal(
          await patch(`${place("bound")}/status`, { status: { message: "it is mine" } }),
          "claims.berth.dev: the status of a claim is written by berth",
        );
        const stored = (await bench.store.get("claim", "shop/bound")) ?? assert.fail();
        assert.deepEqual({ ...stored.record, status: bound.status }, bound);
      });

      it("bound what a claim may carry beside what it says, and let who takes away go on", async () => {
        const many = (n: number, value: string, prefix = "k") =>
          Object.fromEntries(Array.from({ length: n }, (_, i) => [`${prefix}${i}`, value]));
        const full = (field: string, n: number) =>
          `claims.berth.dev: metadata.${field} has more than ${n} entries; take some away`;
        const owners = (n: number, uid = "u") =>
          Array.from({ length: n }, (_, i) => ({
            apiVersion: "v1",
            kind: "Pod",
            name: `p${i}`,
            uid: `${uid}${i}`,
          }));
        const names = (n: number) => Array.from({ length: n }, (_, i) => `shop.example/f${i}`);
        const object = claimObject("big", { request: { pools: ["db"] } });
        const having = (more: object) => ({
          ...object,
          metadata: { name: "big", namespace: "shop", ...more },
        });
        assert.equal(await create(having({ labels: many(65, "v") })), full("labels", 64));
        const annotations = many(64, "v".repeat(3_000));
        assert.equal(await create(having({ labels: many(64, "v"), annotations })), "");
        for (const [field, value, most] of [
          ["labels", many(65, "v"), 64],
          ["annotations", many(65, "v"), 64],
          ["ownerReferences", owners(17), 16],
          ["finalizers", names(17), 16],
        ] as const)
          assert.equal(await patch(place("big"), { metadata: { [field]: value } }), full(field, most));
        assert.equal(
          await patch(place("big"), { metadata: { ownerReferences: owners(1, "u".repeat(400)) } }),
          "claims.berth.dev: metadata.ownerReferences has an entry with a text of more than 317 characters",
        );
        const most = { ownerReferences: owners(16), finalizers: names(16) };
        assert.equal(await patch(place("big"), { metadata: most }), "");
        assert.equal(await patch(place("big"), { metadata: { finalizers: names(3) } }), "");
        assert.equal(await patch(place("big"), { metadata: { finalizers: [] } }), "");
      });

      it("bound who has written what of a claim", async () => {
        const apply = (n: number) =>
          bench.admin.call({
            method: "PATCH",
            path: place("big"),
            query: { fieldManager: `tool-${n}` },
            contentType: "application/apply-patch+yaml",
            body: {
              apiVersion: "berth.dev/v1alpha1",
              kind: "IPClaim",
              metadata: { name: "big", namespace: "shop", annotations: { k0: "v".repeat(3_000) } },
            },
          });
        for (let n = 0; n < 15; n++) assert.equal(bench.outcome(await apply(n)), "", `tool ${n}`);
        assert.equal(
          bench.outcome(await apply(15)),
          "claims.berth.dev: metadata.managedFields has more than 16 entries; take some away",
        );
      });

      it("let Berth write all of it, and the garbage collector and whoever deletes do their work", async () => {
        const seen = (await bench.store.get("claim", "shop/bound")) ?? assert.fail();
        const { binding: _, ...rest } = seen.record;
        assert.equal(
          (
            await bench.store.replace("claim", seen, {
              ...rest,
              retained: { since: 1_800_000_000_000, because: "deleted" },
            })
          ).kind,
          "replaced",
        );
        await new Client(bench.admin, CLAIMS).remove({ namespace: "shop", name: "own" }, await seenOf("own"));
        const all = await bench.admin.call({ method: "DELETE", path: collectionPath(CLAIMS, "shop") });
        assert.equal(bench.outcome(all), "");
        assert.deepEqual(await listItems(new Client(bench.admin, CLAIMS)), []);
      });

      async function seenOf(name: string): Promise<{ uid: string; resourceVersion: string }> {
        return (
          (await new Client(bench.admin, CLAIMS).get({ namespace: "shop", name }))?.metadata ?? assert.fail()
        );
      }
    });

    it("leave the books to Berth, and to an administrator who acts as Berth", async () => {
      const { releasedAt: _, ...spec } = { ...reservationRecord("10.20.0.70"), releasedAt: undefined };
      const object = {
        apiVersion: "berth.dev/v1alpha1",
        kind: "IPReservation",
        metadata: { name: "10.20.0.70" },
        spec,
      };
      assert.equal(
        await create(object),
        "records.berth.dev: reservations are written by berth; make an IPClaim to reserve an address",
      );
      assert.equal(
        (await bench.store.create("reservation", reservationRecord("10.20.0.70"))).kind,
        "created",
      );
      const path = itemPath(RESERVATIONS, { name: "10.20.0.70" });
      const words =
        "records.berth.dev: reservations are written by berth; delete the IPClaim to give an address back";
      assert.equal(await patch(path, { spec: { releasedAt: "2026-01-01T00:00:00Z" } }), words);
      const deleted = await bench.admin.call({ method: "DELETE", path });
      assert.equal(bench.outcome(deleted), words);
      const as = "--as=system:serviceaccount:berth-system:berth-webhook";
      const { rc, stderr } = await bench.plane.kubectl([as, "delete", "ipreservation", "10.20.0.70"]);
      assert.equal(rc, 0, stderr);
    });

    it("leave a pool to people, but for its status", async () => {
      assert.equal(await create(poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }] })), "");
      const path = itemPath(POOLS, { name: "db" });
      assert.equal(await patch(path, { spec: { disabled: true } }), "");
      assert.equal(
        await patch(`${path}/status`, { status: { reserved: 0 } }),
        "records.berth.dev: the status of a pool is written by berth",
      );
      assert.equal(await patch(`${path}/status`, { status: { reserved: 0 } }, bench.webhook), "");
    });

    it("stand in the way of nobody who deletes a namespace", async () => {
      const { rc, stderr } = await bench.plane.kubectl(["delete", "namespace", "shop", "--wait=false"]);
      assert.equal(rc, 0, stderr);
      assert.ok(await new Client(bench.admin, NAMESPACES).get({ name: "shop" }));
    });
  });
}
