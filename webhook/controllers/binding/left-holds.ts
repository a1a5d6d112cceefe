// SPDX-License-Identifier: Apache-2.0

import type { RecordReader } from "../../../allocator/cache/reader.ts";
import type { BindTarget } from "../../../allocator/lifecycle/bind.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../../allocator/manifest/annotations.ts";
import { claimKey } from "../../../allocator/model/claim.ts";
import { isAnonymous } from "../../../allocator/model/identity.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";

/**
 * The claim that is still held for a pod which has gone, or has ended, before it was met: nobody else can know that it does not come any
 * more. Once its UID stands in the hold, as that of a pod that was met, the next pod of the set need not wait for the hold's time to end. Undefined:
 * there is none, or no other pod waits for it.
 */
export function leftHold(
  view: Pick<RecordReader, "claim">,
  { namespace, name, uid, annotations }: Pick<ObservedPod, "namespace" | "name" | "uid" | "annotations">,
): { readonly claim: Stored<"claim">; readonly target: BindTarget } | undefined {
  const [named, token] = [annotations[ASSIGNED_CLAIM], annotations[ASSIGNED_TOKEN]];
  if (named === undefined || token === undefined) return undefined;
  const claim = view.claim(claimKey({ namespace, name: named }));
  if (claim === undefined || isAnonymous(named, claim.record.identity)) return undefined;
  const { binding } = claim.record;
  if (binding?.token !== token || binding.node !== "" || binding.podUID !== "") return undefined;
  return { claim, target: { name, uid, node: "", token } };
}
