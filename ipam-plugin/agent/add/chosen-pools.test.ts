// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import type { BlockSource } from "../blocks/block-source.ts";
import { addressesOf, errorOf, NodeBench, podArgs } from "../testing/node-bench.ts";

let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    node.ipam = {};
    const team = (name: string) => ({ namespaceSelector: { matchLabels: { team: name } } });
    pool("bank", "10.1.0.0/24", team("bank"));
    pool("shop", "10.2.0.0/24", team("shop"));
    pool("rest", "10.3.0.0/24", { default: true });
    for (const [i, name] of ["bank", "shop", "rest"].entries())
      node.blockSource.grant(name, `10.${i + 1}.0.4/30`);
    await node.hearBlocks();
  });
  afterEach(() => node.close());
}

function pool(name: string, cidr: string, spec: object): void {
  node.blockSource.stored.set(name, parsed(poolRecord(name, cidr, { blockSize: { ipv4: 30 }, ...spec })));
}

const known = (team: string) => ({ podLabels: {}, namespaceLabels: { team }, nodeLabels: {} });
const pod = (cid: string, ipam: object = {}) => ({ cid, args: podArgs(cid, `uid-${cid}`), ipam });

describe("the pool of a pod that asks for nothing", () => {
  setUp();

  it("is the one that selects its namespace, else the default one", async () => {
    const got = [];
    for (const team of ["bank", "shop", "other"]) {
      node.blockSource.facts = known(team);
      got.push(...(await node.add(pod(team))));
    }
    assert.deepEqual(got, ["10.1.0.4", "10.2.0.4", "10.3.0.4"]);
  });

  it("is one that its network names, and none that is closed to its namespace", async () => {
    node.blockSource.facts = known("shop");
    assert.deepEqual(await node.add(pod("a", { pools: ["bank", "shop"] })), ["10.2.0.4"]);
    const refused = errorOf(await node.call("ADD", pod("b", { pools: ["bank"] })));
    assert.deepEqual([refused.code, refused.details], [106, "POOL_FORBIDDEN"]);
  });

  it("is asked for in the words of a network that was written for another plugin", async () => {
    node.blockSource.facts = known("other");
    node.blockSource.stored.delete("rest");
    node.blockSource.stored.set("plain", parsed(poolRecord("plain", "10.4.0.0/24", { blockSize: {} })));
    await node.hearBlocks();
    const reported = async (ipam: object) => errorOf(await node.call("ADD", pod("a", ipam))).msg;
    for (const [type, list] of [
      ["antrea", "ipam\\.ippools"],
      ["spiderpool", "ipam\\.default_ipv4_ippool"],
      ["calico-ipam", "ipam\\.ipv4_pools"],
    ] as const)
      assert.match(
        await reported({ type }),
        new RegExp(
          `no pool serves a network without ${list}.* of type ${type}; make an IPPool with networks: .*blockSize: {ipv4: 32`,
        ),
      );
    assert.match(
      await reported({ type: "antrea", ippools: ["plain"] }),
      /pool "plain", which ipam\.ippools of type antrea means, gives addresses by request alone; make it with blockSize/,
    );
  });

  it("is to be made where a network of another plugin names one that is not there", async () => {
    node.blockSource.stored.clear();
    node.blockSource.facts = known("other");
    const refused = async (ipam: object) => errorOf(await node.call("ADD", pod("a", ipam)));
    const calico = { type: "calico-ipam", ipv4_pools: ["foo"] };
    const meant = "ipam.ipv4_pools of type calico-ipam names";
    const single = "an IPPool of that name with blockSize: {ipv4: 32}, or name another";
    const none = `network net: there is no pool "foo", which ${meant}; make ${single}`;
    for (const ipv4_pools of [["foo"], ["10.77.0.0/24", "foo"]]) {
      const { code, msg, details } = await refused({ ...calico, ipv4_pools });
      assert.deepEqual([code, details, msg], [104, "POOL_UNKNOWN", none]);
    }
    node.blockSource.stored.set("web", parsed(poolRecord("web", "10.4.0.0/24")));
    const { msg } = await refused({ ...calico, ipv4_pools: ["web", "foo"] });
    const beside = `, and pool "web" gives addresses by request alone; make ${single}`;
    assert.equal(msg, `network net: there is no pool "foo", which ${meant}${beside}`);
    const spiderpool = { type: "spiderpool", default_ipv6_ippool: ["a", "b"] };
    assert.match(
      (await refused(spiderpool)).msg,
      /no pool "a", "b", which ipam\.default_ipv6_ippool .* make IPPools of those names with blockSize: \{ipv6: 128\}/,
    );
  });

  it("needs a pod that the runtime names where one host makes claims of it, for networks of other plugins too", async () => {
    const source: BlockSource = node.blockSource;
    Object.assign(source, { more: async () => false });
    node.blockSource.stored.clear();
    node.blockSource.stored.set("web", parsed(poolRecord("web", "10.4.0.0/24")));
    const reported: unknown[] = [];
    node.parts.networkWarnings.uncut = (_, { size }) => void reported.push(size);
    const words = "needs K8S_POD_NAMESPACE and K8S_POD_NAME in CNI_ARGS; the runtime does not send both";
    for (const [field, ipam] of [
      ["ipam.pools", { pools: ["web"] }],
      ["ipam.ipv4_pools", { type: "calico-ipam", ipv4_pools: ["web"] }],
      ["ipam.ipv4_pools", { type: "calico-ipam", ipv4_pools: ["10.4.0.0/24"] }],
    ] as const) {
      const { code, msg } = errorOf(await node.call("ADD", { args: "", ipam }));
      assert.deepEqual([code, msg], [7, `${field} ${words}`]);
    }
    assert.deepEqual([...new Set(reported)], ["{ipv4: 32}"]);
    const nothing = errorOf(await node.call("ADD", { args: "", ipam: {} }));
    assert.match(nothing.msg, /^no IP ranges specified: .*; or make a pool with blockSize .* default: true$/);
  });

  it("is not asked for where the network has addresses of its own", async () => {
    node.blockSource.facts = known("shop");
    assert.deepEqual(await node.add(pod("a", { subnet: "10.9.0.0/24" })), ["10.9.0.2"]);
  });

  it("is waited for while labels are not known that a selector asks about", async () => {
    const adding = node.call("ADD", pod("a"));
    await new Promise(setImmediate);
    node.blockSource.facts = known("bank");
    node.parts.blockFollower.wake();
    assert.deepEqual(addressesOf(await adding), ["10.1.0.4"]);
  });

  it("is asked for where only the journal knows of the pool that asks about a namespace's labels", async () => {
    node.blockSource.facts = { podLabels: {}, nodeLabels: {} };
    assert.deepEqual(await node.add(pod("b", { pools: ["rest"] })), ["10.3.0.4"]);
    assert.equal(node.blockSource.areNamespacesWanted, false);
    for (const name of ["bank", "shop"]) node.blockSource.stored.delete(name);
    node.blockSource.isSynced = false;
    await node.restart();
    const adding = node.call("ADD", pod("a"));
    await new Promise(setImmediate);
    assert.equal(node.blockSource.areNamespacesWanted, true);
    node.blockSource.facts = known("other");
    node.parts.blockFollower.wake();
    assert.deepEqual(addressesOf(await adding), ["10.3.0.5"]);
  });

  it("is not guessed: without the labels the pod is to try again, and others are served", async () => {
    const adding = node.call("ADD", pod("a"));
    const other = await node.add(pod("b", { pools: ["rest"] }));
    assert.deepEqual(other, ["10.3.0.4"], "nothing selects pods or namespaces for this pool");
    let over = false;
    void adding.then(() => {
      over = true;
    });
    while (!over) {
      await node.clock.advance(1_000);
      await new Promise(setImmediate);
    }
    const { code, msg } = errorOf(await adding);
    const words =
      "the labels of the namespace of pod shop/a are not known on this node: the API server has not told of it; try again";
    assert.deepEqual([code, msg], [11, words]);
  });

  it("is one that no selector must match, where the runtime names no pod", async () => {
    node.blockSource.facts = { nodeLabels: {} };
    assert.deepEqual(await node.add({ cid: "a", args: "" }), ["10.3.0.4"]);
    const refused = errorOf(await node.call("ADD", { cid: "b", args: "", ipam: { pools: ["bank"] } }));
    assert.equal(refused.code, 7);
    assert.match(refused.msg, /needs K8S_POD_NAMESPACE and K8S_POD_NAME in CNI_ARGS/);
  });

  it("is one of its network's, by the name of the configuration or of the attachment", async () => {
    pool("vlan10", "10.4.0.0/24", { networks: ["bridge-10"] });
    pool("vlan20", "10.5.0.0/24", { networks: ["shop/vlan20"] });
    node.blockSource.grant("vlan10", "10.4.0.4/30");
    node.blockSource.grant("vlan20", "10.5.0.4/30");
    await node.hearBlocks();
    const podAnnotations = { "k8s.v1.cni.cncf.io/networks": "vlan20" };
    node.blockSource.facts = { ...known("other"), podAnnotations };
    const conf = { name: "bridge-10" };
    assert.deepEqual(await node.add({ ...pod("a"), conf }), ["10.4.0.4"]);
    assert.deepEqual(await node.add({ ...pod("a"), ifname: "net1" }), ["10.5.0.4"]);
    assert.deepEqual(await node.add(pod("a")), ["10.3.0.4"]);
    const elsewhere = errorOf(await node.call("ADD", pod("b", { pools: ["vlan10"] })));
    assert.match(elsewhere.msg, /pool "vlan10" is for networks bridge-10, and net is none of them/);
    assert.deepEqual(await node.add(pod("b", { pools: ["vlan10", "rest"] })), ["10.3.0.5"]);
  });

  it("waits for the pod's annotations where a pool is for an attachment", async () => {
    pool("vlan20", "10.5.0.0/24", { networks: ["shop/vlan20"] });
    node.blockSource.grant("vlan20", "10.5.0.4/30");
    await node.hearBlocks();
    node.blockSource.facts = known("other");
    const adding = node.call("ADD", { ...pod("a"), ifname: "net1" });
    await new Promise(setImmediate);
    const podAnnotations = { "k8s.v1.cni.cncf.io/networks": "vlan20" };
    node.blockSource.facts = { ...known("other"), podAnnotations };
    node.parts.blockFollower.wake();
    assert.deepEqual(addressesOf(await adding), ["10.5.0.4"]);
  });

  it("of a family is the first that has an address: two pools serve one pod of two families", async () => {
    const v6 = { ranges: [{ cidr: "fd00::/64" }], blockSize: { ipv6: 126 } };
    pool("six", "10.0.0.0/24", v6);
    node.blockSource.grant("six", "fd00::8/126");
    await node.hearBlocks();
    assert.deepEqual(await node.add(pod("a", { pools: ["rest", "six"] })), ["10.3.0.4", "fd00::8"]);
    const [{ pool: from } = assert.fail()] = node.parts.attachments.attached();
    assert.equal(from, "rest,six");
  });
});
