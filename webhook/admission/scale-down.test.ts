// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { pod, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";

const PATH = "/validate/workloads";
const set = (replicas: number, more = {}) =>
  workload("StatefulSet", "mysql", {
    replicas,
    annotations: { "berth.dev/ips": "10.20.0.70-10.20.0.77", ...more },
  });

const kruiseSet = (replicas: number, reserveOrdinals: readonly unknown[], more = {}) => ({
  ...workload("StatefulSet", "mysql", {
    ...{ replicas, spec: { reserveOrdinals } },
    annotations: { "berth.dev/ips": "10.20.0.70-10.20.0.77", ...more },
  }),
  apiVersion: "apps.kruise.io/v1beta1",
});

describe("a StatefulSet that is scaled down", () => {
  for (const [title, annotations, words] of [
    [
      "is told what is kept, and for how long",
      {},
      "keeps 10.20.0.71 for 720h after its pod is gone; to give it back then: berthctl release shop/mysql-1",
    ],
    [
      "by a ttl of its own",
      { "berth.dev/ttl": "48h" },
      "keeps 10.20.0.71 for 48h after its pod is gone; to give it back then: berthctl release shop/mysql-1",
    ],
    [
      "and what is given back",
      { "berth.dev/when-scaled": "Release" },
      "gives 10.20.0.71 back once its pod is gone",
    ],
  ] as const) {
    it(title, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      await send(world, PATH, set(2, annotations));
      const change = { operation: "UPDATE", oldObject: set(2, annotations) } as const;
      const { allowed, warnings } = await send(world, PATH, set(1, annotations), change);
      assert.deepEqual([allowed, warnings], [true, [`mysql-1 ${words}`]]);
    });
  }

  for (const [title, limits, words] of [
    [
      "is told what its pool keeps of that at most",
      { retention: { perNamespace: 1 } },
      [
        "pool db keeps 1 more of namespace shop by its limits.retention.perNamespace: the addresses of mysql-1, mysql-2, mysql-3, but for 1 of them, are given back once their pods are gone",
      ],
    ],
    [
      "or that it keeps none",
      { retention: { perNamespace: 0 } },
      [
        "pool db keeps no more of namespace shop by its limits.retention.perNamespace: the addresses of mysql-1, mysql-2, mysql-3 are given back once their pods are gone",
      ],
    ],
    [
      "or none for any time",
      { retention: { ttl: "0s" } },
      [1, 2, 3].map((n) => `mysql-${n} gives 10.20.0.7${n} back once its pod is gone`),
    ],
  ] as const) {
    it(title, async () => {
      await using world = await openWorld({ pools: [{ ...DB_POOL, spec: { ...DB_POOL.spec, limits } }] });
      await send(world, PATH, set(4));
      const change = { operation: "UPDATE", oldObject: set(4) } as const;
      assert.deepEqual((await send(world, PATH, set(1), change)).warnings, words);
    });
  }

  it("is told nothing when it grows, or stays, and not of hundreds one by one", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, PATH, set(8));
    for (const replicas of [8, 7]) {
      const change = { operation: "UPDATE", oldObject: set(7) } as const;
      assert.equal((await send(world, PATH, set(replicas), change)).warnings, undefined);
    }
    const { warnings = [] } = await send(world, PATH, set(0), { operation: "UPDATE", oldObject: set(8) });
    assert.equal(warnings.length, 6);
    assert.equal(warnings.at(-1), "and so for 3 more; see: berthctl get claims");
  });

  it("loses its last ordinal, whichever OpenKruise leaves out before it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const kruise = (replicas: number) => kruiseSet(replicas, [1]);
    await send(world, PATH, kruise(3));
    const { warnings } = await send(world, PATH, kruise(2), { operation: "UPDATE", oldObject: kruise(3) });
    assert.deepEqual(
      (warnings ?? []).map((one) => one.split(" keeps")[0]),
      ["mysql-3"],
    );
  });
});

describe("the list of a set with ordinals that OpenKruise leaves out", () => {
  const short = (list: string, reserved: readonly unknown[]) =>
    kruiseSet(3, reserved, { "berth.dev/ips": list });

  it("has to reach to the last one", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { allowed, status } = await send(world, PATH, short("10.20.0.70-10.20.0.72", [1]));
    assert.deepEqual([allowed, status?.message.includes("none for ordinal 3")], [false, true]);
    const enough = short("10.20.0.70-10.20.0.72", []);
    assert.equal((await send(world, PATH, enough)).allowed, true);
    const change = { operation: "UPDATE", oldObject: enough } as const;
    const left = await send(world, PATH, short("10.20.0.70-10.20.0.72", ["0-1"]), change);
    assert.match(left.status?.message ?? "", /none for ordinal 3;/);
  });

  it("may have an address that is taken where there is no pod, and none that the last one needs", async () => {
    for (const taken of [1, 3]) {
      await using world = await openWorld({ pools: [DB_POOL] });
      await send(
        world,
        "/mutate/pods",
        pod("other", { annotations: { "berth.dev/ips": `10.20.0.7${taken}` } }),
      );
      const { allowed, status } = await send(world, PATH, short("10.20.0.70-10.20.0.73", [1]));
      assert.equal(allowed, taken === 1, status?.message);
    }
  });
});
