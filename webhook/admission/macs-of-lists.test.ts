// SPDX-License-Identifier: Apache-2.0
// Lists with MAC addresses, of pods whose networks say some themselves.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addressOfMac } from "../../allocator/ip/mac.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import {
  deniedAs,
  deploymentPod,
  type Json,
  review,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validateWorkloads } from "./validate-workload.ts";

const NEVER = new AbortController().signal;
const [FIRST, LAST] = [addressOfMac("02:00:00:00:00:00"), addressOfMac("02:00:00:00:00:ff")];
const POOLS = [
  poolRecord("web", ["10.20.0.0/24", "fd00:20::/120"]),
  poolRecord("macs", [], {
    ranges: [{ cidr: "fe80::/64", from: FIRST, to: LAST }],
    reserved: [`${FIRST}-${LAST}`],
  }),
];
const OURS = "02:00:00:00:00:51";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const lan = (mac: string) => ({ [NETWORKS]: JSON.stringify([{ name: "lan", mac }]) });

async function reported(world: World): Promise<readonly string[]> {
  await world.settle();
  return (await world.all("claim")).flatMap(({ record }) => formatHolding(record));
}

describe("a list whose pods' networks say a MAC address", () => {
  const LIST = {
    "berth.dev/ips": "10.20.0.7-10.20.0.9@net1",
    "berth.dev/mac": "02:00:00:00:00:50-02:00:00:00:00:52@net1",
  };

  it("gives the entry that has it, and holds no other for a pod that is refused", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { embedded: _, ...admission } = world.admission;
    const object = deploymentPod("web", { annotations: { ...LIST, ...lan(OURS) } });
    const ask = async (dryRun: boolean) =>
      await mutatePods(admission)({ ...review(object, "CREATE"), dryRun }, NEVER);
    assert.equal((await ask(true)).allowed, true);
    const first = await ask(false);
    assert.equal(first.allowed, true, first.status?.message);
    assert.deepEqual(await reported(world), ["10.20.0.8@net1", "fe80::ff:fe00:51@mac-net1"]);
    for (const dryRun of [true, false])
      assert.match(
        deniedAs(await ask(dryRun)),
        /^SET_EXHAUSTED: none of the 3 entries of the list can be used: .*; the pod's networks say another MAC address of net1 than berth\.dev\/mac; take one of the two out|^SET_EXHAUSTED: none of the 3 entries of the list can be used: the pod's networks say another MAC address of net1 than berth\.dev\/mac; take one of the two out; .*/,
      );
    assert.deepEqual(await reported(world), ["10.20.0.8@net1", "fe80::ff:fe00:51@mac-net1"]);
  });

  it("writes nothing for an ordinal whose entry has another one, on whichever of its interfaces", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { embedded: _, ...admission } = world.admission;
    const two = {
      "berth.dev/ips": "10.20.0.7@net1,10.20.0.17@net2;10.20.0.8@net1,10.20.0.18@net2",
      "berth.dev/mac": `02:00:00:00:00:50@net1,02:00:00:00:00:60@net2;${OURS}@net1,02:00:00:00:00:61@net2`,
      [NETWORKS]: JSON.stringify([
        { name: "lan", mac: "02:00:00:00:00:50" },
        { name: "wan", mac: "02:00:00:00:00:61" },
      ]),
    };
    for (const [annotations, name] of [
      [two, "net2"],
      [{ ...LIST, ...lan(OURS) }, "net1"],
    ] as const) {
      const object = statefulPod("mysql", 0, { annotations });
      for (const dryRun of [true, false])
        assert.equal(
          deniedAs(await mutatePods(admission)({ ...review(object, "CREATE"), dryRun }, NEVER)),
          `REQUEST_INVALID: the pod's networks say another MAC address of ${name} than berth.dev/mac; take one of the two out`,
        );
      assert.deepEqual(await reported(world), []);
    }
    const second = statefulPod("mysql", 1, { annotations: { ...LIST, ...lan(OURS) } });
    assert.equal((await mutatePods(admission)(review(second, "CREATE"), NEVER)).allowed, true);
  });

  it("is told who has the one entry with it, however many others there are", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { embedded: _, ...admission } = world.admission;
    const long = {
      "berth.dev/ips": "10.20.0.1-10.20.0.9@net1",
      "berth.dev/mac": "02:00:00:00:00:49-02:00:00:00:00:51@net1",
    };
    const object = deploymentPod("web", { annotations: { ...long, ...lan(OURS) } });
    const ask = async () => await mutatePods(admission)(review(object, "CREATE"), NEVER);
    const first = await ask();
    assert.equal(first.allowed, true, first.status?.message);
    await world.settle();
    assert.match(
      deniedAs(await ask()),
      /^SET_EXHAUSTED: none of the 9 entries of the list can be used: 10\.20\.0\.9,[^;]* \(web-slot-8\) is bound to a pod [^;]*; the pod's networks say [^;]*; take one of the two out; and 5 more$/,
    );
  });

  it("is refused as a StatefulSet with a pod that is none of it, and nothing is kept for the others", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { embedded: _, ...cluster } = world.admission;
    const refused =
      "the pod's networks say another MAC address of net1 than berth.dev/mac; take one of the two out";
    const set = (replicas: number, mac: string) =>
      workload("StatefulSet", "mysql", { replicas, annotations: { ...LIST, ...lan(mac) } });
    for (const admission of [cluster, world.admission]) {
      const ask = async (object: Json) => await validateWorkloads(admission)(review(object, "CREATE"), NEVER);
      assert.equal(deniedAs(await ask(set(3, OURS))), `REQUEST_INVALID: pod mysql-0: ${refused}`);
      assert.equal(
        deniedAs(await ask(set(3, "02:00:00:00:00:50"))),
        `REQUEST_INVALID: pod mysql-1: ${refused}`,
      );
      assert.equal(deniedAs(await ask(set(3, "06:00:00:00:00:50"))), `REQUEST_INVALID: ${refused}`);
      assert.deepEqual(await reported(world), []);
      assert.equal((await ask(set(1, "02:00:00:00:00:50"))).allowed, true);
    }
  });

  it("is refused as a Deployment that no entry is for", async () => {
    await using world = await openWorld({ pools: POOLS });
    const crossed = {
      "berth.dev/ips": "10.20.0.7@net1,10.20.0.17@net2;10.20.0.8@net1,10.20.0.18@net2",
      "berth.dev/mac": `02:00:00:00:00:50@net1,02:00:00:00:00:60@net2;${OURS}@net1,02:00:00:00:00:61@net2`,
      [NETWORKS]: JSON.stringify([
        { name: "lan", mac: "02:00:00:00:00:50" },
        { name: "wan", mac: "02:00:00:00:00:61" },
      ]),
    };
    const spec = { strategy: { type: "Recreate" } };
    const ask = async (annotations: Readonly<Record<string, string>>) =>
      await validateWorkloads(world.admission)(
        review(workload("Deployment", "web", { replicas: 1, annotations, spec }), "CREATE"),
        NEVER,
      );
    assert.match(deniedAs(await ask(crossed)), /another MAC address of net2 than berth\.dev\/mac/);
    assert.match(
      deniedAs(await ask({ ...LIST, ...lan("02:00:00:00:00:60") })),
      /another MAC address of net1 than berth\.dev\/mac/,
    );
    assert.equal((await ask({ ...LIST, ...lan(OURS) })).allowed, true, "one of its entries is");
  });

  it("is too short for a Deployment with more pods than entries that they can have", async () => {
    await using world = await openWorld({ pools: POOLS });
    const ask = async (replicas: number, type: string) => {
      const web = { replicas, annotations: { ...LIST, ...lan(OURS) }, spec: { strategy: { type } } };
      return await validateWorkloads(world.admission)(review(workload("Deployment", "web", web)), NEVER);
    };
    assert.equal(
      deniedAs(await ask(2, "Recreate")),
      "LIST_TOO_SHORT: the list has 1 entry (of 3) with the MAC address that the pods' networks say for 2 replicas; take the MAC address out of the networks or lower replicas",
    );
    assert.match(
      deniedAs(await ask(1, "RollingUpdate")),
      /it would never end: take the MAC address out of the networks, or set maxSurge 0/,
    );
    assert.equal((await ask(1, "Recreate")).allowed, true);
  });
});

