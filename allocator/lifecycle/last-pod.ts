// SPDX-License-Identifier: Apache-2.0
import type { Context } from "../cache/context.ts";
import { isBound } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";

/** Before its binding goes: that a pod had it, where no agent is left to say so. Undefined: it changed meanwhile. */
export async function withLastPod(
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
