// SPDX-License-Identifier: Apache-2.0
import { parseAddress } from "../../allocator/address.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/dialects.ts";
import { isRefusal, type Refusal } from "../../allocator/errors.ts";
import { readObject } from "../../allocator/kube-object.ts";
import { type Reserved, reserve } from "../../allocator/reserve.ts";
import { applicantOf, wishOf } from "../../allocator/wish.ts";
import { Client } from "../../kube/client.ts";
import { namespaceOf } from "../admission/desk.ts";
import { PODS } from "../cluster/resources.ts";
import type { PodSeen } from "../cluster/watches.ts";
import type { ControllerDeps } from "./controller.ts";

/**
 * Makes the claim of a pod again, with the addresses that the pod was admitted with. A claim that stands costs admission
 * no call; so it may be let go, its last pod being gone, while the next one is on its way from admission to the API
 * server's store. Undefined: the pod is gone, or its claim is not one that is found by the pod's name.
 */
export async function readmit(
  { context, inventory, connection }: Pick<ControllerDeps, "context" | "inventory" | "connection">,
  { namespace, name, uid }: PodSeen,
): Promise<Reserved | Refusal | undefined> {
  const item = await new Client(connection, PODS).get({ namespace, name });
  if (item?.metadata.uid !== uid) return undefined;
  const pod = readObject({ apiVersion: "v1", kind: "Pod", ...item });
  if (isRefusal(pod)) return pod;
  const { annotations } = pod.metadata;
  const addresses = (annotations[ASSIGNED_ADDRESSES] ?? "")
    .split(",")
    .flatMap((text) => parseAddress(text) ?? []);
  if (addresses.length === 0 || annotations[ASSIGNED_TOKEN] !== undefined) return undefined;
  const facts = await namespaceOf(inventory.live, namespace);
  const applicant = await applicantOf(context, inventory.live, pod, facts);
  const wish = isRefusal(applicant) ? applicant : await wishOf(context, applicant);
  if (wish === undefined || isRefusal(wish)) return wish;
  if (wish.kind !== "one" || wish.intent.key.name !== annotations[ASSIGNED_CLAIM]) return undefined;
  const { intent } = wish;
  return await reserve(context, { ...intent, ask: { ...intent.ask, entry: addresses } });
}
