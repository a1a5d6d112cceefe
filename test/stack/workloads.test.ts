// SPDX-License-Identifier: Apache-2.0
// StatefulSets and Deployments: what is reserved when, and which pod is given what. One stack as a process.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { deployment, namespace, podOf, pool, replicaOf, statefulSet } from "../support/manifests.ts";
import { PlainStack, type Running } from "../support/plain-stack.ts";
import type { Manifest } from "../support/review.ts";
import { ChildStack } from "../support/stack.ts";

const MANIFESTS = [namespace("shop"), pool("db", ["10.20.0.0/24", "fd00:20::/64"], { cooldown: "0s" })];

describe("workloads", () => {
  const site = new PlainStack(() => ChildStack.start({ manifests: MANIFESTS }));

  /** Claims of namespace shop whose names begin so: name -> addresses. */
  async function claimsOf(prefix: string): Promise<Readonly<Record<string, string>>> {
    const claims = Object.entries(await site.stack.claims("shop"));
    return Object.fromEntries(claims.filter(([name]) => name.startsWith(`${prefix}-`)));
  }

  it("E0120 the ordinals of a StatefulSet are reserved before any pod, and each pod has its own", async () => {
    const annotations = { "berth.dev/ips": "10.20.0.11-10.20.0.13/fd00:20::11-fd00:20::13" };
    const set = await site.api.create(statefulSet("shop", "mysql", { replicas: 3 }, annotations));
    const reserved = {
      "mysql-0": "10.20.0.11,fd00:20::11",
      "mysql-1": "10.20.0.12,fd00:20::12",
      "mysql-2": "10.20.0.13,fd00:20::13",
    };
    assert.deepEqual(await claimsOf("mysql"), reserved);
    const pods = await Promise.all([2, 0, 1].map((ordinal) => site.run(podOf(set, ordinal))));
    assert.deepEqual(
      pods.map(({ addresses }) => addresses.join()),
      ["10.20.0.13/24,fd00:20::13/64", "10.20.0.11/24,fd00:20::11/64", "10.20.0.12/24,fd00:20::12/64"],
    );
    assert.deepEqual(await claimsOf("mysql"), reserved);
  });

  it("E0121 a pod of a StatefulSet that is deleted and made anew has its address again", async () => {
    const annotations = { "berth.dev/pools": "db", "berth.dev/families": "IPv4" };
    const set = await site.api.create(statefulSet("shop", "redis", { replicas: 2 }, annotations));
    const reserved = await claimsOf("redis");
    const first = await site.run(podOf(set, 1));
    assert.deepEqual(first.addresses, [`${reserved["redis-1"]}/24`]);
    await site.end(first);
    assert.deepEqual(await claimsOf("redis"), reserved, "deletion of a pod releases nothing");
    const again = await site.run(podOf(set, 1));
    assert.deepEqual(again.addresses, first.addresses);
    assert.notEqual(again.kept.metadata.uid, first.kept.metadata.uid);
  });

  it("E0122 scaling up reserves more, and is refused when the list ends", async () => {
    const sized = (replicas: number): Manifest =>
      statefulSet("shop", "queue", { replicas }, { "berth.dev/ips": "10.20.0.31;10.20.0.32;10.20.0.33" });
    await site.api.create(sized(1));
    assert.deepEqual(await claimsOf("queue"), { "queue-0": "10.20.0.31" });
    const set = await site.api.create(sized(3));
    const reserved = { "queue-0": "10.20.0.31", "queue-1": "10.20.0.32", "queue-2": "10.20.0.33" };
    assert.deepEqual(await claimsOf("queue"), reserved);
    assert.deepEqual((await site.run(podOf(set, 2))).addresses, ["10.20.0.33/24"]);
    assert.deepEqual(await site.api.refusal(sized(4)), {
      kind: "refused",
      reason: "LIST_TOO_SHORT",
      message:
        "the list has 3 entries, for ordinals 0 to 2, and none for ordinal 3; add an entry or lower replicas",
    });
    assert.deepEqual(await claimsOf("queue"), reserved);
  });

  it("E0123 with ordinals.start: 5 the first entry of the list is that of ordinal 5", async () => {
    const annotations = { "berth.dev/ips": "10.20.0.41-10.20.0.42" };
    const set = await site.api.create(statefulSet("shop", "late", { replicas: 2, start: 5 }, annotations));
    assert.deepEqual(await claimsOf("late"), { "late-5": "10.20.0.41", "late-6": "10.20.0.42" });
    assert.deepEqual((await site.run(podOf(set, 6))).addresses, ["10.20.0.42/24"]);
    assert.deepEqual((await site.run(podOf(set, 5))).addresses, ["10.20.0.41/24"]);
    const beyond = { ...podOf(set, 7) };
    assert.equal((await site.api.refusal(beyond)).reason, "LIST_TOO_SHORT");
  });

  it("E0124 a StatefulSet that cannot have all of its addresses is refused whole", async () => {
    const first = statefulSet("shop", "one", { replicas: 1 }, { "berth.dev/ips": "10.20.0.152" });
    await site.api.create(first);
    const second = statefulSet(
      "shop",
      "two",
      { replicas: 3 },
      { "berth.dev/ips": "10.20.0.50;10.20.0.51;10.20.0.152" },
    );
    assert.deepEqual(await site.api.refusal(second), {
      kind: "refused",
      reason: "ADDRESS_TAKEN",
      message:
        'pod two-2: address 10.20.0.152 in pool "db" is held by shop/one-0 (StatefulSet one, ordinal 0); free nearby: 10.20.0.151, 10.20.0.153, 10.20.0.150; or scale StatefulSet one down, and if its claim stays: berthctl release shop/one-0',
    });
    assert.deepEqual(await claimsOf("two"), {});
    const holders = await site.stack.holders();
    assert.equal(holders["10.20.0.50"], undefined);
  });

  it("E0125 an annotation on the workload instead of its template brings a warning", async () => {
    const set = statefulSet("shop", "misplaced", { replicas: 1 }, {});
    const metadata = { ...set.metadata, annotations: { "berth.dev/ips": "10.20.0.60" } };
    const outcome = await site.api.write({ ...set, metadata });
    assert.deepEqual(outcome.kind === "kept" ? outcome.warnings : outcome.message, [
      "annotation berth.dev/ips on the StatefulSet itself has no effect; move it to spec.template.metadata.annotations",
    ]);
    assert.deepEqual(await claimsOf("misplaced"), {});
  });

  it("E0126 the pods of a Deployment share its set, and one too many is refused in words", async () => {
    const annotations = { "berth.dev/ips": "10.20.0.81-10.20.0.84" };
    const gate = await site.api.create(deployment("shop", "gate", { replicas: 4 }, annotations));
    const pods = await Promise.all(Array.from({ length: 4 }, () => site.run(replicaOf(gate))));
    const addresses = pods.flatMap((pod) => pod.addresses).sort();
    assert.deepEqual(addresses, ["10.20.0.81/24", "10.20.0.82/24", "10.20.0.83/24", "10.20.0.84/24"]);
    const { reason, message } = await site.api.refusal(replicaOf(gate));
    assert.equal(reason, "SET_EXHAUSTED");
    const inUse = pods
      .map(({ kept, addresses: [cidr = ""] }) => ({ name: kept.metadata.name, ip: cidr.split("/")[0] ?? "" }))
      .sort((a, b) => a.ip.localeCompare(b.ip))
      .map(({ name, ip }, slot) => `${ip} (gate-slot-${slot}) is bound to pod ${name}`);
    assert.equal(
      message,
      `all 4 entries of the list are in use: ${inUse.join("; ")}; add entries for replicas and maxSurge, or lower them`,
    );

    // A pod that goes makes room for the next, which is of another template: rolling updates.
    let running = pods;
    for (const hash of ["6c5e9d8f77", "7d6faeb988", "8e7fbfca99", "9f8gcgdbaa", "ag9hdhecbb"]) {
      const next: Running[] = [];
      for (const gone of running) {
        await site.end(gone);
        const replica = await site.run(replicaOf(gate, hash));
        assert.deepEqual(replica.addresses, gone.addresses);
        next.push(replica);
      }
      running = next;
    }
  });

  it("E0127 a Deployment whose set is too small for its replicas is refused before it has pods", async () => {
    const small = deployment("shop", "small", { replicas: 3 }, { "berth.dev/ips": "10.20.0.91-10.20.0.92" });
    assert.deepEqual(await site.api.refusal(small), {
      kind: "refused",
      reason: "LIST_TOO_SHORT",
      message: "the list has 2 entries for 3 replicas; add entries or lower replicas",
    });
  });

  it("E0128 a changed list takes effect ordinal by ordinal, as their pods are made anew", async () => {
    const listed = (ips: string): Manifest =>
      statefulSet("shop", "moved", { replicas: 2 }, { "berth.dev/ips": ips });
    const set = await site.api.create(listed("10.20.0.101-10.20.0.102"));
    const running = await site.run(podOf(set, 0));
    const outcome = await site.api.write(listed("10.20.0.111-10.20.0.112"));
    assert.deepEqual(outcome.kind === "kept" ? outcome.warnings : outcome.message, [
      "moved-1 keeps 10.20.0.102 until its pod is created again; 10.20.0.112 is not reserved before that",
      "claim shop/moved-0 holds 10.20.0.101 and is in use by pod moved-0, but the request is now for 10.20.0.111; it changes when that pod is deleted and created again",
    ]);
    assert.deepEqual(await claimsOf("moved"), { "moved-0": "10.20.0.101", "moved-1": "10.20.0.102" });
    await site.end(running);
    const changed = outcome.kind === "kept" ? outcome.object : set;
    assert.deepEqual((await site.run(podOf(changed, 0))).addresses, ["10.20.0.111/24"]);
    assert.deepEqual((await site.run(podOf(changed, 1))).addresses, ["10.20.0.112/24"]);
    assert.deepEqual(await claimsOf("moved"), { "moved-0": "10.20.0.111", "moved-1": "10.20.0.112" });
  });
});
