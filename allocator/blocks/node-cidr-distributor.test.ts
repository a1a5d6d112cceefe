// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { FailingStore, type Failure } from "../../test/support/failing-store.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BerthError } from "../base/errors.ts";
import { type Family, parseCidr } from "../ip/address.ts";
import { fullInterval, intersection } from "../ip/ip-range.ts";
import type { PoolRecord } from "../pool/pool.ts";
import type { Store } from "../store/store.ts";
import { type ClusterNode, NodeCidrDistributor, type NodeFacts } from "./node-cidr-distributor.ts";

/** Nodes as an API server keeps them: what one says of its CIDRs it says for good. */
class Nodes implements NodeFacts {
  readonly there = new Map<string, ClusterNode>();
  readonly seen = new Map<string, ClusterNode>(); // what a watch shows of them
  #uids = 0;
  /** Counts writes of the process whose facts these are; thrown at that one. */
  failAt: { readonly n: number; readonly when: Failure } | undefined;
  #writes = 0;

  add(name: string, over: Partial<ClusterNode> = {}): ClusterNode {
    const node = { name, uid: `uid-${++this.#uids}`, labels: {}, podCIDRs: [], ...over };
    this.there.set(name, node);
    return node;
  }

  show(): void {
    this.seen.clear();
    for (const [name, node] of this.there) this.seen.set(name, node);
  }

  nodes(): Iterable<ClusterNode> {
    return [...this.seen.values()];
  }

  async live(name: string): Promise<ClusterNode | undefined> {
    return this.there.get(name);
  }

  async gone(name: string): Promise<boolean> {
    return !this.there.has(name);
  }

  async tell(node: ClusterNode, cidrs: readonly string[]): Promise<"told" | "changed"> {
    const n = ++this.#writes;
    if (this.failAt?.n === n && this.failAt.when === "before")
      throw new BerthError("STORE_UNAVAILABLE", "died");
    const now = this.there.get(node.name);
    if (now?.uid !== node.uid || now.podCIDRs.length > 0) return "changed";
    this.there.set(node.name, { ...now, podCIDRs: cidrs });
    if (this.failAt?.n === n) throw new BerthError("STORE_UNAVAILABLE", "died");
    return "told";
  }
}

function nodesPool(name: string, cidr: string, length: number, spec: object = {}): PoolRecord {
  const blockSize = cidr.includes(":") ? { ipv6: length } : { ipv4: length };
  return poolRecord(name, cidr, { nodeCIDRs: { use: "PodCIDR", blockSize }, cooldown: "0s", ...spec });
}

const FOUR = nodesPool("four", "10.244.0.0/21", 24);
const SIX = nodesPool("six", "fd00:10::/48", 64);

function distributor(
  world: World,
  nodes: NodeFacts,
  {
    families = ["IPv4"],
    store = world.authority,
  }: { readonly families?: readonly Family[]; readonly store?: Store } = {},
): NodeCidrDistributor {
  return new NodeCidrDistributor({ ...world.context, store, view: world.mirror }, nodes, { families });
}

/** No two nodes have an address in common, and what each says is recorded as its. */
async function check(world: World, nodes: Nodes): Promise<void> {
  const all = [...nodes.there.values()].flatMap(({ name, podCIDRs }) =>
    podCIDRs.map((text) => ({ name, text })),
  );
  const blocks = await world.all("block");
  for (const [i, { name, text }] of all.entries()) {
    const cidr = parseCidr(text) ?? assert.fail(text);
    const shared = all.slice(i + 1).find((other) => {
      const network = parseCidr(other.text);
      return (
        network?.family === cidr.family &&
        intersection(fullInterval(network), fullInterval(cidr)) !== undefined
      );
    });
    assert.equal(shared, undefined, `${text} of ${name}`);
    const record = blocks.find(({ key }) => key === text)?.record;
    if (record !== undefined) assert.equal(record.node, name, text);
  }
}

async function settle(world: World, nodes: Nodes): Promise<void> {
  await world.settle();
  nodes.show();
}

async function pass(world: World, nodes: Nodes, by: NodeCidrDistributor) {
  await settle(world, nodes);
  const report = await by.pass();
  await settle(world, nodes);
  await check(world, nodes);
  return report;
}

