// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import { bindingTo, DB_POOL, granted } from "../../test/support/fixtures.ts";
import {
  deniedAs,
  type Json,
  ownedBy,
  pod,
  review,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { validateWorkloads } from "./validate-workload.ts";

const BEFORE = "10.20.0.70;10.20.0.71;10.20.0.72";

function set(ips: string, spec: Json = {}): Json {
  const annotations = { "berth.dev/ips": ips };
  return workload("StatefulSet", "mysql", { replicas: 3, annotations, spec });
}

/** The set, whose pods all run. */
async function running(first = 0): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL] });
  const made = set(BEFORE, first === 0 ? {} : { ordinals: { start: first } });
  assert.equal(deniedAs(await send(world, "/validate/workloads", made)), "");
  for (const n of [0, 1, 2]) await bindToPod(world, first + n);
  await world.settle();
  return world;
}

async function bindToPod(world: World, ordinal: number, owner: Json = {}): Promise<void> {
  const name = `mysql-${ordinal}`;
  const seen = await world.realStore.get("claim", `shop/${name}`);
  assert.ok(seen);
  await world.realStore.replace("claim", seen, { ...seen.record, binding: bindingTo(name, "node-a") });
  const made = statefulPod("mysql", ordinal, {
    uid: `uid-${name}`,
    owner: { ...ownedBy("StatefulSet", "mysql"), ...owner },
  });
  await world.objects.keep(granted(readObject(made)));
}

async function edited(world: World, object: Json): Promise<string> {
  return deniedAs(await send(world, "/validate/workloads", object, { operation: "UPDATE" }));
}

/** As of a pod that waits for its node. */
async function unbound(world: World, key: string): Promise<void> {
  const seen = await world.realStore.get("claim", key);
  assert.ok(seen);
  const { binding: _, ...record } = seen.record;
  await world.realStore.replace("claim", seen, record);
  await world.settle();
}

/** There the reviews only look ahead. */
async function inCluster(world: World, object: Json, onPod: () => void = () => {}): Promise<string> {
  const { embedded: _, ...admission } = world.admission;
  const { objects } = world;
  const inventory: ClusterState = {
    pod: async (namespace, name) => {
      onPod();
      return await objects.pod(namespace, name);
    },
    workload: async (ref) => await objects.workload(ref),
    namespace: async (name) => await objects.namespace(name),
    fenced: async (node) => await objects.fenced(node),
    admittedWith: async () => undefined,
  };
  const request = review(object, "UPDATE", { oldObject: set(BEFORE) });
  const judge = validateWorkloads({ ...admission, inventory });
  return deniedAs(await judge(request, new AbortController().signal));
}

