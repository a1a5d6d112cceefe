// SPDX-License-Identifier: Apache-2.0
import { endCooldown, giveBack } from "../../allocator/blocks/give-back.ts";
import { finishGrant, grantBlocks } from "../../allocator/blocks/grant.ts";
import { grantBlock } from "../../allocator/blocks/testing/grant-block.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { IntervalSet } from "../../allocator/ip/interval-set.ts";
import { type Block, isHole, isReturned } from "../../allocator/model/block.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import {
  admission,
  allocationOf,
  binder,
  collectionOf,
  releaser,
  repairer,
  reserver,
  review,
  visit,
} from "./actors.ts";
import type { Actor, Scenario, Seed } from "./run.ts";
import { BEGIN } from "./run-state.ts";
import { handMade, held, POOLS, reserved, X, Y, Z } from "./seeds.ts";
import { BLIND, LIVE } from "./sight.ts";

/** Y and Z, in one block of two. */
const PAIR: PoolRecord = {
  name: "y",
  spec: {
    ranges: [{ cidr: "10.0.0.0/24", from: Y, to: Z }],
    blockSize: { ipv4: 31 },
    cooldown: "30s",
  },
};
/** The same of Y alone: the fewest steps. */
const SINGLE: PoolRecord = {
  name: "y",
  spec: { ranges: [{ cidr: "10.0.0.0/24", from: Y, to: Y }], blockSize: { ipv4: 32 }, cooldown: "30s" },
};
/** Of fixed addresses alone, over the same address: both were made at the same moment. */
const OVER: PoolRecord = {
  name: "a",
  spec: { ranges: [{ cidr: "10.0.0.0/24", from: Y, to: Y }], cooldown: "30s" },
};
/** Y and Z, in blocks of one. */
const SINGLES: PoolRecord = { ...PAIR, spec: { ...PAIR.spec, blockSize: { ipv4: 32 } } };
const PAIR_CIDR = "10.0.0.2/31";
const SINGLE_CIDR = "10.0.0.2/32";

type Extra = Omit<Partial<Actor>, "act">;

/** A controller that hands out a block of the pool. */
export function granter(node: string, extra: Extra = {}): Actor {
  return {
    name: `grant to ${node}`,
    ...extra,
    async act({ context }) {
      const pool = context.view.pool("y");
      if (pool === undefined) return;
      await grantBlock(context, pool, { family: "IPv4", node, nodeUID: `of ${node}` }, new IntervalSet());
    },
  };
}

/** A controller that hands out blocks to several nodes at once: all are made before the first reservation is read. */
export function batch(nodes: readonly string[]): Actor {
  return {
    name: `grant to ${nodes.join(" and ")}`,
    async act({ context }) {
      const pool = context.view.pool("y");
      const requests = nodes.map((node) => ({ family: "IPv4", node, nodeUID: `of ${node}` }) as const);
      if (pool === undefined) return;
      // one call at a time is what a process of the model makes
      const records = { store: context.store, view: { reservationCount: 0 }, atOnce: 1 };
      await grantBlocks(records, pool, requests, new IntervalSet());
    },
  };
}

/** A controller that comes upon a block whose grant broke off. */
export function finisher(cidr: string): Actor {
  return {
    name: `finish ${cidr}`,
    async act({ context }) {
      const seen = await context.store.get("block", cidr);
      if (seen !== undefined) await finishGrant(context, seen);
    },
  };
}

/** A pod that asks for nothing, on the node: it gets the address out of the node's block, if that has it. */
export function giver(cidr: string, node: string, address: Address): Actor {
  return {
    name: `give ${address} on ${node}`,
    async act({ name, context, state }) {
      const block = await context.store.get("block", cidr);
      if (block === undefined || block.record.node !== node || block.record.releasedAt !== undefined) return;
      if (block.record.granted === true && !isHole(block.record, address))
        state.dynamic.set(name, { block, address });
    },
  };
}

/** The node's agent has no sandbox in the block and says so; then the block cools, and goes. */
export function returner(cidr: string): Actor {
  return {
    name: `return ${cidr}`,
    async act({ context, state, wait }) {
      const seen = await context.store.get("block", cidr);
      if (seen === undefined || [...state.dynamic.values()].some(({ block }) => block.uid === seen.uid))
        return;
      await giveBack(context, seen, { kind: "returned", uid: seen.uid });
      await wait(30_000);
      const cooled = await context.store.get("block", cidr);
      if (cooled !== undefined) await endCooldown(context, cooled);
    },
  };
}

/** A controller that deletes a block which has cooled. */
export function ender(cidr: string): Actor {
  return {
    name: `end of ${cidr}`,
    async act({ context }) {
      const cooled = await context.store.get("block", cidr);
      if (cooled !== undefined) await endCooldown(context, cooled);
    },
  };
}

