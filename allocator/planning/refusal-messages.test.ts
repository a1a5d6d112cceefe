// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  addrs,
  claimRecord,
  DB_POOL,
  parsed,
  poolRecord,
  reservationRecord,
  reservationsOf,
  storedAs,
  viewOf,
} from "../../test/support/fixtures.ts";
import type { Block } from "../model/block.ts";
import { addressOutside } from "./outside-pools.ts";
import {
  addressInBlock,
  addressTaken,
  entryRefusal,
  noFamily,
  noPool,
  poolExhausted,
  unknownPool,
} from "./refusal-messages.ts";

const db = parsed(DB_POOL);
const holder = claimRecord({ addresses: addrs("10.20.0.70", "fd00:20::7") });
const view = viewOf({ pools: [DB_POOL], claims: [holder], reservations: reservationsOf(holder) });

describe("taken", () => {
  it("names pool, address, holder and its identity, free neighbours and the way out", () => {
    const refusal = addressTaken(view, db, addr("10.20.0.70"), reservationRecord("10.20.0.70"));
    assert.equal(
      refusal.message,
      'address 10.20.0.70 in pool "db" is held by shop/mysql-0 (StatefulSet mysql, ordinal 0); free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or scale StatefulSet mysql down, and if its claim stays: berthctl release shop/mysql-0',
    );
    assert.deepEqual(refusal.details, { address: "10.20.0.70", pool: "db", holder: "shop/mysql-0" });
    assert.equal(refusal.code, "ADDRESS_TAKEN");
  });

  it("does so for IPv6", () => {
    assert.equal(
      addressTaken(view, db, addr("fd00:20::7"), reservationRecord("fd00:20::7")).message,
      'address fd00:20::7 in pool "db" is held by shop/mysql-0 (StatefulSet mysql, ordinal 0); free nearby: fd00:20::6, fd00:20::8, fd00:20::5; or scale StatefulSet mysql down, and if its claim stays: berthctl release shop/mysql-0',
    );
  });

  it("names a holder whose claim is not known, and says when to wait", () => {
    const other = { claim: { namespace: "bank", name: "ledger-0" } };
    assert.match(
      addressTaken(view, db, addr("10.20.0.70"), reservationRecord("10.20.0.70", other)).message,
      /is held by bank\/ledger-0; free nearby: .*; or release it with: berthctl release bank\/ledger-0$/,
    );
    assert.match(
      addressTaken(view, db, addr("10.20.0.70"), reservationRecord("10.20.0.70", { ...other, releasedAt: 1 }))
        .message,
      /was given back by bank\/ledger-0 and is cooling down; free nearby: .*; or this one after 00:00:31 UTC$/,
    );
    const slow = poolRecord("slow", "10.9.3.0/24", { cooldown: "48h" });
    const cooling = reservationRecord("10.9.3.7", { ...other, pool: "slow", releasedAt: 1_000 });
    assert.match(
      addressTaken(viewOf({ pools: [slow] }), parsed(slow), addr("10.9.3.7"), cooling).message,
      /; or this one after 1970-01-03T00:00:01Z$/,
    );
  });

  it("does not tell to release a claim for what is kept beside it", () => {
    assert.match(
      addressTaken(view, db, addr("10.20.0.90"), reservationRecord("10.20.0.90")).message,
      /^address 10.20.0.90 in pool "db" is kept beside claim shop\/mysql-0 \(StatefulSet mysql, ordinal 0\) for a pod that was admitted, and is free again within 120 s if that does not come; free nearby: .*; or try again later$/,
    );
  });

  it("says what it knows when the authority did not say who", () => {
    assert.deepEqual(addressTaken(view, db, addr("10.20.0.70"), undefined), {
      kind: "refused",
      code: "ADDRESS_TAKEN",
      message: 'address 10.20.0.70 in pool "db" is taken; free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73',
      details: { address: "10.20.0.70", pool: "db" },
    });
  });

  it("proposes no neighbour that cannot be had, and none where there is none", () => {
    const pair = poolRecord("pair", "10.9.0.0/30");
    const full = claimRecord({ addresses: addrs("10.9.0.1"), nonce: "n3" });
    const lone = viewOf({ pools: [pair], reservations: reservationsOf(full, "pair") });
    assert.equal(
      addressTaken(lone, parsed(pair), addr("10.9.0.1"), undefined).message,
      'address 10.9.0.1 in pool "pair" is taken; free nearby: 10.9.0.2',
    );
    const spec = { reserved: ["10.9.0.2"] };
    const kept = viewOf({
      pools: [poolRecord("pair", "10.9.0.0/30", spec)],
      reservations: reservationsOf(full, "pair"),
    });
    assert.equal(
      addressTaken(kept, parsed(poolRecord("pair", "10.9.0.0/30", spec)), addr("10.9.0.1"), undefined)
        .message,
      'address 10.9.0.1 in pool "pair" is taken; no other is free in the pool: add a range',
    );
  });

  it("proposes others that are kept for requests by name to whoever named one of those", () => {
    const pool = poolRecord("kept", "10.9.1.0/24", { reserved: ["10.9.1.10-10.9.1.12"] });
    const held = claimRecord({ addresses: addrs("10.9.1.11"), nonce: "n4" });
    const some = viewOf({ pools: [pool], reservations: reservationsOf(held, "kept") });
    assert.equal(
      addressTaken(some, parsed(pool), addr("10.9.1.11"), undefined).message,
      'address 10.9.1.11 in pool "kept" is taken; free nearby: 10.9.1.10, 10.9.1.12, 10.9.1.9',
    );
    assert.equal(
      addressTaken(some, parsed(pool), addr("10.9.1.13"), undefined).message,
      'address 10.9.1.13 in pool "kept" is taken; free nearby: 10.9.1.14, 10.9.1.15, 10.9.1.16',
    );
  });
});

