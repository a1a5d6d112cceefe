// SPDX-License-Identifier: Apache-2.0
import { pod } from "../support/objects.ts";
import type { Act } from "./act.ts";
import { NODES, OVER, OVER_REQUESTS, POD_NAMES } from "./cast.ts";
import { absent, pick } from "./pod-kinds.ts";
import { BEGIN } from "./process.ts";
import type { World } from "./world.ts";

const DISABLED = { ...OVER, spec: { ...OVER.spec, disabled: true } };

/** An address that both have is asked of the one that is disabled, too. */
export function open({ records }: World): void {
  const seen = records.get("pool", OVER.name);
  if (seen !== undefined) records.replace("pool", seen, OVER);
}

/**
 * A pool over the one that nodes have blocks of comes, is disabled or open again, or goes; or a pod asks for an address that both have. It is
 * written past the reviews: two replicas that judge at the same moment let both pass.
 */
export const over: Act = (world, { a, b }) => {
  const { records, schedule } = world;
  const seen = records.get("pool", OVER.name);
  const now = BEGIN + schedule.time;
  if (seen === undefined) {
    records.create("pool", OVER, now);
    return "done";
  }
  if (a % 4 === 0) {
    records.replace("pool", seen, seen.record.spec.disabled === true ? OVER : DISABLED);
    return "done";
  }
  const isHeld = records.list("reservation").some(({ record }) => record.pool === OVER.name);
  if (a % 4 === 1 && !isHeld) {
    records.remove("pool", seen);
    return "done";
  }
  const name = absent(world, POD_NAMES, a >> 2);
  if (name === undefined) return "idle";
  const annotations = pick(OVER_REQUESTS, b);
  void world.clients.createPod(pod(name, { annotations }), { node: pick(NODES, a >> 3), webhook: b });
  return "done";
};
