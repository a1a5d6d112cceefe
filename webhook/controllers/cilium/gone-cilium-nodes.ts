// SPDX-License-Identifier: Apache-2.0

import type { Context } from "../../../allocator/cache/context.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { Client } from "../../../kube/api/client.ts";

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
