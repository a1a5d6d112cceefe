// SPDX-License-Identifier: Apache-2.0
import { podAllocation } from "../../../test/support/allocation-requests.ts";
import type { World } from "../../../test/support/world.ts";
import { bind } from "../../lifecycle/bind.ts";
import { reserve } from "../../lifecycle/reserve.ts";

/** The i-th pod has what it asks for, and is bound to node `n`, unless it is refused: by a process of its own. */
export async function reserveAndBind(
  world: World,
  i: number,
  request: Parameters<typeof podAllocation>[2],
): Promise<void> {
  const context = world.another(i);
  const got = await reserve(context, podAllocation(world, `p-${i}`, request), "pod");
  if (got.kind === "refused") return;
  const target = { name: `p-${i}`, uid: `u-${i}`, node: "n", token: "" };
  await bind(context, got.claim.key, target, async () => ({ fenced: false, holdExpired: false }));
}
