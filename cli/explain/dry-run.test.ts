// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Dialects, OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import {
  addrs,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import {
  claimObject,
  deploymentPod,
  type Json,
  namespaceObject,
  pod,
  poolObject,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { openWorld, type World, type WorldOptions } from "../../test/support/world.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { ManifestDryRun } from "./dry-run.ts";

/** A world that is closed when its test is over. */
async function worldFor(t: TestContext, options?: WorldOptions): Promise<World> {
  const world = await openWorld(options);
  t.after(() => world[Symbol.asyncDispose]());
  return world;
}

/** Each forecast as a line: who, and the addresses, or why not. */
async function foretold(world: World, ...objects: readonly Json[]): Promise<string[]> {
  const view = await loadCache(world.realStore);
  const forecast = new ManifestDryRun({ ...world.context, view }, world.objects);
  const lines: string[] = [];
  for (const object of objects) {
    for (const { subject, outcome } of await forecast.of(granted(readObject(object)))) {
      if (isRefusal(outcome)) lines.push(`${subject}: ${outcome.code} ${outcome.message}`);
      else if (outcome.kind !== "dry-run") lines.push(`${subject}: ${outcome.kind}, ${outcome.why}`);
      else lines.push(`${subject}: ${outcome.addresses.map(({ address }) => address).join(" ")}`);
    }
  }
  return lines;
}

const ips = (value: string) => ({ annotations: { "berth.dev/ips": value } });

describe("Forecast", () => {
  it("writes nothing", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const before = world.dump();
    await foretold(world, pod("web", { annotations: { "berth.dev/pools": "db" } }), poolObject("x", {}));
    assert.equal(world.dump(), before);
  });

  it("leaves to another system what that one is asked for, where the installation does", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const calico = { annotations: { "cni.projectcalico.org/ipAddrs": '["10.244.0.7"]' } };
    const objects = [pod("web", calico), workload("StatefulSet", "mysql", { replicas: 1, ...calico })];
    const outside = /ADDRESS_OUTSIDE address 10\.244\.0\.7 is in no pool/;
    for (const line of await foretold(world, ...objects)) assert.match(line, outside);
    const view = await loadCache(world.realStore);
    const of = async (dialects: Dialects) => {
      const forecast = new ManifestDryRun({ ...world.context, view, dialects }, world.objects);
      const rows = await Promise.all(objects.map((one) => forecast.of(granted(readObject(one)))));
      return rows.flat().map(({ outcome }) => (isRefusal(outcome) ? outcome.code : outcome.kind));
    };
    assert.deepEqual(await of(OWN_OF_EACH), ["nothing", "nothing"]);
    assert.deepEqual(await of({ calico: "none" }), ["nothing", "nothing"]);
    assert.deepEqual(await of({ calico: "all" }), ["ADDRESS_OUTSIDE", "ADDRESS_OUTSIDE"]);
  });

  it("gives each ordinal its entry, and refuses those without", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const object = workload("StatefulSet", "mysql", {
      replicas: 3,
      ...ips("10.20.0.70/fd00:20::70;10.20.0.71/fd00:20::71"),
    });
    assert.deepEqual(await foretold(world, object), [
      "pod/shop/mysql-0: 10.20.0.70 fd00:20::70",
      "pod/shop/mysql-1: 10.20.0.71 fd00:20::71",
      "pod/shop/mysql-2: LIST_TOO_SHORT the list has 2 entries, for ordinals 0 to 1, and none for ordinal 2; add an entry or lower replicas",
    ]);
  });

  it("gives no address to two of the same file", async (t) => {
    const limits = { perNamespace: 1_000 };
    const world = await worldFor(t, { pools: [{ ...DB_POOL, spec: { ...DB_POOL.spec, limits } }] });
    const any = { annotations: { "berth.dev/pools": "db", "berth.dev/families": "IPv4" } };
    const pods = Array.from({ length: 129 }, (_, n) => pod(`web-${n}`, any));
    const lines = await foretold(world, ...pods, pod("late", any));
    const addresses = lines.slice(0, -1).map((line) => line.split(": ")[1]);
    assert.equal(new Set(addresses).size, 129);
    // 150 addresses less the gateway, ten excluded and ten by request only
    assert.match(lines.at(-1) ?? "", /^pod\/shop\/late: POOL_EXHAUSTED no free IPv4 address in pool "db"/);
  });

  it("refuses an address that the same file asks for twice", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    assert.deepEqual(await foretold(world, pod("a", ips("10.20.0.70")), pod("b", ips("10.20.0.70"))), [
      "pod/shop/a: 10.20.0.70",
      'pod/shop/b: ADDRESS_TAKEN address 10.20.0.70 in pool "db" is asked for twice, by shop/a and by shop/b; give one of them another',
    ]);
  });

  it("counts a StatefulSet and its own pod as one", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const set = workload("StatefulSet", "mysql", { replicas: 1, ...ips("10.20.0.70") });
    assert.deepEqual(await foretold(world, set, statefulPod("mysql", 0, ips("10.20.0.70"))), [
      "pod/shop/mysql-0: 10.20.0.70",
      "pod/shop/mysql-0: 10.20.0.70",
    ]);
  });

  it("names the holder of a taken address", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    await world.realStore.create("claim", claimRecord());
    for (const reservation of reservationsOf(claimRecord()))
      await world.realStore.create("reservation", reservation);
    const [line = ""] = await foretold(world, pod("web", ips("10.20.0.70")));
    assert.match(
      line,
      /^pod\/shop\/web: ADDRESS_TAKEN address 10\.20\.0\.70 in pool "db" is held by shop\/mysql-0/,
    );
  });

  it("says that a claim in use does not move", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const claim = claimRecord({ binding: bindingTo("mysql-0", "node-a") });
    await world.realStore.create("claim", claim);
    for (const reservation of reservationsOf(claim)) await world.realStore.create("reservation", reservation);
    assert.deepEqual(await foretold(world, statefulPod("mysql", 0, ips("10.20.0.99"))), [
      "pod/shop/mysql-0: CLAIM_CHANGED claim shop/mysql-0 holds 10.20.0.70 and is in use by pod mysql-0, but the request is now for 10.20.0.99; it changes when that pod is deleted and created again",
    ]);
  });

  it("says of an ordinal in use what its next pod gets, and refuses what that cannot get", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const claim = claimRecord({ binding: bindingTo("mysql-0", "node-a") });
    const other = claimRecord({ name: "other", nonce: "n2", addresses: addrs("10.20.0.98") });
    for (const one of [claim, other]) {
      await world.realStore.create("claim", one);
      for (const reservation of reservationsOf(one)) await world.realStore.create("reservation", reservation);
    }
    const set = (list: string) => workload("StatefulSet", "mysql", { replicas: 1, ...ips(list) });
    assert.deepEqual(await foretold(world, set("10.20.0.99")), [
      "pod/shop/mysql-0: later, claim shop/mysql-0 holds 10.20.0.70 and is in use by pod mysql-0, but the request is now for 10.20.0.99; it changes when that pod is deleted and created again",
    ]);
    const [taken = ""] = await foretold(world, set("10.20.0.98"));
    assert.match(taken, /^pod\/shop\/mysql-0: ADDRESS_TAKEN address 10\.20\.0\.98 /);
  });

  it("says that an ordinal without a pod keeps what it has when its list changes", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const claim = claimRecord();
    await world.realStore.create("claim", claim);
    for (const reservation of reservationsOf(claim)) await world.realStore.create("reservation", reservation);
    const view = await loadCache(world.realStore);
    const forecast = new ManifestDryRun({ ...world.context, view }, world.objects);
    const set = workload("StatefulSet", "mysql", { replicas: 1, ...ips("10.20.0.99") });
    const [first] = await forecast.of(granted(readObject(set)));
    assert.equal(
      first?.kept,
      "mysql-0 keeps 10.20.0.70 until its pod is created again; 10.20.0.99 is not reserved before that",
    );
  });

  it("shows every slot of a set, and the free one that a pod of it would get", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const set = workload("Deployment", "web", { replicas: 2, ...ips("10.20.0.70-10.20.0.71") });
    assert.deepEqual(await foretold(world, set, deploymentPod("web", ips("10.20.0.70-10.20.0.71"))), [
      "deployment/shop/web, slot 0: 10.20.0.70",
      "deployment/shop/web, slot 1: 10.20.0.71",
      "pod/shop/web-5d9c7b-*: 10.20.0.70",
    ]);
  });

  it("speaks for each pod of a Deployment that names a pool", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const set = workload("Deployment", "web", { annotations: { "berth.dev/pools": "db" } });
    const [line = ""] = await foretold(world, set);
    assert.match(line, /^deployment\/shop\/web, each pod: 10\.20\.0\.\d+ fd00:20::/);
  });

  it("takes a default pool that says no size as it is made, and as unchanged when it is there", async (t) => {
    const spec = { ranges: [{ cidr: "10.9.0.0/24" }], default: true } as const;
    const seen = async (stored: typeof spec & { readonly blockSize?: { readonly ipv4: 32 } }) => {
      const world = await worldFor(t, { pools: [{ name: "any", spec: stored }] });
      const view = await loadCache(world.realStore);
      const forecast = new ManifestDryRun({ ...world.context, view }, world.objects);
      await forecast.of(granted(readObject(poolObject("any", spec))));
      await forecast.of(
        granted(readObject(poolObject("new", { ...spec, ranges: [{ cidr: "10.8.0.0/24" }] }))),
      );
      return ["any", "new"].map((name) => view.pool(name)?.spec.blockSize);
    };
    assert.deepEqual(await seen({ ...spec, blockSize: { ipv4: 32 } }), [{ ipv4: 32 }, { ipv4: 32 }]);
    assert.deepEqual(await seen(spec), [undefined, { ipv4: 32 }], "one that was made without has none");
  });

  it("takes pools, claims and namespaces of the same file into account", async (t) => {
    const world = await worldFor(t);
    const lines = await foretold(
      world,
      namespaceObject("shop", { "berth.dev/pools": "lab" }, { team: "a" }),
      poolObject("lab", {
        ranges: [{ cidr: "10.9.0.0/30" }],
        namespaceSelector: { matchLabels: { team: "a" } },
      }),
      claimObject("vip", { request: { addresses: ["10.9.0.1"] } }),
      pod("web"),
      pod("web", { namespace: "bank" }),
      poolObject("wrong", { ranges: [{ cidr: "10.9.0.7/30" }] }),
    );
    assert.deepEqual(lines, [
      "ipclaim/shop/vip: 10.9.0.1",
      "pod/shop/web: 10.9.0.2",
      "pod/bank/web: nothing, it asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)",
      "ippool/wrong: POOL_INVALID spec.ranges[0].cidr 10.9.0.7/30 has host bits; write 10.9.0.4/30",
    ]);
  });

  it("names the pool that serves pods which ask for nothing, kube-system's among them", async (t) => {
    const cut = (name: string, n: number, spec: object) =>
      poolObject(name, { ranges: [{ cidr: `10.${n}.0.0/24` }], blockSize: { ipv4: 28 }, ...spec });
    const world = await worldFor(t);
    const ofTeam = (team: string) => ({ namespaceSelector: { matchLabels: { team } } });
    const east = { nodeSelector: { matchLabels: { zone: "east" } } };
    const lines = await foretold(
      world,
      namespaceObject("ext", {}, { team: "ext" }),
      namespaceObject("bank", {}, { team: "bank" }),
      cut("shared", 1, { default: true }),
      cut("external", 2, ofTeam("ext")),
      cut("east", 3, { ...ofTeam("bank"), ...east }),
      pod("nothing"),
      pod("nothing", { namespace: "kube-system" }),
      pod("nothing", { namespace: "bank" }),
      workload("Deployment", "nothingd", { namespace: "ext" }),
      workload("DaemonSet", "proxy", { namespace: "kube-system" }),
    );
    const tail = "from a block of its node, unless its network names pools or has ranges of its own";
    const from = (who: string, pool: string) =>
      `${who}: nothing, it asks for no fixed address; it gets any of pool ${pool} ${tail}`;
    assert.deepEqual(lines, [
      from("pod/shop/nothing", '"shared" (the default)'),
      from("pod/kube-system/nothing", '"shared" (the default)'),
      from("pod/bank/nothing", '"east" on its nodes (which selects it), else of "shared"'),
      from("deployment/ext/nothingd, each pod", '"external" (which selects it)'),
      from("daemonset/kube-system/proxy, each pod", '"shared" (the default)'),
    ]);
  });

  it("lets a claim speak for the pod of its name", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const claim = claimRecord({
      name: "vip",
      identity: { kind: "Pod", apiVersion: "v1", name: "vip" },
      handMade: true,
      addresses: addrs("10.20.0.77"),
    });
    await world.realStore.create("claim", claim);
    for (const reservation of reservationsOf(claim)) await world.realStore.create("reservation", reservation);
    assert.deepEqual(await foretold(world, pod("vip"), pod("host", { spec: { hostNetwork: true } })), [
      "pod/shop/vip: 10.20.0.77",
      "pod/shop/host: nothing, it is on its host's network",
    ]);
  });

  it("says which annotation cannot be read", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const [line = ""] = await foretold(world, pod("web", ips("10.20.0.300")));
    assert.match(line, /^pod\/shop\/web: REQUEST_INVALID annotation berth\.dev\/ips: entry 1/);
  });
});