describe("an edited list", () => {
  it("whose entries are exchanged is refused: they wait for each other", async () => {
    await using world = await running();
    const words = await edited(world, set("10.20.0.71;10.20.0.70;10.20.0.72"));
    assert.equal(
      words,
      "ADDRESS_TAKEN: these wait for each other for ever: mysql-0 waits for 10.20.0.71, which mysql-1 has, and mysql-1 waits for 10.20.0.70, which mysql-0 has; give one of them an address that is free first, and exchange them in two steps",
    );
    const onDelete = { updateStrategy: { type: "OnDelete" } };
    assert.match(
      await edited(world, set("10.20.0.71;10.20.0.72;10.20.0.70", onDelete)),
      /wait for each other/,
    );
  });

  it("that is shifted is refused where the rollout comes to the holder later, and passes where it came before", async () => {
    await using world = await running();
    assert.equal(
      await edited(world, set("10.20.0.80;10.20.0.70;10.20.0.71")),
      "ADDRESS_TAKEN: mysql-1 waits for 10.20.0.70, which mysql-0 has, and mysql-0 gives it up only after mysql-1 is running again: such a rollout does not end; leave the addresses where they are and give new ones to those that change",
    );
    assert.equal(await edited(world, set("10.20.0.71;10.20.0.72;10.20.0.80")), "");
    const onDelete = { updateStrategy: { type: "OnDelete" } };
    assert.equal(await edited(world, set("10.20.0.80;10.20.0.70;10.20.0.71", onDelete)), "");
  });

  it("is refused where a partition keeps what another pod waits for", async () => {
    await using world = await running();
    const kept = { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } };
    assert.match(
      await edited(world, set("10.20.0.80;10.20.0.81;10.20.0.71", kept)),
      /^ADDRESS_TAKEN: mysql-2 waits for 10\.20\.0\.71, which mysql-1 has/,
    );
    assert.equal(await edited(world, set("10.20.0.71;10.20.0.70;10.20.0.80", kept)), "");
  });

  it("is judged by a partition that counts from the first ordinal, wherever that is", async () => {
    await using world = await running(3);
    const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: 2 } };
    const kept = { ordinals: { start: 3 }, updateStrategy };
    assert.equal(await edited(world, set("10.20.0.71;10.20.0.70;10.20.0.80", kept)), "");
    assert.match(
      await edited(world, set("10.20.0.80;10.20.0.81;10.20.0.71", kept)),
      /^ADDRESS_TAKEN: mysql-5 waits for 10\.20\.0\.71, which mysql-4 has/,
    );
  });

  describe("of OpenKruise's StatefulSet", () => {
    const kruise = (ips: string, rollingUpdate: Json) => {
      const updateStrategy = { type: "RollingUpdate", rollingUpdate };
      const spec = { reserveOrdinals: [1], updateStrategy };
      return { ...set(ips, spec), apiVersion: "apps.kruise.io/v1beta1" };
    };
    const BEFORE_HOLE = "10.20.0.70;10.20.0.79;10.20.0.72;10.20.0.73";
    /** With ordinals 0, 2 and 3, whose pods run. */
    async function runningWithHole(): Promise<World> {
      const world = await openWorld({ pools: [DB_POOL] });
      const owner = { apiVersion: "apps.kruise.io/v1beta1" };
      assert.equal(deniedAs(await send(world, "/validate/workloads", kruise(BEFORE_HOLE, {}))), "");
      for (const ordinal of [0, 2, 3]) await bindToPod(world, ordinal, owner);
      await world.settle();
      return world;
    }

    it("is judged by a partition that counts pods, and not the ordinals that it leaves out", async () => {
      await using world = await runningWithHole();
      const said = async (ips: string, partition: number) => await edited(world, kruise(ips, { partition }));
      // 0 and 2 are kept, and so what they are to have is nobody's matter
      assert.equal(await said("10.20.0.72;10.20.0.79;10.20.0.70;10.20.0.73", 2), "");
      assert.match(
        await said("10.20.0.72;10.20.0.79;10.20.0.70;10.20.0.73", 1),
        /^ADDRESS_TAKEN: mysql-2 waits for 10\.20\.0\.70, which mysql-0 has/,
      );
      assert.match(
        await said("10.20.0.70;10.20.0.79;10.20.0.80;10.20.0.72", 2),
        /^ADDRESS_TAKEN: mysql-3 waits for 10\.20\.0\.72, which mysql-2 has/,
      );
    });

    it("is refused for no order, where the pods' labels decide on that, and for a circle", async () => {
      await using world = await runningWithHole();
      const priorityStrategy = { orderPriority: [{ orderedKey: "role" }] };
      const said = async (ips: string, more: Json = {}) =>
        await edited(world, kruise(ips, { unorderedUpdate: { priorityStrategy }, ...more }));
      const [shifted, exchanged] = [
        "10.20.0.80;10.20.0.79;10.20.0.70;10.20.0.72",
        "10.20.0.72;10.20.0.79;10.20.0.70;10.20.0.73",
      ];
      assert.match(await edited(world, kruise(shifted, { unorderedUpdate: {} })), /^ADDRESS_TAKEN: mysql-/);
      assert.equal(await said(shifted), "");
      assert.match(await said(exchanged), /these wait for each other for ever/);
      assert.equal(await said(exchanged, { partition: 1 }), "", "one of the two may be kept");
    });
  });

  it("that is shifted is judged by which pods are replaced together, and those are created from the lowest ordinal on", async () => {
    await using world = await running();
    const said = async (ips: string, maxUnavailable: number | string) => {
      const updateStrategy = { type: "RollingUpdate", rollingUpdate: { maxUnavailable } };
      const words = await edited(world, set(ips, { updateStrategy }));
      return words.slice(0, words.indexOf(","));
    };
    const waits = (name: string, address: string) => `ADDRESS_TAKEN: ${name} waits for ${address}`;
    const [down, up] = ["10.20.0.71;10.20.0.72;10.20.0.80", "10.20.0.80;10.20.0.70;10.20.0.71"];
    assert.equal(await said(down, 3), waits("mysql-0", "10.20.0.71"));
    assert.equal(await said(up, 3), "");
    for (const two of [2, "67%"]) {
      assert.equal(await said(down, two), waits("mysql-1", "10.20.0.72"));
      assert.equal(await said("10.20.0.71;10.20.0.80;10.20.0.72", two), "");
      assert.equal(await said("10.20.0.70;10.20.0.80;10.20.0.71", two), "");
      assert.equal(await said(up, two), waits("mysql-1", "10.20.0.70"));
    }
    assert.equal(await said(down, "10%"), "", "one at a time");
  });

  it("is judged by the pods that are there, and not by what their claims say of sandboxes", async () => {
    const [down, up] = ["10.20.0.71;10.20.0.72;10.20.0.80", "10.20.0.80;10.20.0.70;10.20.0.71"];
    const parallel = { podManagementPolicy: "Parallel" };
    {
      // it waits for a node, or for a sandbox that is made again: it is deleted in its turn, as any
      await using world = await running();
      await unbound(world, "shop/mysql-1");
      let asked = 0;
      for (const spec of [{}, parallel])
        assert.equal(await inCluster(world, set(down, spec), () => asked++), "");
      assert.equal(asked, 2 * 3, "once for each pod, however often the review is read ahead");
    }
    {
      // what somebody else has it does not wait for
      await using world = await running();
      await createPod(world, pod("other", { annotations: { "berth.dev/ips": "10.20.0.90" } }), "other");
      await unbound(world, "shop/mysql-1");
      assert.match(await inCluster(world, set("10.20.0.70;10.20.0.90;10.20.0.72")), /is held by shop\/other/);
    }
    {
      // it is gone, on a node that nobody hears of: it is made anew before any other is deleted, and asks by the new list
      await using world = await running();
      await world.objects.forget("Pod", "shop", "mysql-1");
      for (const [list, address, holder] of [
        [down, "10.20.0.72", "mysql-2"],
        [up, "10.20.0.70", "mysql-0"],
      ] as const)
        for (const spec of [{}, parallel])
          assert.equal(
            await inCluster(world, set(list, spec)),
            `ADDRESS_TAKEN: mysql-1 waits for ${address}, which ${holder} has, and ${holder} gives it up only after mysql-1 is there, whose pod is missing now: such a rollout does not end; leave the addresses where they are and give new ones to those that change`,
          );
      assert.equal(await inCluster(world, set("10.20.0.70;10.20.0.80;10.20.0.72")), "");
      const onDelete = { updateStrategy: { type: "OnDelete" } };
      assert.equal(
        await inCluster(world, set(up, onDelete)),
        "",
        "when somebody deletes mysql-0, that is made first",
      );
      assert.match(
        await inCluster(world, set(down, onDelete)),
        /^ADDRESS_TAKEN: mysql-1 waits for 10\.20\.0\.72/,
      );
      assert.equal(
        await inCluster(world, set(down, { ...onDelete, ...parallel })),
        "",
        "and mysql-2 with it",
      );
      assert.equal(await edited(world, set(down)), "", "on one host it may run without having been applied");
    }
    {
      // nothing that waits is made before what it waits for is
      await using world = await running();
      for (const name of ["mysql-1", "mysql-2"]) await world.objects.forget("Pod", "shop", name);
      assert.match(
        await inCluster(world, set("10.20.0.70;10.20.0.72;10.20.0.80")),
        /^ADDRESS_TAKEN: mysql-1 waits for 10\.20\.0\.72, which mysql-2 has, .* whose pod is missing now/,
      );
      assert.equal(await inCluster(world, set("10.20.0.70;10.20.0.80;10.20.0.71")), "");
      assert.equal(await inCluster(world, set("10.20.0.70;10.20.0.72;10.20.0.80", parallel)), "");
    }
  });

  it("that has for a new ordinal what another one is to give up is refused: the new pod is made before any is deleted", async () => {
    await using world = await running();
    const grown = (spec: Json) =>
      set("10.20.0.70;10.20.0.80;10.20.0.72;10.20.0.71", { replicas: 4, ...spec });
    for (const spec of [{}, { podManagementPolicy: "Parallel" }])
      assert.match(
        await inCluster(world, grown(spec)),
        /^ADDRESS_TAKEN: pod mysql-3: address 10\.20\.0\.71 .* is held by shop\/mysql-1/,
      );
  });

  it("is refused a moment after its StatefulSet was made, too, whose claims are on their way", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { embedded: _, ...admission } = world.admission;
    const said = async (now: Json, before: Json) => {
      const request = review(now, "UPDATE", { oldObject: before });
      return deniedAs(await validateWorkloads(admission)(request, new AbortController().signal));
    };
    assert.match(
      await said(set("10.20.0.71;10.20.0.70;10.20.0.72"), set(BEFORE)),
      /^ADDRESS_TAKEN: these wait for each other for ever: mysql-0 waits for 10\.20\.0\.71, which mysql-1 has/,
    );
    assert.equal(await said(set("10.20.0.80;10.20.0.70;10.20.0.71"), set(BEFORE)), "");
    assert.equal(await said(set("10.20.0.71;10.20.0.70;10.20.0.72"), set(BEFORE, { replicas: 0 })), "");
  });

  it("is refused, and not only warned of, where somebody else has an address of it", async () => {
    await using world = await running();
    await createPod(world, pod("other", { annotations: { "berth.dev/ips": "10.20.0.90" } }), "other");
    assert.match(
      await edited(world, set("10.20.0.70;10.20.0.71;10.20.0.90")),
      /^ADDRESS_TAKEN: pod mysql-2: address 10\.20\.0\.90 in pool "db" is held by shop\/other/,
    );
  });
});
