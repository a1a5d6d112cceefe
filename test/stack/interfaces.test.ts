// SPDX-License-Identifier: Apache-2.0
// Pods with addresses on several interfaces (ADR 0027): reviews over TLS, then one ADD for each interface through build/berth.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { claim, deployment, generatedPod, namespace, pod, pool, statefulSet } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import { failureOf, networkOf, Runtime, type Sandbox, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";

const MANIFESTS = [
  namespace("shop"),
  pool("db", [{ cidr: "10.20.0.0/24", gateway: "10.20.0.254" }, "fd00:20::/64"], { cooldown: "0s" }),
  pool("lan", [{ cidr: "10.30.0.0/24", gateway: "10.30.0.254" }, "fd00:30::/64"], { cooldown: "0s" }),
  pool("vlan", ["10.40.0.0/24"], { cooldown: "0s", networks: ["shop/vlan"] }),
];
const IPS = "berth.dev/ips";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";

describe("interfaces", () => {
  const site = new PlainStack(() => ChildStack.start({ manifests: MANIFESTS }));

  const on = (sandbox: Sandbox, name: string): Sandbox => ({ ...sandbox, interface: name });
  /** What each interface of the pod is given. */
  const addresses = async (sandbox: Sandbox, ...names: readonly string[]) => {
    const given: string[] = [];
    for (const name of names) given.push((await site.runtime.attach(on(sandbox, name))).join());
    return given;
  };
  const attachment = async (key: string) => (await site.stack.claim(key))?.status.attachment;
  const ended = (key: string) =>
    eventually(`claim ${key} is told`, async () =>
      (await attachment(key))?.detached === true ? true : undefined,
    );

  it("E0600 a pod has the addresses that it names for each of its interfaces, of both families", async () => {
    const kept = await site.api.create(
      pod("shop", "multi", { [IPS]: "10.20.0.51/fd00:20::51,10.30.0.51/fd00:30::51@net1" }),
    );
    assert.equal(
      kept.metadata.annotations?.["berth.dev/addresses"],
      "10.20.0.51@eth0,10.30.0.51@net1,fd00:20::51@eth0,fd00:30::51@net1",
    );
    const sandbox = sandboxOf(kept);
    assert.deepEqual(await addresses(sandbox, "eth0", "net1", "eth0", "net1"), [
      "10.20.0.51/24,fd00:20::51/64",
      "10.30.0.51/24,fd00:30::51/64",
      "10.20.0.51/24,fd00:20::51/64",
      "10.30.0.51/24,fd00:30::51/64",
    ]);
    assert.match(
      failureOf(await site.runtime.add(on(sandbox, "net2"))).msg,
      /^claim shop\/multi serves eth0 with 10\.20\.0\.51, fd00:20::51, and no address was asked for net2: /,
    );
    const asks = await site.runtime.add(on(sandbox, "net1"), { args: "IP=10.20.0.51" });
    assert.match(
      failureOf(asks).msg,
      /net1 of container .* has 10\.30\.0\.51, fd00:30::51 and asks for 10\.20\.0\.51 now/,
    );
    const { stdout } = await site.stack.berthctl("explain", "pod/multi", "-n", "shop");
    assert.match(stdout, /10\.30\.0\.51@net1, pool lan/);
    assert.match((await site.stack.berthctl("who", "10.30.0.51")).stdout, /shop\/multi/);
    assert.match(
      (await site.stack.berthctl("get", "claims", "-n", "shop")).stdout,
      /10\.20\.0\.51@eth0, 10\.30\.0\.51@net1/,
    );
  });

  it("E0601 a claim is in use until the last of its interfaces is gone, in any order", async () => {
    for (const [first, last] of [
      ["net1", "eth0"],
      ["eth0", "net1"],
    ] as const) {
      const kept = await site.api.create(pod("shop", "ends", { [IPS]: "10.20.0.53,10.30.0.53@net1" }));
      const sandbox = sandboxOf(kept);
      await addresses(sandbox, "eth0", "net1");
      await site.runtime.detach(on(sandbox, first));
      assert.equal(await site.stack.findings(), "");
      assert.equal((await attachment("shop/ends"))?.detached, false, `${first} went`);
      // nothing of it is free while the other interface is up
      const taken = await site.api.refusal(pod("shop", "other", { [IPS]: "10.30.0.53" }));
      assert.match(taken.message, /is held by shop\/ends/);
      await site.runtime.detach(on(sandbox, last));
      await ended("shop/ends");
      await site.api.delete(kept);
      await eventually("both are free", async () =>
        Object.values(await site.stack.holders()).includes("shop/ends") ? undefined : true,
      );
    }
  });

  it("E0602 a refusal for one interface leaves nothing of the others", async () => {
    const holder = await site.run(pod("shop", "holder", { [IPS]: "10.30.0.60" }));
    for (const ips of [
      "10.20.0.61,10.30.0.60@net1",
      "10.30.0.60,10.20.0.61@net1",
      "10.20.0.61,10.99.0.1@net1",
    ]) {
      const { message } = await site.api.refusal(pod("shop", "imitator", { [IPS]: ips }));
      assert.match(message, /10\.30\.0\.60 in pool "lan" is held by shop\/holder|10\.99\.0\.1 is in no pool/);
      assert.equal((await site.stack.holders())["10.20.0.61"], undefined);
      assert.equal(await site.stack.claim("shop/imitator"), undefined);
    }
    const set = statefulSet(
      "shop",
      "half",
      { replicas: 2 },
      { [IPS]: "10.20.0.62-10.20.0.63,10.30.0.59-10.30.0.60@net1" },
    );
    assert.match((await site.api.refusal(set)).message, /^pod half-1: address 10\.30\.0\.60/);
    assert.deepEqual(
      Object.values(await site.stack.holders()).filter((key) => key.startsWith("shop/half")),
      [],
    );
    await site.end(holder);
  });

  it("E0603 the ordinals of a StatefulSet keep the addresses of each interface, and a pod made anew has them", async () => {
    const ips = { [IPS]: "10.20.0.70-10.20.0.71,10.30.0.70-10.30.0.71@net1" };
    const set = await site.api.create(statefulSet("shop", "mysql", { replicas: 2 }, ips));
    assert.deepEqual(
      (await site.stack.holders())["10.30.0.71"],
      "shop/mysql-1",
      "reserved before there is a pod",
    );
    const owner = {
      kind: "StatefulSet",
      apiVersion: "apps/v1",
      name: "mysql",
      uid: set.metadata.uid,
      controller: true,
    };
    const member = () => {
      const made = pod("shop", "mysql-1", ips);
      return { ...made, metadata: { ...made.metadata, ownerReferences: [owner] } };
    };
    for (let round = 0; round < 2; round++) {
      const kept = await site.api.create(member());
      const sandbox = sandboxOf(kept);
      assert.deepEqual(await addresses(sandbox, "eth0", "net1"), ["10.20.0.71/24", "10.30.0.71/24"]);
      for (const name of ["net1", "eth0"]) await site.runtime.detach(on(sandbox, name));
      await ended("shop/mysql-1");
      await site.api.delete(kept);
    }
    assert.equal((await site.stack.holders())["10.20.0.71"], "shop/mysql-1", "kept for the next pod");
    await site.api.delete(set);
    await eventually("all are free", async () =>
      Object.values(await site.stack.holders()).some((key) => key.startsWith("shop/mysql"))
        ? undefined
        : true,
    );
  });

  it("E0604 the pods of a Deployment take whole entries of its list", async () => {
    const ips = { [IPS]: "10.20.0.80,10.30.0.80@net1;10.20.0.81,10.30.0.81@net1" };
    const web = await site.api.create(deployment("shop", "web", { replicas: 2 }, ips));
    const given: string[] = [];
    for (let n = 0; n < 2; n++) {
      const made = generatedPod("shop", "web-6d4-", ips);
      const owner = {
        kind: "ReplicaSet",
        apiVersion: "apps/v1",
        name: "web-6d4",
        uid: "rs-1",
        controller: true,
      };
      const labels = { "pod-template-hash": "6d4" };
      const kept = await site.api.create({
        ...made,
        metadata: { ...made.metadata, labels, ownerReferences: [owner] },
      });
      given.push((await addresses(sandboxOf(kept), "eth0", "net1")).join(" "));
    }
    assert.deepEqual(given.sort(), ["10.20.0.80/24 10.30.0.80/24", "10.20.0.81/24 10.30.0.81/24"]);
    await site.api.delete(web);
  });

  it("E0605 an interface that is named alone has its address, and the pod's first one is the network's matter", async () => {
    const kept = await site.api.create(pod("shop", "second", { [IPS]: "10.30.0.90@net1" }));
    const sandbox = sandboxOf(kept);
    const local = new Runtime({
      socket: site.stack.socket,
      network: networkOf({ ranges: [[{ subnet: "10.88.0.0/24" }]] }, { name: "local" }),
    });
    assert.match((await local.attach(sandbox)).join(), /^10\.88\.0\.\d+\/24$/);
    assert.deepEqual(await addresses(sandbox, "net1"), ["10.30.0.90/24"]);
    await local.detach(sandbox);
  });

  it("E0606 the next sandbox of a pod takes over on every interface, and late DELs of the last one change nothing", async () => {
    const kept = await site.api.create(pod("shop", "again", { [IPS]: "10.20.0.95,10.30.0.95@net1" }));
    const [first, second] = [sandboxOf(kept), sandboxOf(kept)];
    await addresses(first, "eth0", "net1");
    assert.deepEqual(await addresses(second, "eth0", "net1"), ["10.20.0.95/24", "10.30.0.95/24"]);
    for (const name of ["net1", "eth0"]) await site.runtime.detach(on(first, name));
    assert.equal(await site.stack.findings(), "");
    assert.equal((await attachment("shop/again"))?.containerID, second.containerID);
    assert.equal((await attachment("shop/again"))?.detached, false);
    assert.deepEqual(await addresses(second, "eth0", "net1"), ["10.20.0.95/24", "10.30.0.95/24"]);
  });

  it("E0607 addresses go to other interfaces only with the next pod", async () => {
    const kept = await site.api.create(pod("shop", "swap", { [IPS]: "10.20.0.97,10.30.0.97@net1" }));
    const sandbox = sandboxOf(kept);
    await addresses(sandbox, "eth0", "net1");
    for (const name of ["eth0", "net1"]) await site.runtime.detach(on(sandbox, name));
    await ended("shop/swap");
    await site.api.delete(kept);
    const swapped = await site.api.create(pod("shop", "swap", { [IPS]: "10.30.0.97,10.20.0.97@net1" }));
    assert.equal(swapped.metadata.annotations?.["berth.dev/addresses"], "10.20.0.97@net1,10.30.0.97@eth0");
    assert.deepEqual(await addresses(sandboxOf(swapped), "eth0", "net1"), ["10.30.0.97/24", "10.20.0.97/24"]);
  });

  it("E0608 a claim made by hand says the interfaces of its addresses, and its pod has them there", async () => {
    const interfaces = { eth0: ["10.20.0.99"], net1: ["10.30.0.99"] };
    const request = { addresses: ["10.20.0.99", "10.30.0.99"], interfaces };
    await site.api.create(claim("shop", "scanner", { request }));
    const { message } = await site.api.refusal(
      pod("shop", "scanner", { [IPS]: "10.30.0.99,10.20.0.99@net1" }),
    );
    assert.match(
      message,
      /was made by hand and holds 10\.20\.0\.99@eth0, 10\.30\.0\.99@net1, and this asks for 10\.30\.0\.99@eth0, 10\.20\.0\.99@net1/,
    );
    const kept = await site.api.create(pod("shop", "scanner", {}));
    assert.deepEqual(await addresses(sandboxOf(kept), "eth0", "net1"), ["10.20.0.99/24", "10.30.0.99/24"]);
    const wrong = claim("shop", "wrong", { request: { ...request, interfaces: { net1: ["10.30.0.99"] } } });
    assert.match(
      (await site.api.refusal(wrong)).message,
      /interfaces says no interface of 10\.20\.0\.99; give each address one/,
    );
  });

  it("E0609 an interface whose network the pool is not for is refused, and the others stand", async () => {
    const annotations = { [IPS]: "10.20.0.44,10.40.0.44@net1", [NETWORKS]: "shop/vlan" };
    const kept = await site.api.create(pod("shop", "on-vlan", annotations));
    assert.deepEqual(await addresses(sandboxOf(kept), "eth0", "net1"), ["10.20.0.44/24", "10.40.0.44/24"]);
    const asked = { [IPS]: "10.20.0.45,10.40.0.45@net1" };
    const { message } = await site.api.refusal(
      pod("shop", "off-vlan", { ...asked, [NETWORKS]: "shop/else" }),
    );
    assert.match(message, /^pool "vlan" is for networks shop\/vlan, and shop\/else is none of them/);
    // where no annotation names the network, the ADD is the first to know
    const sandbox = sandboxOf(await site.api.create(pod("shop", "off-vlan", asked)));
    assert.deepEqual(await addresses(sandbox, "eth0"), ["10.20.0.45/24"]);
    assert.match(
      failureOf(await site.runtime.add(on(sandbox, "net1"))).msg,
      /pool "vlan" is for networks shop\/vlan, and net is none of them/,
    );
  });

  it("E0615 Multus' networks say which addresses an interface has, and the ADD agrees with them", async () => {
    const networks = JSON.stringify([
      { name: "lan", ips: ["10.30.0.110/24"] },
      { name: "lan", interface: "lan0", ips: ["10.30.0.111", "10.30.0.112"] },
    ]);
    const kept = await site.api.create(pod("shop", "multus", { [IPS]: "10.20.0.110", [NETWORKS]: networks }));
    assert.equal(
      kept.metadata.annotations?.["berth.dev/addresses"],
      "10.20.0.110@eth0,10.30.0.110@net1,10.30.0.111@lan0,10.30.0.112@lan0",
    );
    const sandbox = sandboxOf(kept);
    assert.deepEqual(await addresses(sandbox, "eth0", "lan0"), [
      "10.20.0.110/24",
      "10.30.0.111/24,10.30.0.112/24",
    ]);
    // as Multus passes them
    const asked = new Runtime({
      socket: site.stack.socket,
      network: { ...networkOf({}), runtimeConfig: { ips: ["10.30.0.110/24"] } },
    });
    assert.equal((await asked.attach(on(sandbox, "net1"))).join(), "10.30.0.110/24");
    const { message } = await site.api.refusal(
      pod("shop", "other", { [IPS]: "10.30.0.113@net1", [NETWORKS]: networks }),
    );
    assert.match(message, /annotation k8s\.v1\.cni\.cncf\.io\/networks: it disagrees with berth\.dev\/ips/);
    const taken = await site.api.refusal(
      pod("shop", "other", { [NETWORKS]: '[{"name":"lan","ips":["10.30.0.114","10.30.0.112"]}]' }),
    );
    assert.match(taken.message, /10\.30\.0\.112 in pool "lan" is held by shop\/multus/);
    assert.equal((await site.stack.holders())["10.30.0.114"], undefined);
    const old = new Runtime({ socket: site.stack.socket, network: networkOf({}, { cniVersion: "0.2.0" }) });
    const next = sandboxOf(kept);
    assert.match(
      failureOf(await old.add(on(next, "lan0"))).msg,
      /several addresses of one family for lan0, which a result of cniVersion 0\.2\.0 cannot say/,
    );
    await site.runtime.detach(on(next, "lan0"));
  });

  it("E0616 pools by interface: an address of each, kept for the next pod, and another where one is taken", async () => {
    const asks = { "berth.dev/pools": "db/IPv4,vlan@net1", "berth.dev/sticky": "true", [NETWORKS]: "vlan" };
    const reported: string[] = [];
    for (let round = 0; round < 2; round++) {
      const kept = await site.api.create(pod("shop", "pools", asks));
      reported.push(kept.metadata.annotations?.["berth.dev/addresses"] ?? "");
      const [eth0 = "", net1 = ""] = await addresses(sandboxOf(kept), "eth0", "net1");
      assert.match(eth0, /^10\.20\.0\.\d+\/24$/);
      assert.match(net1, /^10\.40\.0\.\d+\/24$/);
      const { stdout } = await site.stack.berthctl("explain", "pod/pools", "-n", "shop");
      assert.match(stdout, /10\.40\.0\.\d+@net1, pool vlan/);
      if (round > 0) break;
      const sandbox = sandboxOf(kept);
      await addresses(sandbox, "eth0", "net1");
      for (const name of ["eth0", "net1"]) await site.runtime.detach(on(sandbox, name));
      await ended("shop/pools");
      await site.api.delete(kept);
    }
    assert.equal(reported[0], reported[1], "the next pod has them on the same interfaces");
    await site.api.create(pod("shop", "first", { [IPS]: "10.30.0.120@net1" }));
    const any = { [IPS]: "10.20.0.120,10.30.0.120@net1", "berth.dev/fallback": "any" };
    const kept = await site.api.create(pod("shop", "any", any));
    const [eth0 = "", net1 = ""] = await addresses(sandboxOf(kept), "eth0", "net1");
    assert.equal(eth0, "10.20.0.120/24");
    assert.match(net1, /^10\.30\.0\.\d+\/24$/);
    assert.notEqual(net1, "10.30.0.120/24");
    const elsewhere = pod("shop", "elsewhere", { "berth.dev/pools": "vlan@net1", [NETWORKS]: "lan" });
    assert.match(
      (await site.api.refusal(elsewhere)).message,
      /pool "vlan" is for networks shop\/vlan, and shop\/lan is none of them .* \(interface net1\)/,
    );
    assert.match((await site.stack.berthctl("check")).stdout, /^(?!.*defect)/s);
  });
});