describe("the other refusals", () => {
  it("entryRefusal lets open and reserved addresses pass", () => {
    assert.equal(entryRefusal(view, db, addr("10.20.0.71")), undefined);
    assert.equal(entryRefusal(view, db, addr("10.20.0.50")), undefined);
    assert.deepEqual(entryRefusal(view, db, addr("10.20.0.60"))?.details, {
      address: "10.20.0.60",
      pool: "db",
    });
  });

  it("unknownPool lists what there is, and is never longer than a screen", () => {
    assert.equal(
      unknownPool(viewOf({}), "db").message,
      'there is no pool "db"; there are no pools yet, create an IPPool first',
    );
    const many = viewOf({
      pools: Array.from({ length: 99 }, (_, n) => poolRecord(`p${n}`, `10.${n}.0.0/29`)),
    });
    assert.ok(unknownPool(many, "db").message.length < 200);
    assert.deepEqual(unknownPool(many, "db").details, { pool: "db" });
  });

  it("noPool tells an empty cluster from a closed one", () => {
    assert.equal(noPool(viewOf({}), "shop").message, "there are no pools yet; create an IPPool first");
    assert.deepEqual(
      [noPool(view, "shop").code, noPool(view, "shop").details],
      ["POOL_FORBIDDEN", { namespace: "shop" }],
    );
  });

  it("exhausted says how many addresses nodes have for pods that ask for none, and what helps if they use few of them", () => {
    const block = (cidr: string, used: number, over: Partial<Block> = {}): Block => {
      const own = { cidr, pool: "small", node: "n", nodeUID: "u", holes: [], granted: true };
      return { ...own, status: { node: "n", used }, ...over };
    };
    const blocks = [block("10.31.0.0/30", 1, { holes: ["10.31.0.0/32"] }), block("10.31.0.4/32", 1)];
    const reserved = "or list addresses in spec.reserved, which are in no block, for pods that name theirs";
    const last = "add a range, or release claims that are not needed";
    const reported = (ahead: number | undefined, all: readonly Block[], name = "small") => {
      const size = ahead === undefined ? {} : { ahead };
      const pool = poolRecord("small", "10.31.0.0/29", { blockSize: { ipv4: 30, ...size } });
      const view = viewOf({ pools: [pool, poolRecord("fix", "10.31.0.0/29")], blocks: all });
      return poolExhausted(view, [view.pool(name) ?? assert.fail()], "IPv4").message;
    };
    const start = (pool: string, some: string) =>
      `no free IPv4 address in pool "${pool}": 0 are held or cooling, ${some}; `;
    const ahead = "set spec.blockSize.ahead to 0, with which nodes give empty blocks back within minutes";
    const wait = "wait some minutes for nodes to give empty blocks back";
    const four = "4 are in blocks of nodes, whose pods use 2";
    assert.equal(reported(undefined, blocks), `${start("small", four)}${ahead}, ${reserved}; ${last}`);
    assert.equal(reported(0, blocks), `${start("small", four)}${wait}, ${reserved}; ${last}`);
    const full = blocks.slice(1);
    const one = "1 is in blocks of nodes, whose pods use 1";
    assert.equal(reported(undefined, full), `${start("small", one)}${last}`);
    const cooling = [block("10.31.0.4/32", 1, { releasedAt: 1 })];
    assert.match(reported(0, cooling), /1 is in blocks of nodes, whose pods use 0; wait some minutes/);
    assert.equal(
      reported(undefined, full, "fix"),
      `${start("fix", one)}nodes have blocks of another pool in its ranges (kubectl get ippools.berth.dev,ipblocks says of which): disable one of the two, and delete it once nothing of it is in use; ${last}`,
    );
  });

  it("noFamily and exhausted name every pool and the family", () => {
    const web = parsed(poolRecord("web", "10.30.0.0/29"));
    assert.deepEqual(noFamily([web, db], "IPv6").details, { pool: "web,db", family: "IPv6" });
    assert.equal(
      poolExhausted(view, [web, db], "IPv6").message,
      'no free IPv6 address in pool "web", "db": 1 is held or cooling; add a range, or release claims that are not needed',
    );
    assert.match(
      poolExhausted(view, [db, db], "IPv6").message,
      /: 1 is held or cooling/,
      "however often it is named",
    );
  });

  it("follow the house style", () => {
    const all = [
      addressTaken(view, db, addr("10.20.0.70"), reservationRecord("10.20.0.70")),
      addressOutside(view, addr("10.9.9.9")),
      unknownPool(view, "web"),
      noPool(view, "shop"),
      noPool(viewOf({}), "shop"),
      noFamily([db], "IPv6"),
      poolExhausted(view, [db], "IPv4"),
    ];
    for (const { message } of all) assert.match(message, /^[a-z].*[^.]$/);
  });
});

