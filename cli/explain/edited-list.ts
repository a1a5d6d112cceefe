// SPDX-License-Identifier: Apache-2.0
// What admission says of a StatefulSet's list that is edited while its pods run. Its rules take longer to load than the rest of berthctl takes to
// run: only where one of them cannot have its addresses now.

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { DryRun } from "../../allocator/demand/allocation-dry-run.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import type { DryRunner } from "./dry-runner.ts";

/** Of one pod, whose workload's claims are `own`. */
export async function laterOrRefused(
  context: DryRun,
  allocation: AllocationRequest,
  would: Refusal,
  own: ReadonlySet<string>,
): Promise<DryRunner["outcome"]> {
  if (would.code !== "CLAIM_CHANGED" && would.code !== "ADDRESS_TAKEN") return would;
  const { laterWords } = await import("../../webhook/admission/later-addresses.ts");
  const later = (await laterWords(context, allocation, would, own)) ?? would;
  return isRefusal(later) ? later : { kind: "later", why: later };
}

/** A StatefulSet and its pods. */
interface List {
  readonly object: KubeObject;
  readonly subject: string;
  /** It is stored like that. */
  readonly isThere: boolean;
  readonly ordinals: readonly { readonly allocation: AllocationRequest | Refusal }[];
  readonly results: readonly DryRunner[];
}

/**
 * Of each of its pods, unless admission refuses the list for a rollout that does not end. One that is there like that is let through, whatever
 * becomes of its rollout.
 */
export async function judgedAsList(
  context: DryRun,
  inventory: Pick<ClusterState, "pod" | "admittedWith">,
  list: List,
): Promise<readonly DryRunner[]> {
  const { subject, isThere, results } = list;
  const never = await whyItNeverEnds(context, inventory, list);
  if (never === undefined) return results;
  const request = results[0]?.request ?? {};
  if (!isThere) return [{ subject: `${subject}, each pod`, outcome: never, request }];
  const why = `it is there like that and is let through, and its rollout stands still: ${never.message}`;
  return [...results, { subject, outcome: { kind: "nothing", why }, request }];
}

/** undefined: it ends, or this user may not look at the pods that decide on that. */
async function whyItNeverEnds(
  context: DryRun,
  inventory: Pick<ClusterState, "pod" | "admittedWith">,
  { object, ordinals, results }: List,
): Promise<Refusal | undefined> {
  if (!results.some(({ outcome }) => outcome.kind === "later")) return undefined;
  const allocations = ordinals.flatMap(({ allocation }) => (isRefusal(allocation) ? [] : allocation));
  if (allocations.length < ordinals.length) return undefined;
  const { neverEnds } = await import("../../webhook/admission/entry-exchange.ts");
  const { podsThere } = await import("../../webhook/admission/pods-there.ts");
  const known = { ...context, podsThere: podsThere(inventory) };
  return await ifAllowed(async () => await neverEnds(known, object, allocations));
}
