// SPDX-License-Identifier: Apache-2.0

import type { Context } from "../cache/context.ts";
import { type Claim, isBound } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";

type Changes = Partial<Pick<Claim, "binding" | "addresses" | "nonce">>;

/**
 * Takes the binding away from a claim of which the caller found, by what `seen` says, that its pod needs it no more; `changes` are made in
 * the same write. Undefined: somebody changed the claim since.
 */
export async function unbind(
  context: Pick<Context, "store" | "clock">,
  seen: Stored<"claim">,
  changes: Changes = {},
): Promise<Stored<"claim"> | undefined> {
  const known = await withLastPod(context, seen);
  if (known === undefined) return undefined;
  const { binding: _, ...rest } = known.record;
  const result = await context.store.replace("claim", known, { ...rest, ...changes });
  return result.kind === "replaced" ? result.stored : undefined;
}

/** Before its binding goes: that a pod had it, where no agent is left to say so. Undefined: it changed meanwhile. */
async function withLastPod(
  { store, clock }: Pick<Context, "store" | "clock">,
  seen: Stored<"claim">,
): Promise<Stored<"claim"> | undefined> {
  const { binding, status } = seen.record;
  // of a binding without a UID an agent has said more, and what is written here would be its end
  if (binding === undefined || binding.podUID === "" || !isBound(seen.record)) return seen;
  if (status.attachment !== undefined) return seen;
  const { node, interface: name = "" } = binding;
  // of no pod by its UID: no proof that the sandbox of this binding has ended, should the binding stay after all (invariant 3a)
  const podUID = "";
  const attachment = { node, containerID: "", interface: name, podUID, since: clock.now(), detached: true };
  const result = await store.report(seen, { ...status, attachment });
  return result.kind === "replaced" ? result.stored : undefined;
}
