// SPDX-License-Identifier: Apache-2.0
// Sandboxes of a pod that has a claim.
import assert from "node:assert/strict";
import { afterEach, beforeEach } from "node:test";
import { claimResult, NodeBench, podArgs } from "./node-bench.ts";

export const CLAIM = "shop/db-0";

export let node: NodeBench;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
export function setUp(): void {
  beforeEach(async () => {
    node = await NodeBench.open();
    node.claimSource.answers.set("shop/db-0", claimResult(CLAIM, "10.20.0.51/24", "fd00:20::51/64"));
  });
  afterEach(() => node.close());
}

export async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 10_000 && !holds(); i++) await new Promise(setImmediate);
  assert.ok(holds(), `${holds}`);
}

/** Sandbox `cid` of the pod db-0 with this UID. */
export function sandbox(cid: string, uid: string, ifname = "eth0") {
  return { cid, ifname, args: podArgs("db-0", uid) };
}
