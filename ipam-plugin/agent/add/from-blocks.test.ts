// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../allocator/base/errors.ts";
import { BlocksBench } from "../testing/blocks-bench.ts";
import { address, addressesOf, claimResult, errorOf, podArgs } from "../testing/node-bench.ts";

const FULL_DISK = new BerthError("STORE_FULL", "the disk is full");

let node: BlocksBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await BlocksBench.open();
  });
  afterEach(() => node.close());
}

describe("an ADD that is served from a block", () => {
  setUp();

  it("gets a free address of it, with the pool's gateway, routes and DNS", async () => {
    node.pool(
      "db",
      "10.0.0.0/24",
      { ipv4: 30 },
      {
        ranges: [{ cidr: "10.0.0.0/24", gateway: "10.0.0.1" }],
        routes: [{ dst: "0.0.0.0/0" }],
        dns: { nameservers: ["10.0.0.2"] },
      },
    );
    await node.grant("10.0.0.4/30");
    const answer = await node.call("ADD");
    assert.equal(answer.exitStatus, 0, answer.stdout);
    const { ips, routes, dns } = JSON.parse(answer.stdout);
    assert.deepEqual(
      [ips, routes, dns],
      [
        [{ address: "10.0.0.4/24", gateway: "10.0.0.1" }],
        [{ dst: "0.0.0.0/0" }],
        { nameservers: ["10.0.0.2"] },
      ],
    );
    const [{ source, pool: from } = assert.fail()] = node.parts.attachments.attached();
    assert.deepEqual([source, from], ["block", "db"]);
  });

  it("gets none that a sandbox has from its network's configuration, before that ends", async () => {
    const ipam = { addresses: [{ address: "10.0.0.4/24" }] };
    const written = { cid: "written", ipam, conf: { name: "other" } };
    node.blockSource.stored.clear();
    assert.deepEqual(await node.add(written), ["10.0.0.4"]);
    node.pool("db", "10.0.0.0/24", { ipv4: 31 });
    await node.grant("10.0.0.4/31");
    const there = async () => node.parts.blocks.get("10.0.0.4/31")?.space.used;
    assert.equal(await there(), 1);
    await node.restart();
    await node.hearBlocks();
    assert.deepEqual(await node.add({ cid: "c1" }), ["10.0.0.5"]);
    await node.del(written);
    assert.equal(await there(), 1);
    await node.clock.advance(31_000);
    assert.deepEqual(await node.add({ cid: "c2" }), ["10.0.0.4"]);
  });

  it("is answered the same again, is checked, and freed by its DEL", async () => {
    await node.grant("10.0.0.4/30");
    const first = await node.add();
    assert.deepEqual(await node.add(), first);
    await node.restart();
    assert.deepEqual(await node.add(), first);
    assert.equal((await node.call("CHECK")).exitStatus, 0);
    await node.del();
    assert.equal(errorOf(await node.call("CHECK")).code, 151);
    assert.deepEqual(node.held, []);
  });

  it("never gets a hole, an address in use, or one that cools, whatever was restarted", async () => {
    node.blockSource.refusalsNameAll = true;
    node.blockSource.grant("db", "10.0.0.4/30", { holes: ["10.0.0.5/32"] });
    await node.hearBlocks();
    const given = [...(await node.add({ cid: "a" })), ...(await node.add({ cid: "b" }))];
    await node.restart();
    given.push(...(await node.add({ cid: "c" })));
    assert.deepEqual(given.sort(), ["10.0.0.4", "10.0.0.6", "10.0.0.7"]);
    await node.del({ cid: "b" });
    assert.match(
      await node.refusal({ cid: "d" }),
      /10\.0\.0\.4\/30, have no free address: 2 in use, 1 cool, the first for 25s/,
    );
    await node.restart();
    assert.match(await node.refusal({ cid: "d" }), /2 in use, 1 cool, the first for 20s/);
    await node.clock.advance(20_000);
    assert.deepEqual(await node.add({ cid: "d" }), [given[1]]);
  });

  it("is refused for the fence, where its node is fenced, and for no lack of blocks", async () => {
    const { own } = node.blockSource;
    assert.ok(own);
    node.blockSource.own = { ...own, fenced: true };
    assert.match(
      await node.refusal(),
      /^this node is fenced, so it gives no IPv4 address of pool "db": .* berth\.dev\/fenced or the taint node\.kubernetes\.io\/out-of-service/,
    );
  });

  it("tells the log of a pool of its network that is not there, where no STATUS is called", async () => {
    const reported: (readonly string[])[] = [];
    node.parts.networkWarnings.missing = (_, names) => void reported.push(names);
    node.ipam = { pools: ["db", "gone"] };
    await node.grant("10.0.0.4/30");
    assert.match(await node.refusal(), /there is no pool "gone"/);
    assert.deepEqual(reported, [["gone"]]);
  });

  it("frees what no sandbox was told of, and gives it when it has cooled", async () => {
    node.blockSource.grant("db", "10.0.0.4/32");
    await node.hearBlocks();
    await node.add({ cid: "a" }, "lost");
    await node.clock.advance(30_000);
    assert.deepEqual(await node.add({ cid: "b" }), ["10.0.0.4"]);
  });

  it("takes nothing when the journal cannot be written", async () => {
    node.blockSource.grant("db", "10.0.0.4/32");
    await node.hearBlocks();
    node.diskFault = FULL_DISK;
    assert.equal(errorOf(await node.call("ADD")).code, 5);
    node.diskFault = undefined;
    assert.deepEqual(node.held, []);
    await node.clock.advance(30_000);
    assert.deepEqual(await node.add(), ["10.0.0.4"]);
  });

  it("leaves what it would have given to be given at once, when the journal can be written again", async () => {
    await node.grant("10.0.0.4/31");
    node.diskFault = FULL_DISK;
    for (const cid of ["a", "b"]) assert.equal(errorOf(await node.call("ADD", { cid })).code, 5);
    node.diskFault = undefined;
    assert.equal(node.parts.blocks.isFree("db", address("10.0.0.4"), 30_000), true, "it does not cool");
    const given = [await node.add({ cid: "a" }), await node.add({ cid: "b" })];
    assert.deepEqual(given.flat().sort(), ["10.0.0.4", "10.0.0.5"]);
  });

  it("gets an address that no other has, with 110 at once from four blocks of 32 and in three networks", async () => {
    node.pool("db", "10.0.0.0/24", { ipv4: 27 });
    await node.grant("10.0.0.32/27", "10.0.0.64/27", "10.0.0.96/27", "10.0.0.128/27");
    const asked = Array.from({ length: 110 }, (_, i) => ({ cid: `c${i}`, conf: { name: `net-${i % 3}` } }));
    const answers = await Promise.all(asked.map((one) => node.call("ADD", one)));
    assert.equal(new Set(answers.flatMap(addressesOf)).size, 110);
  });

  it("gets one of the fullest block, so that others become empty", async () => {
    await node.grant("10.0.0.4/30", "10.0.0.8/30");
    const addresses = [];
    for (const cid of ["a", "b", "c", "d"]) addresses.push(...(await node.add({ cid })));
    const used = [...node.parts.blocks.all()].map(({ space }) => space.used);
    assert.deepEqual(used.sort(), [0, 4], addresses.join());
  });

  it("waits for the node's first block, and for what the watch has yet to list", async () => {
    const first = node.call("ADD", { cid: "a" });
    await new Promise(setImmediate);
    await node.grant("10.0.0.4/32");
    assert.deepEqual(addressesOf(await first), ["10.0.0.4"]);
    node.blockSource.isSynced = false;
    const second = node.call("ADD", { cid: "b" });
    await new Promise(setImmediate);
    await node.grant("10.0.0.8/32");
    assert.deepEqual(addressesOf(await second), ["10.0.0.8"]);
  });

  it("waits on when another one has taken what came: all that start at once are served, in their order", async () => {
    const cids = ["a", "b", "c"];
    const answers = cids.map((cid) => node.call("ADD", { cid }));
    await new Promise(setImmediate);
    for (const [n, cidr] of ["10.0.0.4/32", "10.0.0.8/32", "10.0.0.12/32"].entries()) {
      await node.grant(cidr);
      assert.deepEqual(addressesOf(await (answers[n] ?? assert.fail())), [cidr.replace("/32", "")]);
    }
  });

  it("waits for an address that cools, where it is free in time", async () => {
    await node.grant("10.0.0.4/32");
    await node.add({ cid: "a" });
    await node.del({ cid: "a" });
    const began = node.clock.monotonic();
    await node.clock.advance(27_500);
    const adding = node.call("ADD", { cid: "b" });
    await new Promise(setImmediate);
    for (let s = 0; s < 3; s++) await node.clock.advance(1_000);
    assert.deepEqual(addressesOf(await adding), ["10.0.0.4"]);
    assert.equal(node.clock.monotonic() - began, 30_500);
  });

  it("that is given up while it waits takes nothing", async () => {
    const adding = node.call("ADD", { cid: "a" });
    await new Promise(setImmediate);
    await node.del({ cid: "a" });
    assert.equal(errorOf(await adding).code, 11);
    await node.grant("10.0.0.4/32");
    assert.deepEqual(node.held, []);
  });

  it("gets one of each family, or nothing", async () => {
    node.pool("db", ["10.0.0.0/24", "fd00::/64"], { ipv4: 30, ipv6: 126 });
    await node.grant("10.0.0.4/30");
    assert.match(await node.refusal(), /this node has no IPv6 block of pool "db", whose blocks are \/126/);
    assert.deepEqual(node.held, []);
    await node.grant("fd00::8/126");
    assert.deepEqual(await node.add(), ["10.0.0.4", "fd00::8"]);
  });

  it("gets the address that the runtime asks for, if it is free in a block of the node", async () => {
    await node.grant("10.0.0.4/30");
    assert.deepEqual(await node.add({ cid: "a", args: "IP=10.0.0.6" }), ["10.0.0.6"]);
    assert.match(
      await node.refusal({ cid: "b", args: "IP=10.0.0.6" }),
      /10\.0\.0\.6, which the runtime asks for, is no free/,
    );
    assert.match(
      await node.refusal({ cid: "b", args: "IP=10.0.0.9" }),
      /10\.0\.0\.9, which the runtime asks for, is no free/,
    );
    assert.match(
      await node.refusal({ cid: "b", args: "IP=fd00::1" }),
      /fd00::1, which the runtime asks for, is no free/,
    );
  });

  it("is told how many blocks nodes have, when it gets none, and of which only where everything may be named", async () => {
    const all = [
      { node: "node-b", family: "IPv4", blocks: 3 },
      { node: "node-a", family: "IPv4", blocks: 1 },
      { node: "node-b", family: "IPv6", blocks: 9 },
    ] as const;
    node.blockSource.owners = all;
    await node.grant("10.0.0.4/32");
    await node.add({ cid: "a" });
    assert.equal(
      await node.refusal({ cid: "b" }),
      `the IPv4 blocks that this node has of pool "db", whose blocks are /30, have no free address: 1 in use; a controller gives it a block as soon as one is free; nodes have 3 and 1 of the pool's blocks (kubectl get ipblocks says which)`,
    );
    node.blockSource.refusalsNameAll = true;
    assert.equal(
      await node.refusal({ cid: "b" }),
      'the IPv4 blocks that this node has of pool "db", whose blocks are /30, 10.0.0.4/32, have no free address: 1 in use; a controller gives it a block as soon as one is free; nodes have node-b 3, node-a 1',
    );
    node.blockSource.owners = Array.from({ length: 7 }, (_, n) => ({
      node: `n${n}`,
      family: "IPv4",
      blocks: 1,
    }));
    node.blockSource.refusalsNameAll = false;
    assert.match(
      await node.refusal({ cid: "b" }),
      /nodes have 1, 1, 1, 1 and 1 of the pool's blocks, others some too \(kubectl get ipblocks says which\)$/,
    );
    node.blockSource.refusalsNameAll = true;
    assert.match(await node.refusal({ cid: "b" }), /nodes have n0 1, n1 1, n2 1, n3 1, n4 1 and others$/);
  });

  it("gets one of the next pool when the first has none, and is told of each when none has", async () => {
    node.pool("more", "10.9.0.0/24", { ipv4: 30 });
    node.ipam = { pools: ["db", "more"] };
    await node.grant("10.0.0.4/30");
    node.blockSource.grant("more", "10.9.0.4/32");
    await node.hearBlocks();
    for (const cid of ["a", "b", "c", "d"]) await node.add({ cid });
    assert.deepEqual(await node.add({ cid: "e" }), ["10.9.0.4"]);
    const error = await node.refused({ cid: "f" });
    assert.deepEqual([error.code, error.details], [11, "BLOCKS_EXHAUSTED"]);
    assert.match(error.msg, / of pool "db", .* 4 in use.*; .* of pool "more", .* 1 in use/);
    const unknown = await node.refused({ cid: "g", ipam: { pools: ["db", "none"] } });
    assert.deepEqual([unknown.code, unknown.details], [104, "POOL_UNKNOWN"]);
    assert.equal((await node.call("STATUS", { cid: "", ifname: "", netns: "" })).exitStatus, 0);
  });

  it("never gets what a sandbox has from elsewhere, whatever the records say", async () => {
    node.claimSource.answers.set("shop/db-0", claimResult("shop/db-0", "10.0.0.4/24"));
    await node.add({ cid: "fixed", args: podArgs("db-0", "u1"), conf: { name: "other" } });
    const pools = [...node.blockSource.stored];
    node.blockSource.stored.clear(); // it was there before the pool
    await node.add({ cid: "local", ipam: { ranges: [[{ subnet: "10.0.0.0/24", rangeStart: "10.0.0.5" }]] } });
    for (const [name, pool] of pools) node.blockSource.stored.set(name, pool);
    await node.grant("10.0.0.4/30");
    assert.deepEqual(await node.add({ cid: "a" }), ["10.0.0.6"]);
    assert.deepEqual(await node.add({ cid: "b" }), ["10.0.0.7"]);
    assert.match(await node.refusal({ cid: "c" }), /4 in use/);
  });
});