describe("the distributor of nodes' CIDRs", () => {
  it("gives each Node one of each family at once, in the order that is asked for, and then nothing more", async () => {
    await using world = await openWorld({ pools: [FOUR, SIX] });
    const nodes = new Nodes();
    for (const name of ["a", "b", "c"]) nodes.add(name);
    const by = distributor(world, nodes, { families: ["IPv6", "IPv4"] });
    assert.deepEqual(await pass(world, nodes, by), { short: [], collisions: [], waiting: 0 });
    for (const { podCIDRs } of nodes.there.values()) {
      assert.deepEqual(
        podCIDRs.map((text) => parseCidr(text)?.prefixLength),
        [64, 24],
      );
    }
    const before = world.dump();
    assert.deepEqual(await pass(world, nodes, by), { short: [], collisions: [], waiting: 0 });
    assert.equal(world.dump(), before);
  });

  it("tells a Node nothing before it has both families", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("a");
    const by = distributor(world, nodes, { families: ["IPv4", "IPv6"] });
    const { short, waiting } = await pass(world, nodes, by);
    assert.deepEqual([short.map(({ family, pools }) => [family, pools]), waiting], [[["IPv6", []]], 1]);
    assert.deepEqual(nodes.there.get("a")?.podCIDRs, []);
    await world.authority.create("pool", SIX);
    assert.equal((await pass(world, nodes, by)).waiting, 0);
    assert.equal(nodes.there.get("a")?.podCIDRs.length, 2);
  });

  it("takes over what Nodes have, whoever gave it, and names those who share", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("a", { podCIDRs: ["10.244.3.0/24"] });
    nodes.add("b", { podCIDRs: ["10.244.4.0/23"] });
    nodes.add("elsewhere", { podCIDRs: ["10.9.0.0/24"] });
    for (const name of ["x", "y", "z", "u", "v"]) nodes.add(name);
    const by = distributor(world, nodes);
    const { collisions, waiting } = await pass(world, nodes, by);
    assert.deepEqual([collisions, waiting], [[], 0]);
    const owners = new Map((await world.all("block")).map(({ key, record }) => [key, record.node]));
    assert.deepEqual(
      [owners.get("10.244.3.0/24"), owners.get("10.244.4.0/24"), owners.get("10.244.5.0/24")],
      ["a", "b", "b"],
    );
    assert.equal(owners.size, 8);
    nodes.add("late", { podCIDRs: ["10.244.3.128/25"] });
    await settle(world, nodes);
    const { collisions: found } = await by.pass();
    assert.deepEqual(
      found.map((one) => [one.node, one.cidr, one.pool, one.with?.node]),
      [["late", "10.244.3.128/25", "four", "a"]],
    );
  });

  it("records what a Node has in each pool that it lies in", async () => {
    const pools = [nodesPool("high", "10.244.0.0/24", 24), nodesPool("low", "10.244.1.0/24", 24)];
    await using world = await openWorld({ pools });
    const nodes = new Nodes();
    nodes.add("wide", { podCIDRs: ["10.244.0.0/23"] });
    await pass(world, nodes, distributor(world, nodes));
    assert.deepEqual(
      (await world.all("block")).map(({ key, record }) => [key, record.pool, record.node]).toSorted(),
      [
        ["10.244.0.0/24", "high", "wide"],
        ["10.244.1.0/24", "low", "wide"],
      ],
    );
  });

  it("gives a Node that joins again none that another one says it has, and records it as that one's", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("owner");
    const by = distributor(world, nodes);
    await pass(world, nodes, by);
    const podCIDRs = nodes.there.get("owner")?.podCIDRs ?? [];
    nodes.add("other", { podCIDRs }); // whoever gave it
    await settle(world, nodes);
    assert.equal((await by.pass()).collisions.length, 1);
    nodes.add("owner"); // deleted, and there again
    for (let n = 0; n < 3; n++) assert.deepEqual((await pass(world, nodes, by)).collisions, []);
    assert.equal((await world.authority.get("block", podCIDRs[0] ?? ""))?.record.node, "other");
    assert.equal(nodes.there.get("owner")?.podCIDRs.length, 1);
  });

  it("tells a Node that waits for its other family nothing that another one says meanwhile", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("a");
    const by = distributor(world, nodes, { families: ["IPv4", "IPv6"] });
    await pass(world, nodes, by);
    const [block] = await world.all("block");
    nodes.add("b", { podCIDRs: [block?.key ?? ""] });
    await world.authority.create("pool", SIX);
    for (let n = 0; n < 3; n++) await pass(world, nodes, by);
    assert.equal(nodes.there.get("a")?.podCIDRs.length, 2);
    assert.equal((await world.authority.get("block", block?.key ?? ""))?.record.node, "b");
  });

  it("gives a Node that joins again another one while what it had cools", async () => {
    await using world = await openWorld({
      pools: [nodesPool("slow", "10.244.0.0/21", 24, { cooldown: "30m" })],
    });
    const nodes = new Nodes();
    const by = distributor(world, nodes);
    for (let n = 0; n < 4; n++) {
      nodes.add("a");
      await pass(world, nodes, by);
      assert.equal(nodes.there.get("a")?.podCIDRs.length, 1, `the ${n + 1}. time`);
      nodes.there.delete("a");
      await pass(world, nodes, by);
    }
  });

  it("says which pools are full when there is none, and whose they are", async () => {
    await using world = await openWorld({ pools: [nodesPool("small", "10.0.0.0/24", 24)] });
    const nodes = new Nodes();
    nodes.add("a");
    const by = distributor(world, nodes);
    await pass(world, nodes, by);
    nodes.add("b");
    const { short } = await pass(world, nodes, by);
    assert.deepEqual(
      short.map(({ node, pools: [pool] }) => [node, pool?.pool, pool?.length, pool?.total, pool?.owners]),
      [["b", "small", 24, 1n, [{ node: "a", blocks: 1 }]]],
    );
    nodes.there.delete("a");
    for (let n = 0; n < 3; n++) await pass(world, nodes, by);
    assert.deepEqual(nodes.there.get("b")?.podCIDRs, ["10.0.0.0/24"]);
  });

  it("gives a Node that was made again what it had while that is its, and takes nothing from it", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("a");
    const by = distributor(world, nodes);
    await pass(world, nodes, by);
    const had = nodes.there.get("a")?.podCIDRs;
    const { uid } = nodes.add("a");
    await pass(world, nodes, by);
    assert.deepEqual(nodes.there.get("a")?.podCIDRs, had);
    assert.deepEqual(
      (await world.all("block")).map(({ record }) => record.nodeUID),
      [uid],
    );
  });

  it("does not take a CIDR from a Node that was made again meanwhile, nor tell one that is gone", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("a");
    await pass(world, nodes, distributor(world, nodes));
    nodes.there.delete("a");
    await settle(world, nodes);
    // one stands still between seeing that it is gone and taking the CIDR back; the other one serves it anew meanwhile
    const slow: NodeFacts = {
      ...{ nodes: () => nodes.nodes(), live: (name) => nodes.live(name), tell: (...of) => nodes.tell(...of) },
      async gone(name) {
        const gone = await nodes.gone(name);
        nodes.add("a");
        nodes.show();
        await distributor(world, nodes).pass();
        return gone;
      },
    };
    await distributor(world, slow).pass();
    await settle(world, nodes);
    const [stored] = await world.all("block");
    assert.deepEqual(nodes.there.get("a")?.podCIDRs, [stored?.key]);
    assert.equal(stored?.record.releasedAt, undefined);
  });

  it("gives back what a Node will never use, for it has another by now", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    const { uid } = nodes.add("a", { podCIDRs: ["10.244.1.0/24"] });
    const other = {
      pool: "four",
      node: "a",
      nodeUID: uid,
      use: "PodCIDR",
      holes: [],
      granted: true,
    } as const;
    await world.authority.create("block", { cidr: "10.244.7.0/24", ...other });
    const by = distributor(world, nodes);
    for (let n = 0; n < 3; n++) await pass(world, nodes, by);
    assert.deepEqual(
      (await world.all("block")).map(({ key }) => key),
      ["10.244.1.0/24"],
    );
  });

  it("only takes back where it is switched off", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("a");
    await pass(world, nodes, distributor(world, nodes));
    nodes.add("b");
    nodes.there.delete("a");
    const off = distributor(world, nodes, { families: [] });
    for (let n = 0; n < 3; n++) await pass(world, nodes, off);
    assert.deepEqual([await world.all("block"), nodes.there.get("b")?.podCIDRs], [[], []]);
  });

  it("killed before or after any of its writes, is gone on with by the next one", async () => {
    const writes = (await lifeKilledAt(0, "before")).writes;
    assert.ok(writes > 12, String(writes));
    for (const failure of ["before", "after"] as const) {
      for (let at = 1; at <= writes; at++) await lifeKilledAt(at, failure);
      for (let at = 1; at <= 5; at++) await lifeKilledAt(0, failure, at);
    }
  });

  it("gives many Nodes theirs in one pass, while another one does the same", async () => {
    const count = runsOf(600, 100);
    await using world = await openWorld({ pools: [nodesPool("four", "10.0.0.0/12", 24)] });
    const nodes = new Nodes();
    for (let i = 0; i < count; i++) nodes.add(`node-${i}`);
    await settle(world, nodes);
    await Promise.all([distributor(world, nodes).pass(), distributor(world, nodes).pass()]);
    const last = distributor(world, nodes);
    await pass(world, nodes, last);
    await pass(world, nodes, last);
    assert.ok([...nodes.there.values()].every(({ podCIDRs }) => podCIDRs.length === 1));
    const used = (await world.all("block")).filter(({ record }) => record.releasedAt === undefined);
    assert.equal(used.length, count);
  });
});

