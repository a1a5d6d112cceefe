// SPDX-License-Identifier: Apache-2.0
// Who needs a claim: pods that live, and what living workloads want. The clock leaps; ADDs go through build/berth.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { deployment, namespace, pod, podOf, pool, replicaOf, statefulSet } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import type { Manifest } from "../support/review.ts";
import { TimedStack } from "../support/timed-stack.ts";

const MANIFESTS = [
  namespace("shop"),
  namespace("lab", { annotations: { "berth.dev/pools": "db" } }),
  pool("db", ["10.20.0.0/24"]),
  pool("pins", ["10.30.0.0/24"], { cooldown: "1s" }),
];
/** Invariant 6: of what nobody needs any more, on a node that lives. */
const FREE_WITHIN_MS = 60_000;
/** A hold is over by then, and a few passes. */
const LONG_MS = 300_000;

describe("who needs a claim", () => {
  const site = new PlainStack(() => TimedStack.start({ manifests: MANIFESTS }));

  async function claims(ns: string): Promise<number> {
    return Object.keys(await site.stack.claims(ns)).length;
  }

  async function untilLeft(ns: string, count: number): Promise<void> {
    await site.stack.passTime(`${count} claims are left`, FREE_WITHIN_MS, async () =>
      (await claims(ns)) === count ? true : undefined,
    );
  }

  for (const [how, ns, annotations] of [
    ["by pool", "shop", { "berth.dev/pools": "db" }],
    ["to be sticky", "shop", { "berth.dev/sticky": "true" }],
    ["by its namespace's default", "lab", {}],
  ] as const) {
    it(`a Deployment that asks ${how} needs the addresses of its living pods alone`, async () => {
      const web = await site.api.create(deployment(ns, "web", { replicas: 2 }, annotations));
      const before = await claims(ns);
      const [a, b] = [await site.run(replicaOf(web)), await site.run(replicaOf(web))];
      await site.stack.clock.leap(LONG_MS, LONG_MS / 10);
      assert.equal(await claims(ns), before + 2, "nothing of living pods is released");
      await site.end(a);
      await untilLeft(ns, before + 1);
      await site.end(b);
      await untilLeft(ns, before);
      await site.api.delete(web);
    });
  }

  for (const phase of ["Succeeded", "Failed"] as const) {
    it(`a pod that has ${phase.toLowerCase()} gives up its slot when its sandbox has ended, and no sooner`, async () => {
      const ips = { "berth.dev/ips": "10.30.0.50" };
      const one = await site.api.create(deployment("shop", "one", { replicas: 1 }, ips));
      const first = await site.run(replicaOf(one));
      await site.api.report(first.kept, phase);
      await site.stack.clock.leap(LONG_MS, LONG_MS / 10);
      assert.equal(
        (await site.api.refusal(replicaOf(one))).reason,
        "SET_EXHAUSTED",
        "a phase proves nothing",
      );
      await site.runtime.detach(first.sandbox);
      await site.detached(first.kept);
      const second = await site.run(replicaOf(one));
      assert.deepEqual(second.addresses, first.addresses);
      await site.stack.clock.leap(LONG_MS, LONG_MS / 10);
      assert.equal((await site.stack.claim("shop/one-slot-0"))?.binding?.podName, second.kept.metadata.name);
      await site.api.delete(first.kept);
      await site.end(second);
      await site.api.delete(one);
      await untilLeft("shop", 0);
    });
  }

  it("an index of a Job is retried, and a CronJob runs again, beside pods that have ended", async () => {
    const ips = { "berth.dev/ips": "10.30.0.60;10.30.0.61" };
    const failed = await site.run(jobPod("train", 1, ips));
    await site.runtime.detach(failed.sandbox);
    await site.detached(failed.kept);
    await site.api.report(failed.kept, "Failed");
    const retried = await site.run(jobPod("train", 1, ips));
    assert.deepEqual([failed.addresses, retried.addresses], [["10.30.0.61/24"], ["10.30.0.61/24"]]);

    const once = { "berth.dev/ips": "10.30.0.70" };
    const first = await site.run(jobPod("report-1", undefined, once));
    await site.runtime.detach(first.sandbox);
    await site.detached(first.kept);
    await site.api.report(first.kept, "Succeeded");
    await untilLeft("shop", 1);
    await site.stack.clock.leap(5_000);
    assert.deepEqual((await site.run(jobPod("report-2", undefined, once))).addresses, first.addresses);
  });

  for (const [title, owned] of [
    ["a bare ReplicaSet", () => ownedPod({ kind: "ReplicaSet", apiVersion: "apps/v1", name: "bare" })],
    [
      "an Argo Rollout",
      () =>
        ownedPod(
          { kind: "ReplicaSet", apiVersion: "apps/v1", name: "canary-6f7b" },
          { "rollouts-pod-template-hash": "6f7b" },
        ),
    ],
    [
      "a StatefulSet of another API group",
      () => ownedPod({ kind: "StatefulSet", apiVersion: "apps.pingcap.com/v1", name: "tikv" }, {}, "tikv-0"),
    ],
    [
      "an owner of an unknown kind",
      () => ownedPod({ kind: "Workflow", apiVersion: "argoproj.io/v1alpha1", name: "etl" }),
    ],
  ] as const) {
    it(`the pod of ${title} keeps its address from its admission until it is gone`, async () => {
      await site.stack.clock.leap(5_000); // the address of the last one has cooled down
      const before = await claims("shop");
      const admitted = await site.api.ask({
        ...{ route: "/mutate/pods", operation: "CREATE", object: owned(), oldObject: null, dryRun: false },
      });
      assert.ok(admitted.allowed, admitted.message);
      await site.stack.clock.leap(60_000, 10_000);
      assert.equal(await claims("shop"), before + 1, "a hold younger than its term is kept");
      await site.stack.clock.leap(LONG_MS, LONG_MS / 10);
      assert.equal(await claims("shop"), before, "no longer than that");
      const running = await site.run(owned());
      await site.stack.clock.leap(LONG_MS, LONG_MS / 10);
      assert.equal(await claims("shop"), before + 1, "its pod lives");
      await site.end(running);
      await untilLeft("shop", before);
    });
  }

  it("a pod with the owner reference of a StatefulSet and another name keeps nothing when it is gone", async () => {
    const set = await site.api.create(
      statefulSet("shop", "mysql", { replicas: 1 }, { "berth.dev/pools": "db" }),
    );
    const before = await claims("shop");
    const misnamed = podOf(set, 0);
    const running = await site.run({ ...misnamed, metadata: { ...misnamed.metadata, name: "other" } });
    assert.equal(await claims("shop"), before + 1);
    await site.end(running);
    await untilLeft("shop", before);
    await site.api.delete(set);
    await untilLeft("shop", before - 1);
  });

  it("a StatefulSet whose template stops asking gives up its addresses as its pods are replaced", async () => {
    const asking = statefulSet("shop", "quiet", { replicas: 1 }, { "berth.dev/pools": "db" });
    const set = await site.api.create(asking);
    const before = await claims("shop");
    const old = await site.run(podOf(set, 0));
    const silent = await site.api.create(statefulSet("shop", "quiet", { replicas: 1 }, {}));
    await site.stack.clock.leap(LONG_MS, LONG_MS / 10);
    assert.equal(await claims("shop"), before, "the old pod lives");
    await site.runtime.detach(old.sandbox);
    await site.detached(old.kept);
    await site.api.delete(old.kept);
    const plain = await site.api.create(podOf(silent, 0));
    assert.equal(plain.metadata.annotations?.["berth.dev/claim"], undefined);
    await untilLeft("shop", before - 1);
    await site.api.delete(plain);
    await site.api.delete(silent);
  });

  it("an ordinal that its StatefulSet wants stays its own, whoever runs under its name", async () => {
    const ips = { "berth.dev/ips": "10.30.0.100;10.30.0.101;10.30.0.102" };
    const set = await site.api.create(statefulSet("shop", "orders", { replicas: 3 }, ips));
    const wanted = await claims("shop");
    const before = (await site.stack.claim("shop/orders-0"))?.identity;
    assert.deepEqual([before?.kind, before?.ordinal], ["StatefulSet", 0]);
    const bare = await site.run(pod("shop", "orders-0", { "berth.dev/ips": "10.30.0.100" }));
    assert.deepEqual(bare.addresses, ["10.30.0.100/24"], "it may use the address");
    assert.deepEqual((await site.stack.claim("shop/orders-0"))?.identity, before);
    await site.end(bare);
    await site.stack.clock.leap(LONG_MS, LONG_MS / 10);
    assert.equal(await claims("shop"), wanted, "the address stays with the ordinal");
    assert.deepEqual((await site.stack.claim("shop/orders-0"))?.identity, before);
    const other = await site.api.refusal(pod("shop", "orders-0", { "berth.dev/ips": "10.30.0.110" }));
    assert.match(other.message, /holds 10\.30\.0\.100 for StatefulSet orders, ordinal 0, whose it stays/);
    const own = await site.run(podOf(set, 0));
    assert.deepEqual(own.addresses, bare.addresses);
    await site.end(own);
    await site.api.delete(set);
    await untilLeft("shop", wanted - 3);
  });

  it("a bare pod that has ended gives up its address, and another one may have it", async () => {
    const ips = { "berth.dev/ips": "10.30.0.80" };
    const before = await claims("shop");
    const first = await site.run(pod("shop", "first", ips));
    await site.api.report(first.kept, "Failed");
    await site.runtime.detach(first.sandbox);
    await site.detached(first.kept);
    await untilLeft("shop", before);
    await site.stack.clock.leap(5_000);
    const second = await site.run(pod("shop", "second", ips));
    assert.deepEqual(second.addresses, first.addresses);
  });
});

function ownedPod(
  owner: { readonly kind: string; readonly apiVersion: string; readonly name: string },
  labels: Readonly<Record<string, string>> = {},
  name?: string,
): Manifest {
  const reference = { ...owner, uid: randomUUID(), controller: true };
  const called = name === undefined ? { generateName: `${owner.name}-` } : { name };
  const annotations = { "berth.dev/ips": "10.30.0.90" };
  const plain = pod("shop", "x", annotations);
  const metadata = { namespace: "shop", ...called, labels, annotations, ownerReferences: [reference] };
  return { ...plain, metadata };
}

/** A pod of a Job, of an index or of none, as the Job controller makes it. */
function jobPod(
  job: string,
  index: number | undefined,
  annotations: Readonly<Record<string, string>>,
): Manifest {
  const key = "batch.kubernetes.io/job-completion-index";
  const its = index === undefined ? {} : { [key]: String(index) };
  const plain = ownedPod({ kind: "Job", apiVersion: "batch/v1", name: job }, its);
  return { ...plain, metadata: { ...plain.metadata, annotations: { ...annotations, ...its } } };
}
