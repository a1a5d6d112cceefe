// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { attachmentOf, bindingTo, DB_POOL, poolRecord, refTo } from "../../test/support/fixtures.ts";
import { type Json, pod, workload } from "../../test/support/objects.ts";
import { admitPod } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import { IPS, LIST, POOLS, said, set } from "../testing/workload-reviews.ts";

/** The warning of an ordinal whose list begins with .80 now, and began with .70. */
const keeps = (n: number) =>
  `mysql-${n} keeps 10.20.0.7${n} until its pod is created again; 10.20.0.8${n} is not reserved before that`;

describe("a StatefulSet", () => {
  it("has its ordinals reserved before any pod exists", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(await said(world, set(3, LIST)), "");
    assert.deepEqual(await world.holdings(), {
      "shop/mysql-0": "10.20.0.70",
      "shop/mysql-1": "10.20.0.71",
      "shop/mysql-2": "10.20.0.72",
    });
    const [claim] = await world.all("claim");
    assert.deepEqual(claim?.record.identity, {
      kind: "StatefulSet",
      apiVersion: "apps/v1",
      name: "mysql",
      ordinal: 0,
    });
    assert.equal(typeof (await world.objects.workload(refTo("StatefulSet", "mysql"))), "object");
    await assertClean(world);
    const before = world.dump();
    assert.equal(await said(world, set(3, LIST), { operation: "UPDATE" }), "");
    assert.equal(world.dump(), before);
  });

  it("gets all or none", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(await admitPod(world, pod("other", { annotations: { [IPS]: "10.20.0.72" } })), "10.20.0.72");
    assert.equal(
      await said(world, set(3, LIST)),
      'ADDRESS_TAKEN: pod mysql-2: address 10.20.0.72 in pool "db" is held by shop/other (Pod other); free nearby: 10.20.0.71, 10.20.0.73, 10.20.0.70; or delete pod other, and if its claim stays: berthctl release shop/other',
    );
    assert.deepEqual(await world.holdings(), { "shop/other": "10.20.0.72" });
    assert.equal(await world.objects.workload(refTo("StatefulSet", "mysql")), "never admitted");
    await assertClean(world);
  });

  it("does not take more than its pool has, dry or not", async () => {
    await using world = await openWorld({ pools: POOLS });
    const greedy = set(3, { "berth.dev/pools": "tiny" });
    const words =
      'POOL_EXHAUSTED: pod mysql-2: no free IPv4 address in pool "tiny": 0 are held or cooling, and the pods before this one get 2; add a range, or release claims that are not needed';
    assert.equal(await said(world, greedy, { dryRun: true }), words);
    assert.equal(await said(world, greedy), words);
    assert.deepEqual(await world.holdings(), {});
  });

  it("keeps what stood before when a larger one is refused", async () => {
    await using world = await openWorld({ pools: POOLS });
    await said(world, set(2, { "berth.dev/pools": "tiny" }));
    const before = await world.holdings();
    assert.match(
      await said(world, set(4, { "berth.dev/pools": "tiny" }), { operation: "UPDATE" }),
      /^POOL_EXHAUSTED: pod mysql-2: /,
    );
    assert.deepEqual(await world.holdings(), before);
    assert.equal(Object.keys(before).length, 2);
  });

  it("leaves the addresses as they are when its new list is refused", async () => {
    await using world = await openWorld({ pools: POOLS });
    await admitPod(world, pod("other", { annotations: { [IPS]: "10.20.0.81" } }));
    await said(world, set(2, LIST));
    const before = world.dump();
    const refused = await said(world, set(2, { [IPS]: "10.20.0.80;10.20.0.81" }), { operation: "UPDATE" });
    assert.match(refused, /^ADDRESS_TAKEN: pod mysql-1: /);
    assert.equal(world.dump(), before);
  });

  it("is counted from ordinals.start, and its list must reach to the end", async () => {
    await using world = await openWorld({ pools: POOLS });
    const start = { ordinals: { start: 5 } };
    assert.equal(
      await said(world, set(4, LIST, start)),
      "LIST_TOO_SHORT: the list has 3 entries, for ordinals 5 to 7, and none for ordinal 8; add an entry or lower replicas",
    );
    assert.equal(await said(world, set(3, LIST, start)), "");
    assert.deepEqual(Object.keys(await world.holdings()), ["shop/mysql-5", "shop/mysql-6", "shop/mysql-7"]);
  });

  it("gets more when it is scaled up", async () => {
    await using world = await openWorld({ pools: POOLS });
    await said(world, set(1, LIST));
    await said(world, set(3, LIST), { operation: "UPDATE" });
    assert.equal(Object.values(await world.holdings()).join(" "), "10.20.0.70 10.20.0.71 10.20.0.72");
  });

  for (const [policy, left] of [
    ["Retain", 3],
    ["Release", 1],
  ] as const) {
    it(`scaled down with ${policy} has ${left} addresses left`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const annotations = { ...LIST, "berth.dev/when-scaled": policy };
      await said(world, set(3, annotations));
      world.suspects.length = 0;
      await said(world, set(1, annotations), { operation: "UPDATE" });
      assert.deepEqual(
        world.suspects.map(({ name }) => name),
        ["mysql-0", "mysql-1", "mysql-2"],
      );
      await world.collector().pass();
      await world.settle();
      assert.equal(Object.keys(await world.holdings()).length, left);
      const retained = (await world.all("claim")).filter(({ record }) => record.retained !== undefined);
      assert.equal(retained.length, left - 1);
      await assertClean(world);
    });
  }

  it("that is deleted lets go of its addresses", async () => {
    await using world = await openWorld({ pools: POOLS });
    await said(world, set(2, LIST));
    assert.equal(await said(world, set(2, LIST), { operation: "DELETE" }), "");
    assert.equal(await world.objects.workload(refTo("StatefulSet", "mysql")), undefined);
    await world.collector().pass();
    await world.settle();
    assert.deepEqual(await world.holdings(), {});
  });

  it("with another list changes nothing yet, and warns where a pod still runs", async () => {
    await using world = await openWorld({ pools: POOLS });
    await said(world, set(2, LIST));
    const seen = await world.realStore.get("claim", "shop/mysql-1");
    assert.ok(seen);
    await world.realStore.replace("claim", seen, { ...seen.record, binding: bindingTo("mysql-1", "node-a") });
    await world.settle();
    const other = set(2, { [IPS]: "10.20.0.80;10.20.0.81" });
    const warning =
      "claim shop/mysql-1 holds 10.20.0.71 and is in use by pod mysql-1, but the request is now for 10.20.0.81; it changes when that pod is deleted and created again";
    assert.equal(await said(world, other, { operation: "UPDATE", dryRun: true }), `${keeps(0)} | ${warning}`);
    assert.equal(await said(world, other, { operation: "UPDATE" }), `${keeps(0)} | ${warning}`);
    const before = { "shop/mysql-0": "10.20.0.70", "shop/mysql-1": "10.20.0.71" };
    assert.deepEqual(await world.holdings(), before);
    const bound = await world.realStore.get("claim", "shop/mysql-1");
    assert.ok(bound);
    const attachment = attachmentOf("mysql-1", { detached: true });
    await world.realStore.report(bound, { attachment });
    await world.settle();
    assert.equal(await said(world, other, { operation: "UPDATE" }), `${keeps(0)} | ${keeps(1)}`);
    assert.deepEqual(await world.holdings(), before, "until their pods are made anew");
  });

  for (const [what, annotations, consequence, dry] of [
    ["no address", {}, " until its pod is created again, which asks for no address of berth", undefined],
    [
      "any that lasts",
      { "berth.dev/sticky": "true", "berth.dev/families": "IPv4" },
      ", which its claim has already",
      "mysql-0 would get 10.20.0.70 (its own) | mysql-1 would get 10.20.0.71 (its own)",
    ],
  ] as const) {
    it(`that asks for ${what} in place of a list is told what its ordinals keep`, async () => {
      await using world = await openWorld({ pools: POOLS });
      await said(world, set(2, LIST));
      const before = await world.holdings();
      const over = { operation: "UPDATE", oldObject: set(2, LIST) };
      const words = `mysql-0 keeps 10.20.0.70${consequence} | mysql-1 keeps 10.20.0.71${consequence}`;
      assert.equal(await said(world, set(2, annotations), { ...over, dryRun: true }), dry ?? words);
      assert.equal(await said(world, set(2, annotations), over), words);
      assert.deepEqual(await world.holdings(), before);
    });
  }

  it("is told of a ttl that does nothing, and of a pool that retains nothing", async () => {
    const limits = { retention: { ttl: "0s" } };
    await using world = await openWorld({
      pools: [DB_POOL, poolRecord("brief", "10.90.0.0/24", { limits })],
    });
    const idle = { "berth.dev/pools": "db", "berth.dev/ttl": "1000h", "berth.dev/when-scaled": "Release" };
    assert.equal(
      await said(world, set(1, idle)),
      "berth.dev/ttl does nothing here: it says how long a retained address is kept, and none is retained; write berth.dev/when-deleted: Retain beside it, or leave it out",
    );
    const asked = { "berth.dev/pools": "brief", "berth.dev/when-deleted": "Retain" };
    assert.equal(
      await said(world, workload("StatefulSet", "cache", { replicas: 1, annotations: asked })),
      'berth.dev/when-deleted=Retain keeps no address of pool "brief", whose limits.retention.ttl is 0s: it is let go at once; raise that, or name another pool',
    );
  });

  it("of whatever kind, that asks for addresses no more, is told what its pods keep", async () => {
    await using world = await openWorld({ pools: POOLS });
    for (const kind of ["Deployment", "ReplicaSet", "DaemonSet", "CloneSet"]) {
      const of = (annotations: Readonly<Record<string, string>>, spec: Json = {}) =>
        workload(kind, "web", { replicas: 2, annotations, spec });
      for (const asked of [LIST, { "berth.dev/pools": "db" }]) {
        const words = `the next pods of this ${kind} ask for no address of berth; those that are there keep theirs until they are gone`;
        const over = { operation: "UPDATE", oldObject: of(asked), dryRun: true };
        assert.equal(await said(world, of({}), over), words);
        const onHost = { template: { metadata: { annotations: asked }, spec: { hostNetwork: true } } };
        assert.equal(await said(world, of({}), { ...over, oldObject: of({}, onHost) }), "", "it had none");
        assert.equal(await said(world, of({}), { ...over, oldObject: of({}) }), "");
        assert.doesNotMatch(
          await said(world, of({ "berth.dev/pools": "tiny" }), over),
          /no address of berth/,
        );
      }
    }
  });

  it("of many ordinals with another list names the first of them", async () => {
    await using world = await openWorld({ pools: POOLS });
    const listFrom = (first: number) => ({ [IPS]: `10.20.0.${first}-10.20.0.${first + 7}` });
    await said(world, set(8, listFrom(70)));
    const reported = (await said(world, set(8, listFrom(80)), { operation: "UPDATE" })).split(" | ");
    assert.equal(reported.length, 6);
    assert.equal(reported.at(-1), "and so for 3 more; see: berthctl get claims");
  });

  it("of more than a thousand is not reserved in advance, and is told so", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(
      await said(world, set(1001, { "berth.dev/pools": "db" })),
      "addresses of more than 1000 replicas are not reserved in advance; each pod reserves its own",
    );
    assert.deepEqual(await world.holdings(), {});
  });

  it("of OpenKruise's that leaves out more ordinals than are read is told so", async () => {
    await using world = await openWorld({ pools: POOLS });
    const reserveOrdinals = Array.from({ length: 4097 }, (_, n) => 2 * n);
    const listed = set(2, { "berth.dev/pools": "db" }, { reserveOrdinals });
    assert.equal(await said(world, listed), ""); // a field that Kubernetes' own does not have
    assert.match(
      await said(world, { ...listed, apiVersion: "apps.kruise.io/v1beta1" }),
      /^spec\.reserveOrdinals has more than 4096 entries: .* beyond; write ranges, such as "3-5"$/,
    );
  });

  it("reserves nothing for pods that are let through untouched", async () => {
    await using world = await openWorld({ pools: POOLS });
    const template = { metadata: { annotations: LIST }, spec: { hostNetwork: true } };
    assert.equal(
      await said(world, set(1, {}, { template })),
      "berth.dev/ips asks for nothing beside hostNetwork: such a pod has the addresses of its node; take one of the two away",
    );
    assert.equal(
      await said(
        world,
        workload("StatefulSet", "dns", { namespace: "kube-system", replicas: 1, annotations: LIST }),
      ),
      "berth.dev/ips asks for nothing in kube-system: berth reserves no address for its pods; use another namespace",
    );
    assert.deepEqual(await world.holdings(), {});
  });
});
