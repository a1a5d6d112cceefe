// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../../allocator/base/ports.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { Client } from "../../../kube/api/client.ts";
import { NodeAbsences } from "../../cluster-state/node-grace.ts";

type Watched = Parameters<NodeAbsences["follow"]>[0];

/** Nodes of which neither their Node nor their CiliumNode has been there for the grace: an agent that lives makes the second again. */
export class GoneCiliumNodes {
  readonly #nodes: NodeAbsences;
  readonly #ciliumNodes: NodeAbsences;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#nodes = new NodeAbsences(clock);
    this.#ciliumNodes = new NodeAbsences(clock);
  }

  /** Hears of both, until the function that is returned is called. */
  follow(nodes: Watched, ciliumNodes: Watched): () => void {
    const ends = [this.#nodes.follow(nodes), this.#ciliumNodes.follow(ciliumNodes)];
    return () => {
      for (const end of ends) end();
    };
  }

  /** Asked where neither is seen. */
  isLong(node: string): boolean {
    const absences = [this.#nodes, this.#ciliumNodes].map((one) => one.absent(node));
    return absences.every((isLong) => isLong);
  }
}

interface GoneDeps {
  readonly context: Pick<Context, "store" | "clock">;
  readonly ciliumNodes: Pick<Client, "get">;
  readonly nodes: Pick<Client, "get">;
}

/**
 * Gives back the block of a node that is gone, with its CiliumNode: neither is there, by the API server's own word. An agent writes into its
 * CiliumNode for as long as it lives, and whoever publishes the block meanwhile, because both came again, has changed its record: then
 * this one is too late.
 */
export async function giveBackOfGone(
  { context: { store, clock }, ciliumNodes, nodes }: GoneDeps,
  seen: Stored<"block">,
): Promise<"cooling" | "there" | "changed"> {
  const { node: name, recalledAt } = seen.record;
  const recalled =
    recalledAt === undefined
      ? await store.replace("block", seen, { ...seen.record, recalledAt: clock.now() })
      : ({ kind: "replaced", stored: seen } as const);
  if (recalled.kind !== "replaced") return "changed";
  if ((await ciliumNodes.get({ name })) !== undefined) return "there";
  if ((await nodes.get({ name })) !== undefined) return "there";
  const { stored } = recalled;
  const cooling = { ...stored.record, releasedAt: clock.now() };
  return (await store.replace("block", stored, cooling)).kind === "replaced" ? "cooling" : "changed";
}
