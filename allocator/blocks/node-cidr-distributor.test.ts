// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld } from "../../test/support/world.ts";
import { parseCidr } from "../ip/address.ts";
import type { NodeFacts } from "./node-cidr-distributor.ts";
import { distributor, FOUR, Nodes, nodesPool, pass, SIX, settle } from "./testing/cidr-nodes.ts";

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
    await world.realStore.create("pool", SIX);
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

  it("records it also where a pool elsewhere has much smaller ones", async () => {
    const pools = [nodesPool("elsewhere", "10.9.0.0/24", 28), nodesPool("whole", "10.244.0.0/16", 18)];
    await using world = await openWorld({ pools });
    const nodes = new Nodes();
    nodes.add("a", { podCIDRs: ["10.244.64.0/18"] });
    assert.deepEqual((await pass(world, nodes, distributor(world, nodes))).collisions, []);
    assert.equal((await world.all("block"))[0]?.record.pool, "whole");
  });

  it("does not keep a pool from all Nodes because one is annotated with most of it, and names that one", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("large", { podCIDRs: ["0.0.0.0/0"], isAnnotated: true });
    nodes.add("small", { podCIDRs: ["10.244.0.0/24"], isAnnotated: true });
    for (const name of ["a", "b", "c", "d", "e", "f", "g"]) nodes.add(name);
    await settle(world, nodes);
    const { short, collisions, waiting } = await distributor(world, nodes).pass();
    assert.deepEqual([short, waiting], [[], 0]);
    assert.deepEqual(
      collisions.map(({ node, with: other }) => [node, other]),
      [["large", undefined]],
    );
    assert.equal((await world.realStore.get("block", "10.244.0.0/24"))?.record.node, "small");
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
    assert.equal((await world.realStore.get("block", podCIDRs[0] ?? ""))?.record.node, "other");
    assert.equal(nodes.there.get("owner")?.podCIDRs.length, 1);
  });

  it("gives a Node that joins again another one where its former lies in what one says that has too much", async () => {
    await using world = await openWorld({ pools: [nodesPool("wide", "10.244.0.0/14", 24)] });
    const nodes = new Nodes();
    nodes.add("a");
    const by = distributor(world, nodes);
    await pass(world, nodes, by);
    const [former = ""] = nodes.there.get("a")?.podCIDRs ?? [];
    const large = former.replace(
      /\.\d+\.\d+\.0\/24$/,
      (rest) => `.${Number(rest.split(".")[1]) & 254}.0.0/15`,
    );
    nodes.add("a"); // deleted, and there again
    nodes.add("large", { podCIDRs: [large] });
    for (let n = 0; n < 3; n++) assert.equal((await pass(world, nodes, by)).waiting, 0);
    const [now = ""] = nodes.there.get("a")?.podCIDRs ?? [];
    assert.deepEqual(
      (await world.all("block")).map(({ key }) => key),
      [now],
    );
    assert.notEqual(now, former);
  });

  it("tells a Node that waits for its other family nothing that another one says meanwhile", async () => {
    await using world = await openWorld({ pools: [FOUR] });
    const nodes = new Nodes();
    nodes.add("a");
    const by = distributor(world, nodes, { families: ["IPv4", "IPv6"] });
    await pass(world, nodes, by);
    const [block] = await world.all("block");
    nodes.add("b", { podCIDRs: [block?.key ?? ""] });
    await world.realStore.create("pool", SIX);
    for (let n = 0; n < 3; n++) await pass(world, nodes, by);
    assert.equal(nodes.there.get("a")?.podCIDRs.length, 2);
    assert.equal((await world.realStore.get("block", block?.key ?? ""))?.record.node, "b");
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
      ...{
        nodes: () => nodes.nodes(),
        live: (name) => nodes.live(name),
        writePodCIDRs: (...of) => nodes.writePodCIDRs(...of),
      },
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
    await world.realStore.create("block", { cidr: "10.244.7.0/24", ...other });
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
