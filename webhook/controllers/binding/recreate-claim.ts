// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import {
  admissionAnswerOf,
  isSettled,
  namesOthersItself,
  requestAsAnswered,
  settleAnswer,
} from "../../../allocator/demand/admitted-pod.ts";
import { ownReader } from "../../../allocator/demand/foreign-pools.ts";
import { allocateSlot } from "../../../allocator/demand/slots.ts";
import type { Reserved } from "../../../allocator/lifecycle/allocation-request.ts";
import { isUpWith } from "../../../allocator/lifecycle/up-with.ts";
import { podMetadata, readObject } from "../../../allocator/manifest/kubernetes-object.ts";
import { bareNamespace, namespaceOf } from "../../../allocator/model/cluster-state.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { Client } from "../../../kube/api/client.ts";
import { PODS } from "../../../kube/api/resource.ts";
import { withUsablePools } from "../../admission/pool-access.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";
import type { ControllerDeps } from "../controller.ts";
import { reportedOf } from "./bind-decision.ts";

type Deps = Pick<ControllerDeps, "context" | "inventory" | "connection" | "access">;

/**
 * Writes into its claim what the pod says, which the API server has: its review changed nothing of a claim that was there.
 * It also makes a claim again that is gone: one that stands costs admission no call, so it may be let go, its last pod
 * being gone, while the next one is on its way from admission to the API server's store. The same is decided as at
 * admission, from what the pod asks for itself and who it is. Undefined: the pod is gone, it asks for nothing that would
 * have led to such a claim, or the claim is another's by now.
 */
export async function recreateClaim(
  deps: Deps,
  { namespace, name, uid }: Pick<ObservedPod, "namespace" | "name" | "uid">,
): Promise<Reserved | Refusal | undefined> {
  const { context, inventory, connection } = deps;
  const item = await new Client(connection, PODS).get({ namespace, name });
  if (item?.metadata.uid !== uid) return undefined;
  const pod = readObject({ apiVersion: "v1", kind: "Pod", ...item });
  if (isRefusal(pod)) return pod;
  const answer = admissionAnswerOf(pod.metadata.annotations);
  if (answer === undefined) return undefined;
  const facts = await namespaceOf(inventory.live, namespace);
  const of = { pod: podMetadata(pod, namespace), namespace: facts, answer };
  const plain = await requestAsAnswered(context, inventory.live, of);
  if (plain === undefined || isRefusal(plain)) return plain;
  const [open = plain] = await withUsablePools(deps, namespace, pod.spec, [plain]);
  const isThere = async () => (await inventory.live.pod(namespace, name))?.uid === uid;
  const allocation = { ...open, isThere };
  const settled = await settleAnswer(context, allocation, answer);
  if (settled !== undefined || answer.token === "") return settled;
  // its hold has expired, and the slot may be free again
  const bound = await allocateSlot(context, inventory.live, [allocation]);
  return isRefusal(bound) ? bound : await settleAnswer(context, allocation, answer);
}

/**
 * The claim with the pod's owner, request and retention: its review wrote nothing of them. A refusal where the pod asks itself for others than
 * it was assigned: another webhook changed its request after its review, and no second review has refused that (invariant 7).
 */
export async function settledClaim(
  deps: Deps,
  pod: ObservedPod,
  claim: Stored<"claim">,
): Promise<Stored<"claim"> | Refusal> {
  const { context, inventory } = deps;
  const answer = admissionAnswerOf(pod.annotations);
  if (answer === undefined) return claim;
  const namespace = await namespaceOf(inventory.cached, pod.namespace);
  const of = { pod: { ...pod, generateName: "" }, namespace, answer };
  const allocation = await requestAsAnswered(context, inventory.cached, of);
  if (isRefusal(allocation)) {
    const own = ownReader(context)(pod.annotations, bareNamespace(pod.namespace));
    const isOther = namesOthersItself(own.annotations, answer) && !isUpWith(claim.record, reportedOf(pod));
    return isOther ? allocation : claim;
  }
  if (allocation === undefined) return claim;
  if (await isSettled(claim.record, allocation)) return claim;
  const made = await recreateClaim(deps, pod);
  return made?.kind === "reserved" ? made.claim : claim;
}
