// SPDX-License-Identifier: Apache-2.0

import { assertNever } from "../base/errors.ts";
import type { Context } from "../cache/context.ts";
import { release } from "../lifecycle/release.ts";
import type { RetentionDecision } from "../lifecycle/retention.ts";
import { unbind } from "../lifecycle/unbind.ts";
import type { Stored } from "../store/store.ts";

/**
 * Does what was decided of the claim. A conflict is no failure: whoever changed the claim knew more, and the next pass judges
 * it again.
 */
export async function carryOut(
  context: Context,
  seen: Stored<"claim">,
  verdict: RetentionDecision,
): Promise<void> {
  const { store, clock } = context;
  switch (verdict.kind) {
    case "keep":
      return;
    case "release":
      await release(context, seen);
      return;
    case "retain": {
      const retained = { since: clock.now(), because: verdict.because };
      await store.replace("claim", seen, { ...seen.record, retained });
      return;
    }
    case "unretain": {
      const { retained: _, ...rest } = seen.record;
      await store.replace("claim", seen, rest);
      return;
    }
    case "release-hold":
      await unbind(context, seen);
      return;
    default:
      assertNever(verdict);
  }
}
