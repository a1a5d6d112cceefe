// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../../allocator/base/errors.ts";
import { requestFor } from "../../allocator/demand/build-request.ts";
import type { Reserved } from "../../allocator/lifecycle/allocation-request.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { IN_USE } from "../../allocator/store/kubernetes/objects.ts";
import { type KubeItem, POOLS } from "../../kube/api/resource.ts";
import { conditionsOf, generationOf } from "../../webhook/controllers/conditions.ts";
import type { ControllerDeps } from "../../webhook/controllers/controller.ts";
import { startPools } from "../../webhook/controllers/pools/controller.ts";
import { eventually } from "../support/eventually.ts";
import { applicantOf, granted, refusalOf } from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster } from "./controllers-cluster.ts";
import { SwitchedLeadership } from "./replica-deps.ts";

type Json = Readonly<Record<string, unknown>>;

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the pools controller on a real API server", () => {
    let cluster: ControllersCluster;
    before(async () => {
      cluster = await ControllersCluster.open();
    });
    after(() => cluster?.close());
    afterEach(() => cluster.endAll());

    const start = (over: Partial<ControllerDeps> = {}) =>
      cluster.start(startPools, { context: { ...cluster.context, clock: cluster.clock }, ...over });

    const applyPool = async (name: string, spec: Json) => {
      await cluster.apply(POOLS, { metadata: { name }, spec });
      await eventually("it is seen", () => cluster.replica.cache.poolRecord(name));
    };

    const take = async (pool: string, name: string) => {
      const identity = { kind: "Pod", apiVersion: "v1", name };
      const podIdentity = { kind: "named", claim: name, identity } as const;
      const input = applicantOf({ podIdentity, request: { pools: [pool] }, now: Date.now() });
      return await reserve(cluster.context, granted(requestFor(input)), "pod");
    };

    const letGo = async (claim: Reserved) => {
      const seen = await cluster.store.get("claim", claim.claim.key);
      assert.ok(seen);
      assert.equal(await release(cluster.context, seen), "released");
    };

    /** The numbers once they are as wanted. */
    const counts = async (name: string, wanted: Json) => {
      let seen: Json = {};
      try {
        await eventually("the numbers", async () => {
          cluster.clock.skip(1_000);
          const { conditions: _, ...numbers } = statusOf(await cluster.poolItem(name));
          seen = numbers;
          return isDeepStrictEqual(seen, wanted) ? true : undefined;
        });
      } catch {
        assert.deepEqual(seen, wanted);
      }
    };

    const finalizersOf = async (name: string) => (await cluster.poolItem(name)).metadata.finalizers ?? [];

    it("counts, says that the pool is open, and holds a finalizer while it is in use", async () => {
      start();
      await applyPool("both", { ranges: [{ cidr: "10.30.0.0/29" }, { cidr: "fd00:30::/64" }] });
      await counts("both", {
        reserved: 0,
        bound: 0,
        ipv4: { capacity: "6", reserved: 0, cooling: 0, bound: 0, free: "6" },
        ipv6: {
          capacity: "18446744073709551615",
          reserved: 0,
          cooling: 0,
          bound: 0,
          free: "18446744073709551615",
        },
      });
      const open = await cluster.condition(POOLS, "both", "Ready=True Open");
      assert.equal(open.observedGeneration, generationOf(await cluster.poolItem("both")));
      await cluster.condition(POOLS, "both", "Exhausted=False AddressesFree");
      await cluster.condition(POOLS, "both", "Invalid=False Valid");
      assert.deepEqual(await finalizersOf("both"), []);
      const claim = granted(await take("both", "dual"));
      await counts("both", {
        reserved: 2,
        bound: 0,
        ipv4: { capacity: "6", reserved: 1, cooling: 0, bound: 0, free: "5" },
        ipv6: {
          capacity: "18446744073709551615",
          reserved: 1,
          cooling: 0,
          bound: 0,
          free: "18446744073709551614",
        },
      });
      assert.deepEqual(await finalizersOf("both"), [IN_USE]);
      const target = { name: "dual", uid: "uid-of-dual", node: "node-a", token: "" };
      granted(
        await bind(cluster.context, "shop/dual", target, async () => ({ fenced: false, holdExpired: true })),
      );
      await counts("both", {
        reserved: 2,
        bound: 2,
        ipv4: { capacity: "6", reserved: 1, cooling: 0, bound: 1, free: "5" },
        ipv6: {
          capacity: "18446744073709551615",
          reserved: 1,
          cooling: 0,
          bound: 1,
          free: "18446744073709551614",
        },
      });
      await letGo(claim);
      await counts("both", {
        reserved: 0,
        bound: 0,
        ipv4: { capacity: "6", reserved: 0, cooling: 1, bound: 0, free: "5" },
        ipv6: {
          capacity: "18446744073709551615",
          reserved: 0,
          cooling: 1,
          bound: 0,
          free: "18446744073709551614",
        },
      });
      await eventually("the finalizer goes", async () =>
        (await finalizersOf("both")).length === 0 ? true : undefined,
      );
      const last = await cluster.condition(POOLS, "both", "Ready=True Open");
      assert.equal(last.lastTransitionTime, open.lastTransitionTime);
      assert.deepEqual(cluster.told("both"), []);
      const listed = await cluster.plane.kubectl(["get", "ippool", "both"]);
      assert.match(listed.stdout, /both +10\.30\.0\.0\/29 +5 +18446744073709551614 +0 +0 +True +Open/);
    });

    it("says when nothing is left, and when something is again", async () => {
      start();
      await applyPool("tiny", {
        ranges: [{ cidr: "10.31.0.0/30" }],
        reserved: ["10.31.0.1"],
        cooldown: "0s",
      });
      const claim = granted(await take("tiny", "only"));
      const condition = await cluster.condition(POOLS, "tiny", "Exhausted=True PoolExhausted");
      assert.equal(
        condition.message,
        "every IPv4 address that may be had without naming it is taken; add a range or release claims",
      );
      await cluster.condition(POOLS, "tiny", "Ready=True Full");
      await cluster.tells("tiny", ["Warning PoolExhausted"]);
      await letGo(claim);
      await cluster.collectAt(1_000);
      await cluster.condition(POOLS, "tiny", "Exhausted=False AddressesFree");
      await cluster.tells("tiny", ["Warning PoolExhausted", "Normal AddressesFree"]);
    });

    it("keeps a deleted pool until it holds nothing, and gives nothing of it meanwhile", async () => {
      start();
      await applyPool("doomed", { ranges: [{ cidr: "10.32.0.0/24" }] });
      const claim = granted(await take("doomed", "last"));
      await eventually("the finalizer", async () =>
        (await finalizersOf("doomed")).length === 1 ? true : undefined,
      );
      await cluster.delete(POOLS, "doomed");
      const condition = await cluster.condition(POOLS, "doomed", "Ready=False Deleting");
      const [address] = claim.claim.record.addresses;
      assert.equal(
        condition.message,
        `it was deleted and goes when what it still holds is released: ${address} (shop/last)`,
      );
      await cluster.tells("doomed", ["Warning Deleting"]);
      const refused = await take("doomed", "too-late");
      assert.equal(refusalOf(refused), 'POOL_DISABLED: pool "doomed" is being deleted; name another pool');
      assert.equal(isRefusal(await take("doomed", "last")), false);
      await letGo(claim);
      await eventually("the pool goes", async () =>
        (await cluster.find(POOLS, "doomed")) === undefined ? true : undefined,
      );
      await cluster.collectAt(1_000);
    });

    it("lets an empty pool be deleted at once", async () => {
      start();
      await applyPool("empty", { ranges: [{ cidr: "10.33.0.0/24" }] });
      await cluster.condition(POOLS, "empty", "Ready=True Open");
      await cluster.delete(POOLS, "empty");
      assert.equal(await cluster.find(POOLS, "empty"), undefined);
    });

    it("says what is wrong with a pool that passed no webhook, and that it is right again", async () => {
      start();
      await applyPool("wrong", { ranges: [{ cidr: "10.34.0.0/24" }, { cidr: "10.34.0.0/25" }] });
      const invalid = await cluster.condition(POOLS, "wrong", "Invalid=True PoolInvalid");
      assert.match(
        invalid.message,
        /^spec\.ranges\[1\] overlaps spec\.ranges\[0\] in 10\.34\.0\.1-10\.34\.0\.126/,
      );
      await cluster.condition(POOLS, "wrong", "Ready=False PoolInvalid");
      await cluster.condition(POOLS, "wrong", "Exhausted=Unknown PoolInvalid");
      await counts("wrong", { reserved: 0, bound: 0 });
      await cluster.tells("wrong", ["Warning PoolInvalid"]);
      await cluster.apply(POOLS, {
        metadata: { name: "wrong" },
        spec: { ranges: [{ cidr: "10.34.0.0/24" }] },
      });
      await cluster.condition(POOLS, "wrong", "Ready=True Open");
      await cluster.condition(POOLS, "wrong", "Invalid=False Valid");
      await cluster.tells("wrong", ["Warning PoolInvalid", "Normal Open"]);
    });

    it("says of two pools that they overlap, until one gives way", async () => {
      start();
      await applyPool("left", { ranges: [{ cidr: "10.39.0.0/24" }] });
      await applyPool("right", { ranges: [{ cidr: "10.39.0.128/25" }] });
      const overlapping = await cluster.condition(POOLS, "left", "Ready=False PoolOverlaps");
      assert.match(overlapping.message, /^pools left and right both contain 10\.39\.0\.129-10\.39\.0\.254; /);
      await cluster.condition(POOLS, "right", "Ready=False PoolOverlaps");
      await cluster.delete(POOLS, "right");
      await cluster.condition(POOLS, "left", "Ready=True Open");
    });

    it("says that a pool is disabled, once", async () => {
      start();
      await applyPool("shut", { ranges: [{ cidr: "10.35.0.0/24" }], disabled: true });
      await cluster.condition(POOLS, "shut", "Ready=False PoolDisabled");
      await cluster.tells("shut", ["Warning PoolDisabled"]);
    });

    it("writes nothing when nothing has changed, and once in 2 s while much does", async () => {
      start();
      await applyPool("busy", { ranges: [{ cidr: "10.36.0.0/24" }] });
      await cluster.condition(POOLS, "busy", "Ready=True Open");
      await cluster.endAll();
      const quiet = await cluster.poolItem("busy");
      start();
      await applyPool("marker", { ranges: [{ cidr: "10.37.0.0/24" }] });
      await cluster.condition(POOLS, "marker", "Ready=True Open");
      assert.deepEqual(await cluster.poolItem("busy"), quiet);
      await cluster.endAll();
      let versions = 0;
      const forget = cluster.replica.cache.onChange("pool", (name) => {
        if (name === "busy") versions++;
      });
      cluster.start(startPools); // with the clock of this host
      const began = Date.now();
      for (let n = 0; n < 40; n++) granted(await take("busy", `busy-${n}`));
      await counts("busy", {
        ...{ reserved: 40, bound: 0 },
        ipv4: { capacity: "254", reserved: 40, cooling: 0, bound: 0, free: "214" },
      });
      forget();
      const most = 1 + Math.ceil((Date.now() - began) / 2_000);
      assert.ok(versions <= most, `${versions} writes, ${most} at most`);
    });

    it("does nothing while another replica leads, and everything once it leads itself", async () => {
      const leadership = new SwitchedLeadership();
      start({ leadership });
      await applyPool("later", { ranges: [{ cidr: "10.38.0.0/24" }] });
      assert.deepEqual(conditionsOf(await cluster.poolItem("later")), []);
      leadership.set(true);
      await cluster.condition(POOLS, "later", "Ready=True Open");
    });
  });
}

function statusOf(item: KubeItem): Json {
  return (item as KubeItem & { readonly status?: Json }).status ?? {};
}