/** Three nodes get theirs, one goes, one is made again; the process dies at its n-th write of a record, or of a Node. */
async function lifeKilledAt(at: number, failure: Failure, tellAt?: number) {
  await using world = await openWorld({ pools: [FOUR, SIX], clock: new ManualClock() });
  const nodes = new Nodes();
  if (tellAt !== undefined) nodes.failAt = { n: tellAt, when: failure };
  const store = new FailingStore(world.authority, at, failure);
  const families = ["IPv4", "IPv6"] as const;
  let by = distributor(world, nodes, { families, store });
  const round = async () => {
    await settle(world, nodes);
    try {
      await by.pass();
    } catch {
      by = distributor(world, nodes, { families });
    }
    await settle(world, nodes);
    await check(world, nodes);
  };
  nodes.add("old", { podCIDRs: ["10.244.2.0/24", "fd00:10:0:9::/64"] });
  for (const name of ["a", "b", "c"]) nodes.add(name);
  for (let n = 0; n < 3; n++) await round();
  nodes.there.delete("a");
  nodes.add("b");
  for (let n = 0; n < 4; n++) {
    await round();
    if (!store.died) world.clock.advance?.(1_000);
  }
  assert.deepEqual(
    [...nodes.there.values()].map(({ name, podCIDRs }) => [name, podCIDRs.length]).toSorted(),
    [
      ["b", 2],
      ["c", 2],
      ["old", 2],
    ],
  );
  const held = (await world.all("block")).map(({ record }) => record.node).toSorted();
  assert.deepEqual(held, ["b", "b", "c", "c", "old", "old"], `write ${at} ${failure}, told ${tellAt ?? 0}`);
  return { writes: store.writes };
}

