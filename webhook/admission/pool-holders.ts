// SPDX-License-Identifier: Apache-2.0
// Who holds addresses of a pool that is changed so that it is not open to them any more: a running pod keeps them, and the next one is refused.

import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../../allocator/base/errors.ts";
import { listed } from "../../allocator/base/listed.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import { matches } from "../../allocator/pool/label-selector.ts";
import { type PoolRecord, parseStoredPool } from "../../allocator/pool/pool.ts";
import type { UserInfo } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import type { Subject } from "./disclosure.ts";

/** A warning has 256 bytes. */
const NAMED = 3;
const ALL_CLAIMS: Subject = { verb: "list", resource: "ipclaims", namespace: "" };

interface PoolChange {
  readonly now: PoolRecord;
  /** Undefined: the pool is made. */
  readonly before: PoolRecord | undefined;
}

type Holding = Pick<AdmissionContext, "context" | "inventory" | "readAccess">;

/** Warnings, and none refuses: to close a pool to somebody may be what is meant. */
export async function warningsOfHolders(
  admission: Holding,
  { now, before }: PoolChange,
  user: UserInfo,
): Promise<string[]> {
  const [pool, was] = [now, before].map((record) => record && parseStoredPool(record));
  if (pool === undefined || was === undefined || isRefusal(pool) || isRefusal(was)) return [];
  const closed = await closedTo(admission, now, was.spec.namespaceSelector);
  const held = `pool ${now.name} is not open any more to`;
  const then = "each is kept while its pod runs, and the next pod of it is refused";
  const warnings: string[] = [];
  if (closed.length > 0) {
    const { readAccess } = admission;
    const mayName = readAccess === undefined || (await readAccess.mayRead(user, ALL_CLAIMS));
    const which = mayName ? ` (${listed(closed, NAMED)})` : "";
    const whose = closed.length === 1 ? "1 claim that has" : `${closed.length} claims that have`;
    warnings.push(`${held} the namespaces of ${whose} addresses of it${which}: ${then}`);
  }
  if (
    !isDeepStrictEqual(pool.spec.podSelector, was.spec.podSelector) &&
    holders(admission, now.name).size > 0
  )
    warnings.push(`${held} claims whose pods have not the labels of spec.podSelector: ${then}`);
  return warnings;
}

/** Claims of namespaces that the pool was open to. Labels of pods are not looked at: that would be a question for each claim. */
async function closedTo(
  admission: Holding,
  { name, spec: { namespaceSelector } }: PoolRecord,
  was: PoolRecord["spec"]["namespaceSelector"],
): Promise<readonly string[]> {
  if (namespaceSelector === undefined || isDeepStrictEqual(namespaceSelector, was)) return [];
  const byNamespace = Map.groupBy(holders(admission, name), ([, namespace]) => namespace);
  const closed: string[] = [];
  for (const [namespace, claims] of byNamespace) {
    const { labels } = await namespaceOf(admission.inventory, namespace);
    if (matches(was, labels) && !matches(namespaceSelector, labels))
      closed.push(...claims.map(([key]) => key));
  }
  return closed.toSorted();
}

/** Claim -> its namespace. */
function holders({ context: { view } }: Holding, name: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { record } of view.reservations(name))
    if (record.pool === name && record.releasedAt === undefined)
      found.set(claimKey(record.claim), record.claim.namespace);
  return found;
}
