// SPDX-License-Identifier: Apache-2.0
import type { TestContext } from "node:test";
import { claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { Folder } from "./folder.ts";

/** One pool is in it, and a claim of a StatefulSet's first pod, which has an address of the pool. */
export function folderOfOneClaim(t: Pick<TestContext, "after">): Promise<Folder> {
  return Folder.of(t, {
    pools: [DB_POOL],
    claims: [claimRecord()],
    reservations: reservationsOf(claimRecord()),
  });
}
