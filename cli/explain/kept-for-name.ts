// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../allocator/base/errors.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { asksForOtherThan } from "../../allocator/demand/unreviewed-pod.ts";
import { isWaitingFor } from "../../allocator/lifecycle/claim-owner.ts";
import { isUpWith } from "../../allocator/lifecycle/up-with.ts";
import { type KubeObject, podMetadata, podState } from "../../allocator/manifest/kubernetes-object.ts";
import type { OwnReader } from "../../allocator/manifest/pod-claim.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { type Backend, type Objects, partialCache } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { kubeletsAddresses } from "../backend/reported-addresses.ts";
import { ownReaderOf } from "./own-requests.ts";

/**
 * Why a pod is not bound to the claim of its name, by the rule of the binder: no review has seen it, and it asks for something else. Undefined:
 * it has the claim or is to have it, or this user may not know what decides that.
 */
export async function notForPod(
  claim: Claim,
  pod: KubeObject,
  sources: {
    readonly view: Pick<RecordReader, "poolOf">;
    readonly own: OwnReader;
    readonly world: Pick<Objects, "workload">;
  },
): Promise<Refusal | undefined> {
  const isIts = claim.binding?.podUID === pod.metadata.uid || isUpWith(claim, kubeletsAddresses(pod));
  if (isIts) return undefined;
  const knowledge = { ...sources, inventory: sources.world };
  return await ifAllowed(
    () => asksForOtherThan(claim, podMetadata(pod, claim.namespace), knowledge),
    undefined,
  );
}

/** Whether the pod is to be bound to the claim of its name: it asks for it, or was given it. Only a cluster has a binder that compares. */
export async function isForPod(claim: Claim, pod: KubeObject, backend: Backend): Promise<boolean> {
  const own = await ownReaderOf(backend);
  if (!isWaitingFor(podState(pod), claim, own)) return false;
  const { place, store, world } = backend;
  if (place !== "cluster") return true;
  const view = await partialCache(new AllowedRecords(store), []);
  return (await notForPod(claim, pod, { view, own, world })) === undefined;
}
