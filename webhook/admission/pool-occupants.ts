// SPDX-License-Identifier: Apache-2.0
// What is said of a pool over addresses that others have (ADR 0026).

import { isRefusal } from "../../allocator/base/errors.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { fullInterval, intersection } from "../../allocator/ip/ip-range.ts";
import type { Occupant } from "../../allocator/model/occupant.ts";
import { listedOccupied, type Occupied, occupiedIn } from "../../allocator/planning/occupied.ts";
import { type Pool, parseStoredPool } from "../../allocator/pool/pool.ts";
import type { ServiceFacts } from "../cluster-state/services.ts";
import type { UserInfo } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { type ReadAccess, subjectOfOccupant } from "./disclosure.ts";

/** A warning has 256 bytes. */
const NAMED = 3;

/** Warnings, and none of them refuses: what is seen may be on another network, and may have gone by the time that the pool is used. */
export async function warningsOfOccupants(
  { occupants, services, readAccess }: Pick<AdmissionContext, "occupants" | "services" | "readAccess">,
  record: Parameters<typeof parseStoredPool>[0],
  user: UserInfo,
): Promise<string[]> {
  const pool = parseStoredPool(record);
  if (isRefusal(pool)) return [];
  const facts = await services?.();
  const found = occupiedIn(pool, [...(occupants?.() ?? []), ...(facts?.occupied ?? [])]);
  if (found.length === 0) return overlaps(pool, facts);
  const named = await Promise.all(found.slice(0, NAMED).map((one) => nameable(one, readAccess, user)));
  const list = listedOccupied([...named, ...found.slice(NAMED)], NAMED);
  return [...inUse(pool, found, list), ...overlaps(pool, facts)];
}

/** Leaves the occupant out if the author of the pool may not read it: the right to make pools includes no right to read pods (ADR 0012). */
async function nameable(
  [address, occupant]: Occupied,
  access: ReadAccess | undefined,
  user: UserInfo,
): Promise<readonly [Address, Occupant | undefined]> {
  const may = access === undefined || (await access.mayRead(user, subjectOfOccupant(occupant)));
  return [address, may ? occupant : undefined];
}

function inUse(pool: Pool, found: readonly Occupied[], list: string): string[] {
  const [have, them] =
    found.length === 1 ? ["1 address that is", "it"] : [`${found.length} addresses that are`, "them"];
  const what = `pool ${pool.name} has ${have} in use, and not from Berth: ${list}`;
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
