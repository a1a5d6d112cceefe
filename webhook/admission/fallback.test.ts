// SPDX-License-Identifier: Apache-2.0
// `berth.dev/fallback: any`: another address where the one that is named is taken.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addressOfMac } from "../../allocator/ip/mac.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  applied,
  deploymentPod,
  namespaceObject,
  pod,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import { ANY, addressesOf, asking, given, occupied, TAKEN } from "../testing/taken-address.ts";

describe("a pod that takes any address if the one it names is taken", () => {
  it("gets the one that it names while nobody has it, and another of the same pool otherwise", async () => {
    await using world = await occupied();
    const named = await createPod(world, pod("a", { annotations: asking("10.20.0.80") }), "a");
    assert.equal(given(named), "10.20.0.80");
    const other = await createPod(world, pod("b", { annotations: asking(TAKEN) }), "b");
    assert.match(given(other), /^10\.20\.0\.\d+$/);
    assert.notEqual(given(other), TAKEN);
    assert.equal(await addressesOf(world, "b"), given(other));
    assert.match(await admitPod(world, pod("c", { annotations: asking(TAKEN, {}) })), /^ADDRESS_TAKEN/);
  });

  it("is told that it has another one", async () => {
    await using world = await occupied();
    const other = await send(world, "/mutate/pods", pod("b", { annotations: asking(TAKEN) }));
    assert.match(
      (other.warnings ?? []).join(),
      /10\.20\.0\.70 is not to be had now; by berth\.dev\/fallback this pod has 10\.20\.0\.(?!70\b)\d+ instead/,
    );
    const named = await send(world, "/mutate/pods", pod("c", { annotations: asking("10.20.0.80") }));
    assert.doesNotMatch((named.warnings ?? []).join(), /instead/);
  });

  it("is told the other one by a rehearsal", async () => {
    await using world = await occupied();
    const object = pod("b", { annotations: asking(TAKEN) });
    const { warnings = [] } = await send(world, "/mutate/pods", object, { dryRun: true });
    assert.match(
      warnings.join(),
      /^this pod would get (10\.20\.0\.(?!70 )\d+) from pool db,10\.20\.0\.70 is not to be had now; by berth\.dev\/fallback this pod has \1 instead$/,
    );
  });

  it("is told by its workload, whose pods nobody reads the warnings of", async () => {
    await using world = await occupied();
    const annotations = asking(`${TAKEN};10.20.0.80`);
    for (const kind of ["StatefulSet", "Deployment"] as const) {
      const { warnings = [] } = await send(
        world,
        "/validate/workloads",
        workload(kind, "web", { replicas: 1, annotations }),
      );
      assert.match(
        warnings.join(),
        /10\.20\.0\.70 is not to be had now; by berth\.dev\/fallback (web-0|one of its pods) has 10\.20\.0\.\d+ instead/,
      );
    }
  });

  it("is told of the entry that it got, where its workload's list has several", async () => {
    await using world = await occupied();
    const object = deploymentPod("web", { annotations: asking(`10.20.0.80;${TAKEN}`) });
    const first = await send(world, "/mutate/pods", object);
    assert.equal(given(applied(object, first)), "10.20.0.80");
    assert.doesNotMatch(first.warnings?.join() ?? "", /instead/);
    const { warnings = [] } = await send(world, "/mutate/pods", object);
    assert.match(
      warnings.join(),
      /^10\.20\.0\.70 is not to be had now; .* has 10\.20\.0\.(?!80\b)\d+ instead$/,
    );
  });

  it("takes it of the pools that it names, and of each family by itself", async () => {
    await using world = await occupied([DB_POOL, poolRecord("web", "10.30.0.0/24")]);
    const pools = { ...ANY, "berth.dev/pools": "db,web", "berth.dev/families": "IPv4,IPv6" };
    const both = await createPod(
      world,
      pod("b", { annotations: asking(`${TAKEN},fd00:20::70`, pools) }),
      "b",
    );
    const [first = "", second] = given(both).split(",");
    assert.match(first, /^10\.20\.0\./);
    assert.notEqual(first, TAKEN);
    assert.equal(second, "fd00:20::70");
  });

  it("is refused for an address of no pool or an excluded one, and when nothing is left", async () => {
    await using world = await openWorld({ pools: [poolRecord("tiny", "10.40.0.0/30")] });
    await send(world, "/validate/namespaces", namespaceObject("shop", {}, {}));
    for (const name of ["a", "b"])
      await createPod(world, pod(name, { annotations: asking("10.40.0.1") }), name);
    assert.match(await admitPod(world, pod("c", { annotations: asking("10.40.0.1") })), /^POOL_EXHAUSTED/);
    assert.match(await admitPod(world, pod("d", { annotations: asking("10.99.0.1") })), /^ADDRESS_OUTSIDE/);
  });

  it("keeps what it got when it is made again, although the one that it names is free by then", async () => {
    await using world = await occupied();
    const annotations = asking(TAKEN);
    const set = workload("StatefulSet", "mysql", { uid: "uid-of-mysql", annotations, replicas: 1 });
    assert.equal((await send(world, "/validate/workloads", set)).allowed, true);
    const first = given(await createPod(world, statefulPod("mysql", 0, { annotations }), "mysql-0", "one"));
    const holder = (await world.realStore.get("claim", "shop/first")) ?? assert.fail();
    const held = (await world.realStore.get("reservation", TAKEN)) ?? assert.fail();
    await world.realStore.remove("claim", holder);
    await world.realStore.remove("reservation", held);
    await send(world, "/validate/pods", statefulPod("mysql", 0, { annotations, uid: "one" }), {
      operation: "DELETE",
      object: null,
      oldObject: statefulPod("mysql", 0, { annotations, uid: "one" }),
    });
    const next = given(await createPod(world, statefulPod("mysql", 0, { annotations }), "mysql-0", "two"));
    assert.deepEqual([next, next === TAKEN], [first, false]);
    assert.equal(await addressesOf(world, "mysql-0"), first);
  });

  it("gets the one that it names once its list names another", async () => {
    await using world = await occupied();
    const annotations = asking(TAKEN);
    const set = (ips: string) =>
      workload("StatefulSet", "mysql", { uid: "uid-of-mysql", annotations: asking(ips), replicas: 1 });
    await send(world, "/validate/workloads", set(TAKEN));
    const old = statefulPod("mysql", 0, { annotations, uid: "one" });
    await createPod(world, statefulPod("mysql", 0, { annotations }), "mysql-0", "one");
    await send(world, "/validate/workloads", set("10.20.0.90"), {
      operation: "UPDATE",
      oldObject: set(TAKEN),
    });
    await send(world, "/validate/pods", old, { operation: "DELETE", object: null, oldObject: old });
    const now = statefulPod("mysql", 0, { annotations: asking("10.20.0.90") });
    assert.equal(given(await createPod(world, now, "mysql-0", "two")), "10.20.0.90");
  });

  it("is one of a StatefulSet: every ordinal has an address of its own, those that are free the named ones", async () => {
    await using world = await occupied();
    const annotations = asking("10.20.0.70-10.20.0.72");
    const set = workload("StatefulSet", "mysql", { annotations, replicas: 3 });
    const judged = await send(world, "/validate/workloads", set);
    assert.equal(judged.allowed, true, judged.status?.message);
    const claims = await Promise.all([0, 1, 2].map((n) => addressesOf(world, `mysql-${n}`)));
    assert.deepEqual(claims.slice(1), ["10.20.0.71", "10.20.0.72"]);
    assert.equal(new Set([...claims, TAKEN, ""]).size, 5, claims.join());
  });

  it("is one of a StatefulSet, and takes nothing that the list names for another ordinal while anything else is free", async () => {
    const small = poolRecord("small", "10.20.0.64/29");
    for (let n = 0; n < 12; n++) {
      await using world = await openWorld({ pools: [small] });
      await send(world, "/validate/namespaces", namespaceObject("shop", {}, {}));
      await createPod(world, pod("first", { annotations: asking("10.20.0.65", {}) }), "first");
      const annotations = asking("10.20.0.65-10.20.0.67");
      const set = workload("StatefulSet", `s${n}`, { annotations, replicas: 3 });
      assert.equal((await send(world, "/validate/workloads", set)).allowed, true);
      const claims = await Promise.all([0, 1, 2].map((one) => addressesOf(world, `s${n}-${one}`)));
      assert.deepEqual(claims.slice(1), ["10.20.0.66", "10.20.0.67"]);
      assert.match(claims[0] ?? "", /^10\.20\.0\.(68|69|70)$/);
    }
  });

  it("has no other MAC address than the one that it names: whoever has that is named", async () => {
    const [from, to] = [addressOfMac("02:00:00:00:00:00"), addressOfMac("02:00:00:00:00:ff")];
    const macs = poolRecord("macs", [], {
      ranges: [{ cidr: "fe80::/64", from, to }],
      reserved: [`${from}-${to}`],
    });
    await using world = await occupied([DB_POOL, macs]);
    const pinned = (ips: string) => ({ ...asking(ips), "berth.dev/mac": "02:00:00:00:00:51" });
    await createPod(world, pod("b", { annotations: pinned("10.20.0.71") }), "b");
    const words = await admitPod(world, pod("c", { annotations: pinned(TAKEN) }));
    assert.match(words, /^ADDRESS_TAKEN: .*MAC address 02:00:00:00:00:51.* is held by shop\/b/);
    assert.equal(await addressesOf(world, "c"), "");
  });

  it("is told where nothing is named, and where a namespace says it", async () => {
    await using world = await occupied();
    const object = pod("b", { annotations: { ...ANY, "berth.dev/pools": "db" } });
    const { warnings = [] } = await send(world, "/mutate/pods", object);
    assert.match(warnings.join(), /^berth\.dev\/fallback does nothing where no address is named/);
    const space = await send(world, "/validate/namespaces", namespaceObject("bank", ANY, {}));
    assert.match(
      String(space.status?.message),
      /berth\.dev\/fallback: it is about the address that a pod names/,
    );
  });

  it("is refused for what no word says", async () => {
    await using world = await occupied();
    const words = await admitPod(
      world,
      pod("b", { annotations: asking("10.20.0.80", { "berth.dev/fallback": "yes" }) }),
    );
    assert.match(
      words,
      /^REQUEST_INVALID: annotation berth\.dev\/fallback: "yes" is not known here; write any/,
    );
  });
});
