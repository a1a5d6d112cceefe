// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { Labels } from "../../../allocator/base/ports.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import { requestFor } from "../../../allocator/demand/build-request.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import {
  type AllocationRequest,
  type Reserved,
  takingOver,
} from "../../../allocator/lifecycle/allocation-request.ts";
import { reserve } from "../../../allocator/lifecycle/reserve.ts";
import type { Binding } from "../../../allocator/model/claim.ts";
import type { NamespaceState } from "../../../allocator/model/cluster-state.ts";
import { networkNames } from "./claim-networks.ts";
import type { AttachRequest } from "./claim-source.ts";

interface Circumstances {
  readonly namespace: NamespaceState;
  readonly annotations: Labels;
  /** This node's name. */
  readonly node: string;
  /** As EmbeddedClaimsOptions has it. */
  readonly bindsAtOnce?: boolean;
  readonly now: number;
}

/** What the claim of a pod is made of that asks for nothing itself, from the pools that its network names. */
export function newClaimFor(request: AttachRequest, of: Circumstances): AllocationRequest | Refusal {
  const { namespace, annotations, now } = of;
  const { pools, families } = request;
  const entry = request.addresses.length === 0 ? {} : { entries: [request.addresses] };
  const identity = { kind: "Pod", apiVersion: "v1", name: request.pod.name };
  const allocation = requestFor({
    podIdentity: { kind: "named", claim: request.pod.name, identity },
    request: { pools, ...(families && { families }), ...entry },
    namespace,
    podLabels: {},
    networks: { names: networkNames(request, annotations), isAll: true },
    start: 0,
    token: "",
    now,
  });
  return isRefusal(allocation) ? allocation : { ...allocation, ...holdFor(request, of) };
}

/** What a container had before this plugin was, free now for its next claim. */
export interface FormerAddresses {
  /** Names of the claims that kept them. */
  readonly claims: readonly string[];
  readonly addresses: readonly Address[];
}

/** The claim that has them again; undefined: others have one of them already, or they do not suit the request. */
export async function reserveFormer(
  context: Context,
  { claims, addresses }: FormerAddresses,
  request: AttachRequest,
  of: Circumstances,
): Promise<Reserved | undefined> {
  const allocation = newClaimFor({ ...request, addresses }, of);
  if (isRefusal(allocation)) return undefined;
  const again = takingOver(allocation, { name: claims, wasUnused: false });
  const got = await reserve(context, again, "nothing");
  return isRefusal(got) ? undefined : got;
}

/** Held for this pod, so that its next sandbox finds what an ADD that was given up has made. */
function holdFor(
  { pod, attachment, seenAt }: AttachRequest,
  { node, bindsAtOnce = false, now }: Circumstances,
): Pick<AllocationRequest, "hold" | "sandbox"> {
  const { name: podName, uid: podUID } = pod;
  const hold: Binding = { token: "", podName, podUID, since: now, node: "" };
  if (!bindsAtOnce) return { hold };
  const { containerID, interface: name } = attachment;
  const sandbox = { node, containerID, interface: name, podUID, since: now, detached: false, ...seenAt };
  return { hold: { ...hold, node, interface: name }, sandbox };
}
