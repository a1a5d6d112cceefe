// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { startCooldownIfDropped } from "../../allocator/lifecycle/release.ts";
import type { Stored } from "../../allocator/store/store.ts";

/**
 * Gives a claim's addresses back with the rights of a person. Only Berth itself may set a claim to releasing: a person
 * deletes it, exactly as it was seen, and admission refuses that for a claim in use. Whoever may write reservations sets
 * them to cooling there and then; for others Berth does, which finds that no claim relies on them.
 */
export async function releaseInCluster(
  context: Context,
  seen: Stored<"claim">,
): Promise<"released" | "changed"> {
  if ((await deleteInCluster(context, seen)) === "changed") return "changed";
  const { addresses, nonce } = seen.record;
  try {
    for (const address of addresses) await startCooldownIfDropped(context, address, nonce);
  } catch (error) {
    // without the role, or by the policy that lets Berth alone write reservations
    const barred = error instanceof BerthError && /^(STORE_READ_ONLY|WRITE_REFUSED)$/.test(error.code);
    if (!barred) throw error;
  }
  return "released";
}

/** Deletes exactly the claim that was seen, and leaves its reservations as they are: for the claim that takes over. */
export async function deleteInCluster(
  { store }: Pick<Context, "store">,
  seen: Stored<"claim">,
): Promise<"released" | "changed"> {
  return (await store.remove("claim", seen)).kind === "conflict" ? "changed" : "released";
}