/** The agent's word: nobody uses the block, the journal says that it is given back, and then its status does. */
export function word(cidr: string, node: string): Actor {
  return {
    name: `word of ${node} on ${cidr}`,
    async act({ context, state }) {
      const seen = await context.store.get("block", cidr);
      if (seen?.record.node !== node || seen.record.granted !== true) return;
      if ([...state.dynamic.values()].some(({ block }) => block.uid === seen.uid)) return;
      state.givenUp.add(seen.uid);
      await context.store.reportBlock(seen, { node, used: 0, returnedAt: state.now });
    },
  };
}

/** A controller that goes by the word in the status; then the block cools, and goes. */
export function taker(cidr: string): Actor {
  return {
    name: `take back ${cidr}`,
    async act({ context, wait }) {
      const seen = await context.store.get("block", cidr);
      if (seen === undefined || !isReturned(seen.record)) return;
      await giveBack(context, seen, { kind: "returned", uid: seen.uid });
      await wait(30_000);
      const cooled = await context.store.get("block", cidr);
      if (cooled !== undefined) await endCooldown(context, cooled);
    },
  };
}

/** As `giver`, by a watch that is behind: what it goes by beside that is the journal, unless it is one that does not look. */
export function watcher(
  cidr: string,
  address: Address,
  looksAt: "journal" | "watch alone" = "journal",
): Actor {
  return {
    name: `give ${address} by the watch`,
    async act({ name, context, state }) {
      const shown = await context.store.get("block", cidr);
      await context.store.get("pool", "y"); // it is some while ago
      if (shown?.record.node !== "n1" || shown.record.granted !== true) return;
      if (shown.record.releasedAt !== undefined || isReturned(shown.record)) return;
      if (looksAt === "journal" && state.givenUp.has(shown.uid)) return;
      if (!isHole(shown.record, address)) state.dynamic.set(name, { block: shown, address });
    },
  };
}

/** The same word, by an agent whose journal is lost afterwards: nobody on the node knows of it. */
export function lostWord(cidr: string, node: string): Actor {
  return {
    name: `lost word of ${node} on ${cidr}`,
    async act({ context, state }) {
      const seen = await context.store.get("block", cidr);
      if (seen?.record.node !== node || seen.record.granted !== true) return;
      if ([...state.dynamic.values()].some(({ block }) => block.uid === seen.uid)) return;
      await context.store.reportBlock(seen, { node, used: 0, returnedAt: state.now });
    },
  };
}

/** An agent on the next journal: it gives from the block once it has written its status, unless it is one that does not. */
export function successor(cidr: string, address: Address, proves: "proves" | "does not" = "proves"): Actor {
  return {
    name: `give ${address} on another journal`,
    async act({ name, context, state }) {
      const shown = await context.store.get("block", cidr);
      if (shown?.record.node !== "n1" || shown.record.granted !== true) return;
      if (shown.record.releasedAt !== undefined || isReturned(shown.record)) return;
      if (proves === "proves") {
        const written = await context.store.reportBlock(shown, { node: "n1", used: 0 });
        if (written.kind !== "replaced") return;
      }
      state.dynamic.set(name, { block: shown, address });
    },
  };
}

function block(cidr: string, node: string, more: Partial<Block> = {}): Seed {
  return { kind: "block", record: { cidr, pool: "y", node, nodeUID: `of ${node}`, holes: [], ...more } };
}

const blind = { lags: BLIND };
const live = { lags: LIVE };
/** Asks for exactly Y, by a view that shows nothing, or everything. */
const wantsY = (name: string, extra: Extra = blind) => reserver(allocationOf(name, { exact: [Y] }), extra);

