// SPDX-License-Identifier: Apache-2.0
// What is said of a pool over addresses that others have (ADR 0026).

import { isRefusal } from "../../allocator/base/errors.ts";
import { fullInterval, intersection } from "../../allocator/ip/ip-range.ts";
import { listedOccupied, occupiedIn } from "../../allocator/planning/occupied.ts";
import { type Pool, parseStoredPool } from "../../allocator/pool/pool.ts";
import type { ServiceFacts } from "../cluster-state/services.ts";
import type { AdmissionContext } from "./admission-context.ts";

/** A warning has 256 bytes. */
const NAMED = 3;

/** Warnings, and none of them refuses: what is seen may be on another network, and may have gone by the time that the pool is used. */
export async function toldOfOccupants(
  { occupants, services }: Pick<AdmissionContext, "occupants" | "services">,
  record: Parameters<typeof parseStoredPool>[0],
): Promise<string[]> {
  const pool = parseStoredPool(record);
  if (isRefusal(pool)) return [];
  const facts = await services?.();
  const found = occupiedIn(pool, [...(occupants?.() ?? []), ...(facts?.occupied ?? [])]);
  return [...(found.length === 0 ? [] : inUse(pool, found)), ...overlaps(pool, facts)];
}

function inUse(pool: Pool, found: ReturnType<typeof occupiedIn>): string[] {
  const [have, them] =
    found.length === 1 ? ["1 address that is", "it"] : [`${found.length} addresses that are`, "them"];
  const what = `pool ${pool.name} has ${have} in use, and not from Berth: ${listedOccupied(found, NAMED)}`;
  const isPod = found.map(([, { kind }]) => kind === "pod");
  const once = `once the ${found.length === 1 ? "pod has" : "pods have"} gone`;
  const some = isPod.every(Boolean)
    ? `Berth gives ${them} ${once}; exclude ${them} if another system goes on giving ${them}`
    : `exclude ${them} from spec.ranges${isPod.some(Boolean) ? "; a pod's is Berth's to give once the pod has gone" : ""}`;
  const all = pool.spec.networks === undefined ? "" : ", unless the pool's networks are others";
  return [what, `${some}${all}; see berthctl check`];
}

function overlaps(pool: Pool, facts: ServiceFacts | undefined): string[] {
  const shared = (facts?.networks ?? []).filter((cidr) =>
    pool.ranges.some(
      (range) => range.family === cidr.family && intersection(range, fullInterval(cidr)) !== undefined,
    ),
  );
  return shared.map(
    ({ text }) =>
      `pool ${pool.name} has addresses of ${text}, from which the cluster's Services get theirs: what is sent to them may never reach a pod; take them out of spec.ranges`,
  );
}
