// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { addrs, attachmentOf, bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import { usesInCluster } from "./uses-in-cluster.ts";

const READY_AT = "2026-01-01T00:00:05Z";

/** Pod `name` with that status, as its claim is bound to it. */
function podWith(name: string, status: object, namespace = "shop"): KubeObject {
  const object = readObject({ ...pod(name, { namespace, uid: `uid-of-${name}` }), status });
  return isRefusal(object) ? assert.fail(object.message) : object;
}

function boundTo(name: string, over: Partial<Claim> = {}): Claim {
  const addresses = addrs("10.20.0.70", "fd00:20::70");
  return claimRecord({ name, addresses, binding: bindingTo(name, "node-a"), ...over });
}

function worldOf(...pods: readonly KubeObject[]) {
  const calls: string[] = [];
  return {
    calls,
    object: async (_: string, namespace: string, name: string) => {
      calls.push(`get ${name}`);
      return pods.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    },
    async *each(_: string, namespace?: string) {
      calls.push(`list ${namespace ?? "all"}`);
      yield* pods.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
    },
  };
}

const UP = { podIPs: [{ ip: "10.20.0.70" }, { ip: "fd00:20::70" }] };

describe("what uses the addresses of claims in a cluster", () => {
  it("is told by the status of the pod, where no agent says it", async () => {
    const conditions = [{ type: "PodReadyToStartContainers", status: "True", lastTransitionTime: READY_AT }];
    const world = worldOf(podWith("mysql-0", { ...UP, conditions }));
    const [use, ...more] = await usesInCluster([boundTo("mysql-0")], world);
    assert.deepEqual(more, []);
    assert.deepEqual(use?.pod, { namespace: "shop", name: "mysql-0", uid: "uid-of-mysql-0" });
    assert.deepEqual(
      [use.containerID, use.interface, use.node, use.claim],
      ["", "eth0", "node-a", "shop/mysql-0"],
    );
    assert.deepEqual(use.attachedAt, Date.parse(READY_AT));
    assert.deepEqual(
      use.result.addresses.map(({ address }) => address),
      ["10.20.0.70", "fd00:20::70"],
    );
  });

  it("is none of a pod that has ended, is another one, or has other addresses", async () => {
    const other = { ...boundTo("mysql-0"), binding: bindingTo("mysql-0", "node-a", { podUID: "former" }) };
    for (const [claim, status] of [
      [boundTo("mysql-0"), { ...UP, phase: "Failed" }],
      [boundTo("mysql-0"), { podIPs: [{ ip: "10.9.0.1" }] }],
      [boundTo("mysql-0"), {}],
      // the kubelet goes on telling the addresses of the last sandbox
      [boundTo("mysql-0"), { ...UP, conditions: [{ type: "PodReadyToStartContainers", status: "False" }] }],
      [other, UP],
    ] as const)
      assert.deepEqual(await usesInCluster([claim], worldOf(podWith("mysql-0", status))), []);
  });

  it("are the addresses of those families of which the kubelet tells one", async () => {
    const claim = boundTo("mysql-0", { addresses: addrs("10.20.0.70", "fd00:20::70", "fd00:20::71") });
    const told = async (...ips: readonly string[]) => {
      const status = { podIPs: ips.map((ip) => ({ ip })) };
      const uses = await usesInCluster([claim], worldOf(podWith("mysql-0", status)));
      return uses.flatMap(({ result }) => result.addresses.map(({ address }) => address));
    };
    assert.deepEqual(await told("10.20.0.70"), ["10.20.0.70"]);
    assert.deepEqual(await told("fd00:20::70"), ["fd00:20::70", "fd00:20::71"]);
    assert.deepEqual(await told("10.20.0.71"), []);
  });

  it("asks no pod where an agent has spoken, or the claim is on no node", async () => {
    const world = worldOf(podWith("mysql-0", UP));
    const told = boundTo("mysql-0", { status: { attachment: attachmentOf("mysql-0") } });
    const ended = boundTo("mysql-1", { status: { attachment: attachmentOf("mysql-1", { detached: true }) } });
    const held = boundTo("mysql-2", { binding: bindingTo("mysql-2", "") });
    const uses = await usesInCluster([told, ended, held], world);
    assert.deepEqual(
      uses.map(({ containerID }) => containerID),
      ["sandbox-of-mysql-0"],
    );
    assert.deepEqual(world.calls, []);
  });

  it("asks for the next pod of a name whose predecessor's end was told", async () => {
    const former = attachmentOf("mysql-0", { detached: true, podUID: "former" });
    const uses = await usesInCluster(
      [boundTo("mysql-0", { status: { attachment: former } })],
      worldOf(podWith("mysql-0", UP)),
    );
    assert.equal(uses.length, 1);
  });

  it("lists the pods where there are many claims", async () => {
    const names = Array.from({ length: 17 }, (_, n) => `web-${n}`);
    const world = worldOf(...names.map((name) => podWith(name, UP)));
    const uses = await usesInCluster(
      names.map((name) => boundTo(name)),
      world,
    );
    assert.deepEqual([uses.length, world.calls], [17, ["list shop"]]);
  });

  it("lists a pod once, of all namespaces where there are many, and of each where that is not allowed", async () => {
    const names = Array.from({ length: 17 }, (_, n) => `team-${n}`);
    const claims = names.map((namespace) => boundTo("web", { namespace }));
    const pods = names.map((namespace) => podWith("web", UP, namespace));
    const world = worldOf(...pods);
    assert.equal((await usesInCluster(claims, world)).length, 17);
    assert.deepEqual(world.calls, ["list all"]);
    const each = async function* (kind: string, namespace?: string) {
      if (namespace === undefined || namespace === "team-3")
        throw new BerthError("STORE_READ_ONLY", "pods is forbidden");
      yield* world.each(kind, namespace);
    };
    assert.equal((await usesInCluster(claims, { ...world, each })).length, 16);
    const former = { ...boundTo("web", { namespace: "team-0" }), name: "former" };
    const binding = bindingTo("web", "node-b", { podUID: "former" });
    assert.equal((await usesInCluster([...claims, { ...former, binding }], world)).length, 17);
  });

  it("has the MAC address of the interface, and is told of eth0 beside what an agent says of another", async () => {
    const [v4, mac] = addrs("10.20.0.70", "fdbe:5254:4800::200:0:51");
    assert.ok(v4 && mac);
    const interfaces = { eth0: [v4], "mac-eth0": [mac] };
    const claim = boundTo("mysql-0", { addresses: [v4, mac], interfaces });
    const attachment = { ...attachmentOf("mysql-0"), interface: "net1" };
    for (const status of [{}, { attachment }]) {
      const uses = await usesInCluster([{ ...claim, status }], worldOf(podWith("mysql-0", UP)));
      const [use] = uses.filter((one) => one.interface === "eth0");
      assert.deepEqual(use?.result.addresses, [{ address: v4 }, { address: mac }]);
    }
  });

  it("has all addresses of the interface where the kubelet tells of one of each family", async () => {
    const addresses = addrs("10.20.0.70", "10.20.0.71");
    const [use] = await usesInCluster([boundTo("mysql-0", { addresses })], worldOf(podWith("mysql-0", UP)));
    assert.deepEqual(
      use?.result.addresses.map(({ address }) => address),
      addresses,
    );
  });

  it("leaves out what this user may not read", async () => {
    const object = async () => {
      throw new BerthError("STORE_READ_ONLY", "pods is forbidden");
    };
    assert.deepEqual(await usesInCluster([boundTo("mysql-0")], { ...worldOf(), object }), []);
  });
});
