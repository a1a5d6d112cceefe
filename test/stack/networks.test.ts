// SPDX-License-Identifier: Apache-2.0
// What a network's configuration and its pools give: ADDs through build/berth, one stack as a process.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../support/eventually.ts";
import { pod } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import { failureOf, networkOf, Runtime, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";
import { MANIFESTS, runtimeOn } from "./shop.ts";

describe("requests", () => {
  const site = new PlainStack(() => ChildStack.start({ manifests: MANIFESTS }));

  const runtimeWith = (ipam: Readonly<Record<string, unknown>>) => runtimeOn(site.stack, ipam);

  it("E0110 a pod without a request gets any address of the network's pools and gives it back", async () => {
    const runtime = runtimeWith({ pools: ["web"] });
    const stranger = sandboxOf({ namespace: "shop", name: "stranger", uid: "" });
    const [address = ""] = await runtime.attach(stranger);
    assert.match(address, /^10\.30\.0\.\d+\/24$/);
    assert.equal(
      await site.stack.claim("shop/stranger").then((c) => c?.addresses.join()),
      address.split("/")[0],
    );
    await runtime.detach(stranger);
    await eventually("the address is given back at DEL", async () =>
      (await site.stack.claim("shop/stranger")) === undefined ? true : undefined,
    );
    // A pod that exists may get another sandbox: its address stays until it is deleted.
    const kept = await site.api.create(pod("shop", "resident"));
    const sandbox = sandboxOf(kept);
    const own = await runtime.attach(sandbox);
    await runtime.detach(sandbox);
    await site.detached(kept);
    const next = sandboxOf(kept);
    assert.deepEqual(await runtime.attach(next), own);
    await runtime.detach(next);
    await site.detached(kept);
    await site.api.delete(kept);
    await eventually("the address is given back at deletion", async () =>
      (await site.stack.claim("shop/resident")) === undefined ? true : undefined,
    );
  });

  it("E0111 where nothing is asked and nothing configured but ranges, addresses come from them as from host-local", async () => {
    const ranges = [[{ subnet: "10.77.0.0/29" }], [{ subnet: "fd00:77::/120", rangeStart: "fd00:77::10" }]];
    const runtime = runtimeWith({ ranges, routes: [{ dst: "0.0.0.0/0" }] });
    const [a, b] = [sandboxOf(await site.api.create(pod("shop", "plain"))), sandboxOf(undefined)];
    assert.deepEqual(await runtime.add(a), {
      kind: "succeeded",
      result: {
        cniVersion: "1.0.0",
        ips: [
          { address: "10.77.0.2/29", gateway: "10.77.0.1" },
          { address: "fd00:77::10/120", gateway: "fd00:77::1" },
        ],
        routes: [{ dst: "0.0.0.0/0" }],
        dns: {},
      },
    });
    assert.deepEqual(await runtime.attach(b), ["10.77.0.3/29", "fd00:77::11/120"]);
    await runtime.detach(a);
    assert.deepEqual(await runtime.attach(sandboxOf(undefined)), ["10.77.0.4/29", "fd00:77::12/120"]);
    assert.equal(await site.stack.claim("shop/plain"), undefined);
  });

  it("E0112 an address that is requested in several ways counts once", async () => {
    const ranges = [[{ subnet: "10.78.0.0/24" }]];
    const everywhere = {
      args: "IP=10.78.0.9/24",
      network: {
        args: { cni: { ips: ["10.78.0.9"] } },
        capabilities: { ips: true },
        runtimeConfig: { ips: ["10.78.0.9/24"] },
      },
    };
    assert.deepEqual(await runtimeWith({ ranges }).attach(sandboxOf(undefined), everywhere), [
      "10.78.0.9/24",
    ]);
    for (const how of [
      { args: "IP=10.78.0.20" },
      { network: { args: { cni: { ips: ["10.78.0.21"] } } } },
      { network: { runtimeConfig: { ips: ["10.78.0.22"] } } },
    ]) {
      const [got = ""] = await runtimeWith({ ranges }).attach(sandboxOf(undefined), how);
      assert.ok(JSON.stringify(how).includes(got.split("/")[0] ?? "-"), got);
    }
    // Multus repeats in CNI_ARGS what Berth itself has given.
    const kept = await site.api.create(pod("shop", "multus", { "berth.dev/ips": "10.20.0.98" }));
    const own = { args: "IP=10.20.0.98", network: { runtimeConfig: { ips: ["10.20.0.98/24"] } } };
    assert.deepEqual(await site.runtime.attach(sandboxOf(kept), own), ["10.20.0.98/24"]);
    assert.deepEqual(failureOf(await site.runtime.add(sandboxOf(kept), { args: "IP=10.20.0.97" })), {
      code: 115,
      msg: "the runtime asks for 10.20.0.97, and claim shop/multus holds 10.20.0.98; remove one of the two requests",
    });
  });

  it("E0114 a second interface is not served from pools beside the pod's claim, and says so", async () => {
    const runtime = runtimeWith({ pools: ["web"] });
    const eth0 = sandboxOf({ namespace: "shop", name: "multi", uid: "" });
    assert.match((await runtime.attach(eth0)).join(), /^10\.30\.0\.\d+\/24$/);
    const net1 = { ...eth0, interface: "net1" };
    const bare = failureOf(await runtimeWith({}).add(net1));
    const { msg, ...rest } = failureOf(await runtime.add(net1));
    assert.match(
      msg,
      /^claim shop\/multi serves eth0 with 10\.30\.0\.\d+, and no address was asked for net1: write one into berth\.dev\/ips of the pod, as ADDRESS@net1, or give network net ipam\.ranges or ipam\.addresses$/,
    );
    assert.equal(bare.msg, msg);
    assert.deepEqual(rest, {
      code: 7,
    });
    assert.deepEqual(await site.stack.attachedContainers(), [eth0.containerID]);
  });

  it("E0115 no network is given an address of a pool that is for others", async () => {
    const object = await site.api.create(pod("shop", "on-net", { "berth.dev/pools": "vlan20" }));
    const sandbox = sandboxOf(object);
    const { msg: words } = failureOf(await site.runtime.add(sandbox));
    assert.match(words, /pool "vlan20" is for networks vlan20, and net is none of them/);
    const silent = sandboxOf(await site.api.create(pod("shop", "silent-on-net")));
    assert.match(
      failureOf(await runtimeWith({ pools: ["vlan20"] }).add(silent)).msg,
      /pool "vlan20" is for networks vlan20/,
    );
    const vlan20 = new Runtime({ socket: site.stack.socket, network: networkOf({}, { name: "vlan20" }) });
    assert.match((await vlan20.attach(sandbox)).join(), /^10\.80\.0\.\d+\/24$/);
    await vlan20.detach(sandbox);
  });

  it("E0116 a pool that is for an attachment is chosen for pods that have it, and its address goes to that interface", async () => {
    const networks = { "k8s.v1.cni.cncf.io/networks": "lab/vlan10@data0" };
    const sticky = { "berth.dev/sticky": "true" };
    const plain = await site.api.create(pod("shop", "on-one-net", sticky));
    assert.doesNotMatch(plain.metadata.annotations?.["berth.dev/addresses"] ?? "", /^10\.[78]0\./);
    const kept = await site.api.create(pod("shop", "on-two-nets", { ...networks, ...sticky }));
    const address = kept.metadata.annotations?.["berth.dev/addresses"];
    assert.match(address ?? "", /^10\.70\.0\./);
    const sandbox = sandboxOf(kept);
    const first = runtimeWith({ ranges: [[{ subnet: "10.99.0.0/24" }]] });
    assert.match((await first.attach(sandbox)).join(), /^10\.99\.0\./);
    const second = { ...sandbox, interface: "data0" };
    const vlan10 = new Runtime({ socket: site.stack.socket, network: networkOf({}, { name: "bridge-10" }) });
    assert.deepEqual(await vlan10.attach(second), [`${address}/24`]);
    await vlan10.detach(second);
    await first.detach(sandbox);
  });
});