const step = fc.oneof(
  fc.record({ kind: fc.constant("add" as const), node: fc.nat(5) }),
  fc.record({ kind: fc.constant("remove" as const), node: fc.nat(5) }),
  fc.record({ kind: fc.constant("preset" as const), node: fc.nat(5), cidr: fc.nat(7) }),
  fc.record({ kind: fc.constant("show" as const) }),
  fc.record({ kind: fc.constant("pass" as const), by: fc.nat(1) }),
  fc.record({ kind: fc.constant("both" as const) }),
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Life {
  readonly #world: World;
  readonly #nodes: Nodes;
  readonly #two: readonly NodeCidrDistributor[];
  readonly #foreign = new Set<string>(); // that came with a CIDR: Berth could not keep it from being another's

  constructor(world: World, nodes: Nodes) {
    this.#world = world;
    this.#nodes = nodes;
    this.#two = [distributor(world, nodes), distributor(world, nodes)];
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "show") await settle(this.#world, this.#nodes);
    else if (one.kind === "pass") await this.#two[one.by]?.pass();
    else if (one.kind === "both") await Promise.all(this.#two.map((by) => by.pass()));
    else this.#change(one);
  }

  #change(one: Exclude<Step, { readonly kind: "show" | "pass" | "both" }>): void {
    const name = `n${one.node}`;
    if (one.kind === "remove") this.#nodes.there.delete(name);
    else if (one.kind === "add") this.#nodes.add(name);
    else this.#foreign.add(this.#nodes.add(name, { podCIDRs: [`10.244.${one.cidr}.0/24`] }).uid);
  }

  /** Among the Nodes that Berth has told, no two share an address. */
  judge(): void {
    const told = [...this.#nodes.there.values()].filter(({ uid }) => !this.#foreign.has(uid));
    const cidrs = told.flatMap(({ podCIDRs }) => podCIDRs);
    assert.equal(new Set(cidrs).size, cidrs.length, cidrs.join(" "));
  }
}

describe("any life of nodes' CIDRs", () => {
  it("with two distributors and watches that are behind has no address twice, and leaves nothing behind", async () => {
    const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      await using world = await openWorld({ pools: [FOUR] });
      const nodes = new Nodes();
      const life = new Life(world, nodes);
      for (const one of steps) {
        await life.take(one);
        life.judge();
      }
      for (const name of [...nodes.there.keys()]) nodes.there.delete(name);
      for (let n = 0; n < 3; n++) {
        await settle(world, nodes);
        await distributor(world, nodes).pass();
      }
      await world.settle();
      assert.deepEqual(await world.all("block"), []);
    });
    await fc.assert(property, { numRuns: runsOf(200, 30) });
  });
});
