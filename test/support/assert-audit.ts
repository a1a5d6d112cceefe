// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { isRefusal } from "../../allocator/base/errors.ts";
import { audit } from "../../allocator/gc/audit.ts";
import type { AuditedAttachment } from "../../allocator/gc/audited-attachment.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import { parsePool } from "../../allocator/pool/pool.ts";
import type { World } from "./world.ts";

/** What `audit` finds in the store and in these live attachments. */
export async function auditWorld(
  world: Pick<World, "all">,
  attachments: readonly AuditedAttachment[] = [],
): Promise<Finding[]> {
  const pools = await world.all("pool");
  return audit({
    pools: pools.flatMap(({ record }) => {
      const pool = parsePool(record);
      return isRefusal(pool) ? [] : [pool];
    }),
    claims: (await world.all("claim")).map(({ record }) => record),
    reservations: (await world.all("reservation")).map(({ record }) => record),
    attachments,
    blocks: (await world.all("block")).map(({ record }) => record),
  });
}

/** No invariant is broken; traces of acts that broke off are allowed. */
export async function assertSound(
  world: World,
  attachments: readonly AuditedAttachment[] = [],
): Promise<void> {
  const defects = (await auditWorld(world, attachments)).filter(({ severity }) => severity === "defect");
  assert.deepEqual(defects, []);
}

/** No invariant is broken and nothing is left over either. */
export async function assertClean(world: World): Promise<void> {
  assert.deepEqual(await auditWorld(world), []);
}
