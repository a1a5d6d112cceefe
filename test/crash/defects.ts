// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import { isRefusal } from "../../allocator/base/errors.ts";
import { audit } from "../../allocator/gc/audit.ts";
import { type Pool, parsePool } from "../../allocator/pool/pool.ts";
import { allOf, toAuditAttachment } from "../../cli/backend/embedded-backend.ts";
import type { StackFolder } from "../support/stack-folder.ts";

/** What a stack may be in the midst of is over by then. */
const SECOND_LOOK_MS = 300;

/**
 * Invariants that are broken in what the stack keeps, in words; not the traces of acts that broke off, for those have
 * their time. What was not read in one moment is read twice.
 */
export async function defectsOf(stack: StackFolder): Promise<readonly string[]> {
  const first = await look(stack);
  if (first.length === 0) return first;
  await pause(SECOND_LOOK_MS);
  return (await look(stack)).filter((message) => first.includes(message));
}

async function look(stack: StackFolder): Promise<readonly string[]> {
  return await stack.read(async ({ store, attachments }) => {
    const used = attachments().map((attachment) => toAuditAttachment(attachment, "here"));
    const pools = (await allOf(store, "pool")).map(({ record }) => parsePool(record));
    const found = audit({
      pools: pools.filter((pool): pool is Pool => !isRefusal(pool)),
      claims: (await allOf(store, "claim")).map(({ record }) => record),
      reservations: (await allOf(store, "reservation")).map(({ record }) => record),
      attachments: used,
    });
    return found.filter(({ severity }) => severity === "defect").map(({ message }) => message);
  });
}
