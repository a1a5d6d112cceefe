// SPDX-License-Identifier: Apache-2.0
import type { Block } from "../../allocator/model/block.ts";
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
import {
  batch,
  type Extra,
  ender,
  finisher,
  giver,
  granter,
  lostWord,
  returner,
  successor,
  taker,
  watcher,
  word,
} from "./block-actors.ts";
import type { Scenario, Seed } from "./run.ts";
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
