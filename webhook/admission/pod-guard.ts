// SPDX-License-Identifier: Apache-2.0
import { ASSIGNED_CLAIM, readRequest, withDefaults } from "../../allocator/dialects.ts";
import { isRefusal, type Refusal, refuse } from "../../allocator/errors.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";
import { asksForAddress } from "../../allocator/request.ts";
import { isExempt } from "../../allocator/wish.ts";
import { type Desk, namespaceOf } from "./desk.ts";
import { ASSIGNED } from "./opt-in.ts";

/** An opted-in pod that did not pass the mutating webhook would start without its address, or wait for ever. */
export async function unclaimed(desk: Desk, pod: KubeObject): Promise<Refusal | undefined> {
  const { namespace, name, annotations } = pod.metadata;
  if (isExempt(pod) || Object.hasOwn(annotations, ASSIGNED_CLAIM)) return undefined;
  const request = readRequest(withDefaults(annotations, await namespaceOf(desk.inventory, namespace)));
  if (!isRefusal(request) && !asksForAddress(request)) return undefined;
  const remedy =
    desk.embedded === undefined
      ? "another webhook asked for it after berth was asked: write the annotation into the pod itself"
      : "send it through /mutate/pods first";
  return refuse(
    "CLAIM_MISSING",
    `pod ${namespace}/${name} asks for an address and no claim was made for it; ${remedy}`,
    { namespace, pod: name },
  );
}

/** What Berth wrote into a pod says which claim it has, for as long as it lives. */
export function rewritten(before: KubeObject, now: KubeObject): Refusal | undefined {
  const { namespace, name, annotations } = now.metadata;
  const key = ASSIGNED.find((one) => annotations[one] !== before.metadata.annotations[one]);
  if (key === undefined) return undefined;
  return refuse(
    "OBJECT_INVALID",
    `annotation ${key} of pod ${namespace}/${name} is written by berth when the pod is created and stays; leave it as it is`,
    { namespace, pod: name, annotation: key },
  );
}