describe("a workload that was let through although its networks say a MAC address", () => {
  const LIST = {
    "berth.dev/ips": "10.20.0.7-10.20.0.9@net1",
    "berth.dev/mac": "02:00:00:00:00:50-02:00:00:00:00:52@net1",
  };
  const ONE = { ...LIST, ...lan("02:00:00:00:00:50") };
  const NONE = { ...LIST, ...lan("06:00:00:00:00:50") };
  const recreate = { strategy: { type: "Recreate" } };
  const longer = { minReadySeconds: 5 };

  for (const [kind, annotations, warned] of [
    ["StatefulSet", ONE, /^it is refused as before: pod mysql-1: the pod's networks say another/],
    ["StatefulSet", NONE, /^pods of this StatefulSet are refused as before: the pod's networks say/],
    ["Deployment", ONE, /^pods of this Deployment are refused as before: the list has 1 entry \(of 3\)/],
    ["Deployment", NONE, /^pods of this Deployment are refused as before: the pod's networks say/],
  ] as const) {
    it(`is told so when something else changes: a ${kind} with ${annotations[NETWORKS]}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const { embedded: _, ...cluster } = world.admission;
      const of = (replicas: number, more: Json = {}) =>
        workload(kind, "mysql", { replicas, annotations, spec: { ...recreate, ...more } });
      for (const admission of [cluster, world.admission]) {
        const change = async (is: Json, oldObject = of(2)) =>
          await validateWorkloads(admission)(review(is, "UPDATE", { oldObject }), NEVER);
        const { allowed, warnings = [], status } = await change(of(2, longer));
        assert.equal(allowed, true, status?.message);
        assert.equal(warnings.filter((one) => warned.test(one)).length, 1, warnings.join("\n"));
        assert.equal((await change(of(1))).allowed, true, "it may be scaled down");
        assert.equal((await change(of(3))).allowed, false, "the third pod is new");
        const without = workload(kind, "mysql", { replicas: 2, annotations: LIST, spec: recreate });
        assert.equal((await change(of(2), without)).allowed, false, "the networks are new");
      }
    });
  }
});
