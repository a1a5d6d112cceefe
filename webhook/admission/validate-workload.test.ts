// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refTo } from "../../test/support/fixtures.ts";
import { deniedAs, review, workload } from "../../test/support/objects.ts";
import { openWorld } from "../../test/support/world.ts";
import { IPS, LIST, POOLS, said, set } from "../testing/workload-reviews.ts";
import { validateWorkloads } from "./validate-workload.ts";

describe("any workload", () => {
  it("is told of a request among the labels of its template", async () => {
    await using world = await openWorld({ pools: POOLS });
    const template = { metadata: { labels: { "berth.dev/pools": "db" } } };
    assert.equal(
      await said(world, set(1, {}, { template })),
      "label berth.dev/pools has no effect: it is an annotation; write it under metadata.annotations",
    );
  });

  it("is told about annotations that stand in the wrong place", async () => {
    await using world = await openWorld({ pools: POOLS });
    const own = { [IPS]: "10.20.0.70", "cni.projectcalico.org/ipv4pools": '["db"]', app: "web" };
    const misplaced = (kind: string) => workload(kind, "web", { replicas: 1, own });
    const words = (key: string, kind: string) =>
      `annotation ${key} on the ${kind} itself has no effect; move it to spec.template.metadata.annotations`;
    for (const kind of ["StatefulSet", "Deployment", "CloneSet"]) {
      assert.equal(
        await said(world, misplaced(kind)),
        `${words(IPS, kind)} | ${words("cni.projectcalico.org/ipv4pools", kind)}`,
      );
    }
    assert.equal(
      await said(world, workload("StatefulSet", "web", { replicas: 1, own: LIST, annotations: LIST })),
      "",
    );
    const both = { replicas: 1, own: { [IPS]: "10.20.0.190" }, annotations: LIST };
    assert.equal(
      await said(world, workload("StatefulSet", "web", both)),
      `annotation ${IPS} on the StatefulSet itself has no effect; another value stands in spec.template.metadata.annotations`,
    );
  });

  it("is refused what its pods would be refused for", async () => {
    await using world = await openWorld({ pools: POOLS });
    const web = (annotations: Readonly<Record<string, string>>) =>
      workload("Deployment", "web", { replicas: 2, annotations });
    assert.equal(
      await said(world, web({ [IPS]: "10.20.0.70;192.0.2.1;10.20.0.72" })),
      'ADDRESS_OUTSIDE: address 192.0.2.1 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199, "tiny" 10.80.0.1-10.80.0.2',
    );
    assert.match(
      await said(world, web({ [IPS]: "junk" })),
      /^REQUEST_INVALID: annotation berth\.dev\/ips: entry 1, "junk", /,
    );
    assert.equal(
      await said(world, web({ [IPS]: "10.20.0.70" })),
      "LIST_TOO_SHORT: the list has 1 entry for 2 replicas; add entries or lower replicas",
    );
    assert.match(
      await said(world, web({ [IPS]: "10.20.0.70;10.20.0.71" })),
      /^LIST_TOO_SHORT: a rolling update may want 3 pods at once /,
    );
    assert.equal(await said(world, web({ [IPS]: "10.20.0.70-10.20.0.72" })), "");
    assert.match(
      await said(world, web({ [IPS]: "10.20.0.70-10.20.0.73" })),
      /^the list has 4 entries for 2 replicas and maxSurge 1: an entry is kept for it from the first pod on that has it/,
    );
    assert.deepEqual(await world.holdings(), {});
  });

  it("that asks a set to be sticky is told that a set has no identity", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(
      await said(world, workload("Deployment", "web", { annotations: { "berth.dev/sticky": "true" } })),
      "berth.dev/sticky has no effect on the pods of a Deployment, which have no identity; give it a set with berth.dev/ips",
    );
  });

  it("that asks for nothing is kept and not looked into", async () => {
    await using world = await openWorld({ pools: [] });
    assert.equal(await said(world, workload("StatefulSet", "mysql", { replicas: 3 })), "");
    const facts = await world.objects.workload(refTo("StatefulSet", "mysql"));
    assert.ok(typeof facts === "object");
    assert.deepEqual([facts.replicas, facts.start], [3, 0]);
  });

  it("in a dry run says what would happen and changes nothing", async () => {
    await using world = await openWorld({ pools: POOLS });
    await said(world, set(1, LIST));
    const before = world.dump();
    assert.equal(
      await said(world, set(3, LIST), { operation: "UPDATE", dryRun: true }),
      "mysql-0 would get 10.20.0.70 (its own) | mysql-1 would get 10.20.0.71 from pool db | mysql-2 would get 10.20.0.72 from pool db",
    );
    assert.equal(await said(world, set(3, LIST), { operation: "DELETE", dryRun: true }), "");
    assert.equal(world.dump(), before);
  });

  it("in a cluster is judged and not written", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { embedded: _, ...admission } = world.admission;
    const handler = validateWorkloads(admission);
    const before = world.dump();
    const live = new AbortController().signal;
    assert.deepEqual(await handler(review(set(3, LIST)), live), { uid: "review-1", allowed: true });
    assert.match(
      deniedAs(await handler(review(set(3, { "berth.dev/pools": "tiny" })), live)),
      /^POOL_EXHAUSTED: pod mysql-2: /,
    );
    assert.equal((await handler(review(set(3, LIST), "DELETE"), live)).allowed, true);
    assert.equal(world.dump(), before);
  });

  it("is of a kind that has pods, and of some namespace", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.match(
      await said(world, workload("ServiceMonitor", "report")),
      /^OBJECT_INVALID: this webhook decides about StatefulSet, Deployment, .*, and the object is of kind ServiceMonitor; install the webhook configurations from the chart$/,
    );
    assert.equal(
      await said(world, workload("Deployment", "web", { namespace: "" })),
      "OBJECT_INVALID: the object has no namespace",
    );
    assert.equal(await said(world, set(3, LIST), { subResource: "status" }), "");
    assert.deepEqual(await world.holdings(), {});
  });
});