describe("an address in a block", () => {
  const pool = poolRecord("web", "10.40.0.0/28", { blockSize: { ipv4: 29 } });
  const block: Block = {
    ...{ cidr: "10.40.0.0/29", pool: "web", node: "node-a", nodeUID: "u", granted: true },
    holes: ["10.40.0.0/32"],
  };
  const divided: Block = {
    ...block,
    division: "returned",
    status: { node: "node-a", used: 1, returnedAddresses: addrs("10.40.0.5", "10.40.0.6") },
  };
  const single: Block = { ...block, cidr: "10.40.0.5/32", node: "node-b", holes: [], within: block.cidr };
  const whole =
    "list it in spec.reserved of the pool, which takes effect when nodes have given back all of 10.40.0.0/29";
  const near = "free nearby: 10.40.0.8, 10.40.0.9, 10.40.0.10; or";

  for (const { name, blocks, found, address, words, node } of [
    {
      name: "is its node's",
      ...{ blocks: [block], found: block, address: "10.40.0.5", node: "node-a" },
      words: `is in block 10.40.0.0/29 of node node-a, for pods that need no fixed address; ${near} list it in spec.reserved of the pool, which takes effect when the node has given the block back`,
    },
    {
      name: "that its node has given back is nobody's yet",
      ...{ blocks: [divided], found: divided, address: "10.40.0.5", node: "node-a" },
      words: `is in block 10.40.0.0/29, and was given back by node node-a for pods of any node that need no fixed address; ${near} ${whole}`,
    },
    {
      name: "that another node got is that one's, though the block around it was found",
      ...{ blocks: [divided, single], found: divided, address: "10.40.0.5", node: "node-b" },
      words: `is in block 10.40.0.5/32 of node node-b, for pods that need no fixed address; ${near} ${whole}`,
    },
    {
      name: "that its node has kept is that one's",
      ...{ blocks: [divided, single], found: divided, address: "10.40.0.4", node: "node-a" },
      words: `is in block 10.40.0.0/29 of node node-a, for pods that need no fixed address; ${near} ${whole}`,
    },
    {
      name: "of a block that cools is nobody's",
      ...{ blocks: [], found: { ...block, releasedAt: 1 }, address: "10.40.0.5", node: "node-a" },
      words:
        "is in block 10.40.0.0/29, which node node-a has given back and which is cooling down; free nearby: 10.40.0.4, 10.40.0.6, 10.40.0.3; or try again later",
    },
  ])
    it(name, () => {
      const known = viewOf({ pools: [pool] });
      for (const one of blocks) known.apply("block", { type: "put", stored: storedAs("block", one) });
      const refusal = addressInBlock(known, parsed(pool), addr(address), found);
      assert.equal(refusal.message, `address ${address} in pool "web" ${words}`);
      assert.deepEqual(refusal.details, { address, pool: "web", node });
    });
});
