// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Block } from "../../../allocator/model/block.ts";
import type { PoolRecord, PoolSpec } from "../../../allocator/pool/pool.ts";
import { bindingTo, claimRecord, poolRecord } from "../../../test/support/fixtures.ts";
import { openWorld } from "../../../test/support/world.ts";
import { namespaceFacts, observedNode, observedPod } from "../../cluster-state/projections.ts";
import { countNodeNeeds } from "./node-needs.ts";

interface Scene {
  readonly pools: readonly PoolRecord[];
  readonly nodes?: Readonly<Record<string, object>>; // name -> of its object
  readonly pods?: Readonly<Record<string, object>>; // name -> of its object
  readonly blocks?: readonly Partial<Block>[];
  readonly claims?: readonly string[]; // of pods of these names
  readonly namespace?: object;
}

const item = (name: string, object: object, namespace?: string) => {
  const { metadata = {}, ...rest } = object as { metadata?: object };
  const meta = {
    name,
    uid: `uid-${name}`,
    resourceVersion: "1",
    ...(namespace === undefined ? {} : { namespace }),
  };
  return { ...rest, metadata: { ...meta, ...metadata } };
};

const reflected = <T>(made: readonly (readonly [string, T])[]) => {
  const map = new Map(made);
  return { all: () => map.entries() as never, get: (key: string) => map.get(key) };
};

/** pool/family of each pool -> node:addresses. */
async function needs(scene: Scene): Promise<Record<string, string>> {
  await using world = await openWorld({ pools: scene.pools });
  for (const block of scene.blocks ?? []) {
    const { status, ...record } = block;
    const base = { cidr: "10.0.0.0/28", pool: "web", node: "a", nodeUID: "u", holes: [], granted: true };
    const made = await world.authority.create("block", { ...base, ...record });
    if (status !== undefined) await world.authority.reportBlock(made.stored, status);
  }
  for (const name of scene.claims ?? [])
    await world.authority.create("claim", claimRecord({ name, binding: bindingTo(name, "a") }));
  await world.settle();
  const nodes = Object.entries(scene.nodes ?? { a: {}, b: {} });
  const pods = Object.entries(scene.pods ?? {});
  let rests = 0;
  const demand = await countNodeNeeds(
    {
      mirror: world.mirror,
      watches: {
        nodes: reflected(nodes.map(([name, object]) => [name, observedNode(item(name, object))])),
        pods: reflected(
          pods.map(([name, object]) => [`shop/${name}`, observedPod(item(name, object, "shop"))]),
        ),
        namespaces: reflected([["shop", namespaceFacts(item("shop", scene.namespace ?? {}))]]),
      },
    },
    async () => void rests++,
  );
  assert.equal(rests, Math.floor(pods.length / 500));
  const found: Record<string, string> = {};
  for (const pool of world.mirror.pools()) {
    for (const family of pool.families) {
      const own = demand.needs(pool, family).map(({ node, pods: count }) => `${node}:${count}`);
      found[`${pool.name}/${family}`] = own.join(" ");
    }
  }
  return found;
}

const web = (over: Partial<PoolSpec> = {}, name = "web", cidr: string | string[] = "10.0.0.0/24") =>
  poolRecord(name, cidr, { blockSize: { ipv4: 28 }, ...over });
const on = (nodeName: string, more: object = {}) => ({ spec: { nodeName, ...more } });

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
    };
    const pools = [web({ default: true })];
    assert.deepEqual(await needs({ pools, pods, claims: ["claimed"] }), { "web/IPv4": "a:1 b:3" });
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
