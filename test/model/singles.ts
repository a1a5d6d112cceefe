// SPDX-License-Identifier: Apache-2.0
import { divide } from "../../allocator/blocks/give-back.ts";
import { grantSingle } from "../../allocator/blocks/grant.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { type Block, isHole, mayBeSingle, returnedOf } from "../../allocator/model/block.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { allocationOf, binder, releaser, reserver } from "./actors.ts";
import { giver, granter, returner } from "./block-actors.ts";
import type { Actor, Scenario, Seed } from "./run.ts";
import { BEGIN } from "./run-state.ts";
import { held, Y, Z } from "./seeds.ts";
import { BLIND } from "./sight.ts";

type Extra = Omit<Partial<Actor>, "act">;

/** Y and Z, in one block of two. */
const PAIR: PoolRecord = {
  name: "y",
  spec: { ranges: [{ cidr: "10.0.0.0/24", from: Y, to: Z }], blockSize: { ipv4: 31 }, cooldown: "30s" },
};
const PAIR_CIDR = "10.0.0.2/31";
const Y_CIDR = "10.0.0.2/32";

/** A controller that makes an address of the block a block of the node's own, if it may be one by what the record says. */
export function single(address: Address, node: string, extra: Extra = {}): Actor {
  return {
    name: `grant ${address} to ${node}`,
    ...extra,
    async act({ context }) {
      const seen = await context.store.get("block", PAIR_CIDR);
      if (seen === undefined || !mayBeSingle({ ...seen.record, division: "returned" }, address)) return;
      if (seen.record.division === undefined && (await divide(context.store, seen, "returned")) === "changed")
        return;
      const pool = context.view.pool("y");
      if (pool === undefined) return;
      await grantSingle(context, pool, { within: PAIR_CIDR, address, node, nodeUID: `of ${node}` });
    },
  };
}

/** The owner's word on one address: nobody uses it, the journal says that it is given back, and then the status does. */
export function wordOn(address: Address, node: string): Actor {
  return {
    name: `word of ${node} on ${address}`,
    async act({ context, state }) {
      const seen = await context.store.get("block", PAIR_CIDR);
      if (seen?.record.node !== node || seen.record.granted !== true || seen.record.releasedAt !== undefined)
        return;
      const uses = [...state.dynamic.values()];
      if (uses.some((use) => use.block.uid === seen.uid && use.address === address)) return;
      state.givenUp.add(`${seen.uid} ${address}`);
      await context.store.reportBlock(seen, { node, used: uses.length, returnedAddresses: [address] });
    },
  };
}

/** A pod that asks for nothing, on the owner: by a watch that is behind, and by the journal, unless it is one that does not look. */
export function ownGiver(address: Address, looksAt: "journal" | "watch alone" = "journal"): Actor {
  return {
    name: `give ${address} of the whole block`,
    async act({ name, context, state }) {
      const shown = await context.store.get("block", PAIR_CIDR);
      await context.store.get("pool", "y"); // it is some while ago
      if (
        shown?.record.node !== "n1" ||
        shown.record.granted !== true ||
        shown.record.releasedAt !== undefined
      )
        return;
      if (isHole(shown.record, address) || returnedOf(shown.record).includes(address)) return;
      if (looksAt === "journal" && state.givenUp.has(`${shown.uid} ${address}`)) return;
      if (state.givenUp.has(shown.uid)) return;
      state.dynamic.set(name, { block: shown, address });
    },
  };
}

function pair(more: Partial<Block> = {}): Seed {
  const block = {
    cidr: PAIR_CIDR,
    pool: "y",
    node: "n1",
    nodeUID: "of n1",
    holes: [],
    granted: true,
    ...more,
  };
  return { kind: "block", record: block };
}

const RETURNED_Y = { node: "n1", used: 1, returnedAddresses: [Y] };
const wantsY = (extra: Extra = { lags: BLIND }) => reserver(allocationOf("a", { exact: [Y] }), extra);

/** Single addresses of blocks that other nodes have. */
export const SINGLES: readonly Scenario[] = [
  {
    title: "an address of a block that its owner gives back, another node, and a fixed address",
    pools: [PAIR],
    seed: [pair()],
    actors: [wordOn(Y, "n1"), single(Y, "n2"), giver(Y_CIDR, "n2", Y), ownGiver(Y), wantsY()],
  },
  {
    title: "two nodes that are given one address of a block",
    pools: [PAIR],
    seed: [pair({ status: RETURNED_Y })],
    actors: [single(Y, "n2"), single(Y, "n3"), giver(Y_CIDR, "n2", Y), giver(Y_CIDR, "n3", Y)],
  },
  {
    title: "an address is made a block of its own while the block around it goes, and comes again",
    long: true,
    pools: [PAIR],
    seed: [pair({ releasedAt: BEGIN - 60_000, division: "returned", status: RETURNED_Y })],
    actors: [
      single(Y, "n2"),
      returner(PAIR_CIDR),
      granter("n3"),
      giver(Y_CIDR, "n2", Y),
      giver(PAIR_CIDR, "n3", Y),
    ],
  },
  {
    title: "a block goes whose address was made a block of its own, and a fixed address",
    long: true,
    pools: [PAIR],
    seed: [pair({ releasedAt: BEGIN - 60_000, division: "returned", status: RETURNED_Y })],
    actors: [single(Y, "n2"), returner(PAIR_CIDR), giver(Y_CIDR, "n2", Y), wantsY(), binder({ claim: "a" })],
  },
  {
    title: "a hole that is made a block of its own, and a fixed address",
    pools: [PAIR],
    seed: [pair({ holes: [Y_CIDR] })],
    actors: [single(Y, "n2"), wantsY(), binder({ claim: "a" }), giver(Y_CIDR, "n2", Y)],
  },
  {
    title: "a hole whose fixed address is released, made a block of its own, and goes again",
    long: true,
    pools: [PAIR],
    seed: [pair({ holes: [Y_CIDR], division: "returned" }), ...held("a", [Y])],
    actors: [
      releaser("a"),
      single(Y, "n2"),
      returner(Y_CIDR),
      reserver(allocationOf("b", { exact: [Y] }), { lags: BLIND }),
      binder({ claim: "b" }),
    ],
    time: [30_000],
  },
];
