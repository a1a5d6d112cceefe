// SPDX-License-Identifier: Apache-2.0

import { endCooldown, giveBack } from "../../allocator/blocks/give-back.ts";
import { finishGrant, grantBlocks } from "../../allocator/blocks/grant.ts";
import { grantBlock } from "../../allocator/blocks/testing/grant-block.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { IntervalSet } from "../../allocator/ip/interval-set.ts";
import { isHole, isReturned } from "../../allocator/model/block.ts";
import type { Actor } from "./run.ts";

export type Extra = Omit<Partial<Actor>, "act">;

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
