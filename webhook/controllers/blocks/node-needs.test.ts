// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { poolRecord } from "../../../test/support/fixtures.ts";
import { needs, on, reported, web } from "../../testing/node-needs.ts";

describe("what nodes need of a pool with blocks", () => {
  it("is counted by pods that have no claim, a network of their own, and a node", async () => {
    const pods = {
      ...{
        one: on("a"),
        two: on("b"),
        three: on("b"),
        unscheduled: on(""),
        host: on("a", { hostNetwork: true }),
      },
      ended: { ...on("a"), status: { phase: "Succeeded" } },
      deleting: { ...on("b"), metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } },
      admitted: { ...on("a"), metadata: { annotations: { "berth.dev/claim": "x" } } },
      ...{ claimed: on("a"), elsewhere: on("gone") },
      both: reported("b", "10.0.0.7@eth0,10.1.0.7@net1"),
      further: reported("a", "10.1.0.8@net1"),
    };
    const pools = [web({ default: true })];
    assert.deepEqual(await needs({ pools, pods, claims: ["claimed"] }), { "web/IPv4": "a:2 b:3" });
  });

  it("goes by the choice that agents make: by selectors, then the default, and nothing for who asks for an address", async () => {
    const pools = [
      web({ default: true }),
      web({ nodeSelector: { matchLabels: { zone: "bj" } } }, "bj", "10.1.0.0/24"),
      web({}, "named", "10.2.0.0/24"),
      poolRecord("uncut", "10.3.0.0/24", { namespaceSelector: {} }),
    ];
    const nodes = { a: { metadata: { labels: { zone: "bj" } } }, b: {} };
    const asked = { metadata: { annotations: { "berth.dev/pools": "named" } } };
    const pods = {
      one: on("a"),
      two: on("b"),
      three: { ...on("b"), ...asked },
      four: { ...on("a"), ...asked },
    };
    assert.deepEqual(await needs({ pools, nodes, pods }), {
      "bj/IPv4": "a:1",
      "named/IPv4": "a:0 b:0",
      "uncut/IPv4": "a:0 b:0",
      "web/IPv4": "a:0 b:1",
    });
    const all = await needs({ pools, nodes, pods, namespace: asked });
    assert.deepEqual(all["bj/IPv4"], "a:1", "a namespace that asks now asked for nobody who has no claim");
  });

  it("is none of a pod that has an address from elsewhere, and of one that has addresses the pools that these are of", async () => {
    const has = (node: string, ...ips: readonly string[]) => ({
      ...on(node),
      status: { podIPs: ips.map((ip) => ({ ip })) },
    });
    const pools = [
      web({ default: true }),
      web({ blockSize: { ipv4: 28, ipv6: 124 } }, "named", ["10.1.0.0/24", "fd00::/64"]),
      poolRecord("uncut", "10.3.0.0/24"),
    ];
    const pods = {
      local: has("a", "10.244.1.9"),
      named: has("a", "10.1.0.9", "fd00::9"),
      fixed: has("a", "10.3.0.9"),
      served: has("b", "10.0.0.9"),
      starts: on("b"),
    };
    assert.deepEqual(await needs({ pools, pods }), {
      "web/IPv4": "a:0 b:2",
      "named/IPv4": "a:1 b:0",
      "named/IPv6": "a:1 b:0",
      "uncut/IPv4": "a:0 b:0",
    });
  });

  it("is what agents say is used, where that is more, and where pods' labels decide", async () => {
    const status = { node: "a", used: 5 };
    const blocks = [
      { status },
      { cidr: "10.0.0.16/28", status: { node: "a", used: 4 } },
      { cidr: "10.0.0.32/28", status: { node: "a", used: 9, returnedAt: 1 } },
      { cidr: "10.0.0.48/28", status, releasedAt: 1 },
      { cidr: "10.0.0.64/28", node: "b" },
    ];
    const pods = { one: on("a"), two: on("b") };
    assert.deepEqual(await needs({ pools: [web({ default: true })], blocks, pods }), {
      "web/IPv4": "a:9 b:1",
    });
    const picky = web({ podSelector: { matchLabels: { app: "x" } } });
    assert.deepEqual(await needs({ pools: [picky], blocks, pods }), { "web/IPv4": "a:9 b:0" });
  });

  it("of a pod that has no address goes by its labels, and of one that has goes by its address", async () => {
    const labels = { app: "x" };
    const pools = [web({ podSelector: { matchLabels: labels } })];
    const pods = {
      waits: { ...on("a"), metadata: { labels } },
      other: { ...on("a"), metadata: { labels: { app: "y" } } },
      ended: { ...on("b"), metadata: { labels }, status: { phase: "Failed" } },
      served: { ...on("b"), metadata: { labels }, status: { podIPs: [{ ip: "10.0.0.9" }] } },
    };
    assert.deepEqual(await needs({ pools, pods }), { "web/IPv4": "a:1 b:1" });
  });

  it("of a pod that has waited in vain is of each pool that may serve it and that nodes have nothing ahead of", async () => {
    const singles = { ipv4: 32, ahead: 0 };
    const pools = [
      web({ namespaceSelector: {}, priority: 2, blockSize: singles }, "first"),
      web({ namespaceSelector: {}, blockSize: singles }, "second", "10.1.0.0/24"),
      web({ networks: ["lan"], blockSize: singles }, "lan", "10.2.0.0/24"),
      web({ namespaceSelector: {} }, "ahead", "10.3.0.0/24"),
      web({ nodeSelector: { matchLabels: { zone: "bj" } }, blockSize: singles }, "beijing", "10.4.0.0/24"),
    ];
    const pods = { waits: on("a"), served: { ...on("a"), status: { podIPs: [{ ip: "10.0.0.9" }] } } };
    const none = { "ahead/IPv4": "a:0 b:0", "beijing/IPv4": "" };
    assert.deepEqual(await needs({ pools, pods, waitedMs: 4_999 }), {
      ...{ "first/IPv4": "a:2 b:0", "second/IPv4": "a:0 b:0", "lan/IPv4": "a:0 b:0" },
      ...none,
    });
    assert.deepEqual(await needs({ pools, pods, waitedMs: 5_000 }), {
      ...{ "first/IPv4": "a:2 b:0", "second/IPv4": "a:1 b:0", "lan/IPv4": "a:1 b:0" },
      ...none,
    });
    // where pods have addresses from elsewhere, so will this one, unless it waits for long
    const others = { ...pods, other: { ...on("a"), status: { podIPs: [{ ip: "10.244.1.9" }] } } };
    const elsewhere = { "first/IPv4": "a:1 b:0", "second/IPv4": "a:0 b:0", "lan/IPv4": "a:0 b:0" };
    assert.deepEqual(await needs({ pools, pods: others, waitedMs: 29_999 }), { ...elsewhere, ...none });
    assert.deepEqual((await needs({ pools, pods: others, waitedMs: 30_000 }))["second/IPv4"], "a:1 b:0");
  });

  it("comes with what cools there of the addresses that pods had", async () => {
    const pools = [web({ default: true, blockSize: { ipv4: 28, ahead: 0 }, cooldown: "10m" })];
    const scene = { pools, pods: { one: on("a") }, blocks: [{}] };
    assert.deepEqual(await needs({ ...scene, freed: ["10.0.0.7", "10.0.0.8"] }), {
      "web/IPv4": "a:1 cooling:2 b:0",
    });
  });

  it("is never more of a block than it has addresses, whatever its agent says", async () => {
    const blocks = [{ status: { node: "a", used: 4096 } }];
    assert.deepEqual(await needs({ pools: [web({ default: true })], blocks }), { "web/IPv4": "a:16 b:0" });
  });

  it("is no more than a node's pods can use and 16 beyond, however many full blocks its agent tells of", async () => {
    const blocks = Array.from({ length: 4 }, (_, n) => ({
      cidr: `10.0.0.${n * 16}/28`,
      status: { node: "a", used: 16 },
    }));
    const pools = [web({ default: true })];
    assert.deepEqual(await needs({ pools, blocks }), { "web/IPv4": "a:16 b:0" });
    const metadata = { annotations: { "k8s.v1.cni.cncf.io/networks": "one,two" } };
    const pods = {
      ...{ one: on("a"), two: on("a"), three: { ...on("a"), metadata }, elsewhere: on("b") },
      ...{ host: on("a", { hostNetwork: true }) },
      ended: { ...on("a"), status: { phase: "Succeeded" } },
    };
    // an ended pod's sandbox is there until its DEL
    assert.deepEqual(await needs({ pools, blocks, pods }), { "web/IPv4": "a:22 b:1" });
  });

  it("is nothing of nodes that are fenced, and lets others have their turn", async () => {
    const nodes = { a: {}, b: { spec: { taints: [{ key: "node.kubernetes.io/out-of-service" }] } } };
    const pods = Object.fromEntries(
      Array.from({ length: 1_001 }, (_, n) => [`p${n}`, on(n % 2 ? "a" : "b")]),
    );
    assert.deepEqual(await needs({ pools: [web({ default: true })], nodes, pods }), { "web/IPv4": "a:500" });
  });
});