/** Fixed addresses and blocks. */
export const BLOCKS: readonly Scenario[] = [
  {
    title: "two controllers grant the same block",
    pools: [PAIR],
    actors: [granter("n1"), granter("n2"), finisher(PAIR_CIDR)],
  },
  {
    title: "a block of one, and a fixed address in it",
    pools: [SINGLE],
    actors: [granter("n1"), wantsY("a"), binder({ claim: "a" })],
  },
  {
    title: "a block of one, and a fixed address of another pool in it",
    pools: [OVER, SINGLE],
    actors: [granter("n1"), wantsY("a"), binder({ claim: "a" }), giver(SINGLE_CIDR, "n1", Y)],
  },
  {
    title: "a block of one, and any address of another pool, which comes after its own by name",
    pools: [SINGLE, { ...OVER, name: "z" }],
    actors: [granter("n1"), reserver(allocationOf("a", { pools: ["z"] }), live), binder({ claim: "a" })],
  },
  {
    title: "a block of two, and a fixed address in it",
    pools: [PAIR],
    actors: [granter("n1"), wantsY("a"), binder({ claim: "a" }), giver(PAIR_CIDR, "n1", Z)],
  },
  {
    title: "a block whose grant broke off, and both addresses of it",
    pools: [PAIR],
    seed: [block(PAIR_CIDR, "n1")],
    actors: [finisher(PAIR_CIDR), visit("a", [Y], blind), visit("b", [Z], blind)],
  },
  {
    title: "two controllers, and a fixed address of the block",
    long: true,
    pools: [SINGLE],
    actors: [granter("n1"), granter("n2"), wantsY("a"), binder({ claim: "a" })],
  },
  {
    title: "a fixed address, the garbage collector, and a block",
    pools: [SINGLE],
    actors: [wantsY("a"), collectionOf(Y), binder({ claim: "a" }), granter("n1")],
  },
  {
    title: "two of one identity, the garbage collector between them, and a block",
    long: true,
    pools: [SINGLE, ...POOLS.filter(({ name }) => name === "x")],
    seed: held("a", [X]),
    actors: [
      wantsY("a"),
      { ...wantsY("a"), name: "reserve a too" },
      collectionOf(Y),
      binder({ claim: "a" }),
      granter("n1"),
    ],
  },
  {
    title: "a claim whose reserver broke off before it looked for a block",
    pools: [SINGLE],
    seed: [...held("a", [Y]), block(SINGLE_CIDR, "n1", { granted: true })],
    actors: [binder({ claim: "a" }), repairer("a"), giver(SINGLE_CIDR, "n1", Y), wantsY("a", live)],
  },
  {
    title: "any address of a pool that is one block",
    long: true,
    pools: [PAIR],
    actors: [reserver(allocationOf("a", { pools: ["y"] }), live), granter("n1"), binder({ claim: "a" })],
  },
  {
    title: "a fixed address is released while its block is granted, and given to another",
    long: true,
    pools: [SINGLE],
    seed: held("a", [Y]),
    actors: [releaser("a"), granter("n1"), wantsY("b"), binder({ claim: "b" })],
    time: [30_000],
  },
  {
    title: "an address that cools when its block is granted is taken back",
    pools: [SINGLE],
    seed: [reserved(Y, "a", { releasedAt: BEGIN })],
    actors: [granter("n1"), admission("a", Y), binder({ claim: "a" })],
  },
  {
    title: "a block is given back, and granted to another node",
    long: true,
    pools: [SINGLE],
    seed: [block(SINGLE_CIDR, "n1", { granted: true })],
    actors: [
      returner(SINGLE_CIDR),
      granter("n2"),
      wantsY("a"),
      binder({ claim: "a" }),
      giver(SINGLE_CIDR, "n2", Y),
    ],
  },
  {
    title: "a block that has cooled goes, between two of one identity that want a fixed address of it",
    pools: [SINGLE],
    seed: [block(SINGLE_CIDR, "n1", { granted: true, releasedAt: BEGIN - 30_000 })],
    actors: [ender(SINGLE_CIDR), wantsY("a"), { ...wantsY("a", live), name: "reserve a too" }],
  },
  {
    title: "the same of a review, and a controller that repairs what the first has made",
    long: true,
    pools: [SINGLE],
    seed: [block(SINGLE_CIDR, "n1", { granted: true, releasedAt: BEGIN - 30_000 })],
    actors: [
      ender(SINGLE_CIDR),
      wantsY("a"),
      { ...review(allocationOf("a", { exact: [Y] })), ...live },
      repairer("a"),
    ],
  },
  {
    title: "the same of a claim made by hand",
    pools: [SINGLE],
    seed: [handMade("a"), block(SINGLE_CIDR, "n1", { granted: true, releasedAt: BEGIN - 30_000 })],
    actors: [ender(SINGLE_CIDR), wantsY("a"), { ...review(allocationOf("a", { exact: [Y] })), ...live }],
  },
  {
    title: "an agent's word, a sandbox by a watch that is behind, and a fixed address",
    long: true,
    pools: [SINGLE],
    seed: [block(SINGLE_CIDR, "n1", { granted: true })],
    actors: [
      word(SINGLE_CIDR, "n1"),
      taker(SINGLE_CIDR),
      watcher(SINGLE_CIDR, Y),
      wantsY("a"),
      binder({ claim: "a" }),
    ],
  },
  {
    title: "a word whose journal is lost, and an agent on another journal",
    pools: [SINGLE],
    seed: [block(SINGLE_CIDR, "n1", { granted: true })],
    actors: [lostWord(SINGLE_CIDR, "n1"), taker(SINGLE_CIDR), successor(SINGLE_CIDR, Y), granter("n2")],
  },
  {
    title: "two blocks that are granted together, and fixed addresses of both",
    long: true,
    pools: [SINGLES],
    actors: [batch(["n1", "n2"]), wantsY("a"), binder({ claim: "a" }), visit("b", [Z], blind)],
  },
  {
    title: "a block is asked back while its node gives an address of it",
    pools: [SINGLE],
    seed: [block(SINGLE_CIDR, "n1", { granted: true })],
    actors: [giver(SINGLE_CIDR, "n1", Y), wantsY("a"), binder({ claim: "a" })],
  },
];
