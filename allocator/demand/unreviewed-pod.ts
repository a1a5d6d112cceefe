// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import { ASSIGNED_ADDRESSES, readRequest } from "../manifest/annotations.ts";
import type { OwnReader } from "../manifest/pod-claim.ts";
import { requestsAddress } from "../model/address-request.ts";
import { type Claim, type ClaimRequest, claimKey } from "../model/claim.ts";
import { bareNamespace, type ClusterState } from "../model/cluster-state.ts";
import type { ClaimPlace } from "../model/container-claim.ts";
import { identityOf, type PodMetadata } from "../model/identity.ts";
import { FIRST_INTERFACE, formatAddresses, formatHolding, placesOf } from "../model/interfaces.ts";
import { ofOtherPools } from "../planning/named-addresses.ts";
import { quoted } from "../planning/refusal-messages.ts";
import { askedOtherwise } from "./admitted-pod.ts";
import { allocationFor, workloadFor } from "./pod-allocation.ts";

/** What decides whether a claim is what a pod asks for. */
interface Knowledge {
  readonly view: Pick<RecordReader, "poolOf"> & ClaimPlace;
  readonly own: OwnReader;
  readonly inventory: Pick<ClusterState, "workload">;
}

/**
 * Why a pod that no review has seen must not start with the claim of its name: it asks for other addresses itself than that has
 * (invariant 7), or nobody can read what it asks for. Undefined: the claim is what it asks for, it asks for nothing, or a review assigned
 * it what it is to have. Families do not count: they are what the pools had when the claim was made.
 */
export async function asksForOtherThan(
  claim: Claim,
  pod: PodMetadata,
  { view, own, inventory }: Knowledge,
): Promise<Refusal | undefined> {
  if (pod.annotations[ASSIGNED_ADDRESSES] !== undefined) return undefined;
  // what a namespace asks for names no address
  const { annotations, namespace } = own(pod.annotations, bareNamespace(pod.namespace));
  const request = readRequest(annotations, namespace, "macs");
  if (isRefusal(request)) return request;
  if (!requestsAddress(request)) return undefined;
  const podIdentity = identityOf(pod);
  const workload = await workloadFor(inventory, podIdentity, pod.namespace);
  const start = podIdentity.identity.kind === "StatefulSet" ? (workload?.start ?? 0) : 0;
  const of = { podIdentity, request, namespace, podLabels: pod.labels, start, token: "", now: 0 };
  const allocation = allocationFor(of);
  if (isRefusal(allocation)) return allocation;
  // of a list that pods share it may have any entry
  const asked = allocation.requests.map((one) => otherwise(view, claim, one.request));
  return asked.every((words) => words.length > 0) ? isOther(claim, pod, asked.flat(), view) : undefined;
}

/** What is asked for, in words; none, if the claim is that. */
function otherwise(view: Knowledge["view"], claim: Claim, request: ClaimRequest): readonly string[] {
  const saysInterfaces = request.interfaces !== undefined || request.interfacePools !== undefined;
  const interfaces = placesOf(claim) ?? { [FIRST_INTERFACE]: claim.addresses };
  const words = saysInterfaces ? formatAddresses(claim.addresses, interfaces) : claim.addresses;
  const asked = askedOtherwise(request, { words, ...(saysInterfaces && { interfaces }) });
  if (asked.length > 0) return asked;
  const { pools, interfacePools } = request;
  const named = { ...(pools && { pools }), ...(interfacePools && { interfacePools }), interfaces };
  return ofOtherPools(view, named, claim.addresses) === undefined ? [] : poolWords(request);
}

function poolWords({ pools, interfacePools = {} }: ClaimRequest): readonly string[] {
  return [
    ...(pools ?? []).map((name) => `an address of pool ${quoted(name)}`),
    ...Object.entries(interfacePools).flatMap(([name, of]) =>
      of.map((pool) => `an address of pool ${quoted(pool)} on ${name}`),
    ),
  ];
}

function isOther(
  claim: Claim,
  { namespace, name }: PodMetadata,
  asked: readonly string[],
  { ofContainers }: ClaimPlace,
): Refusal {
  const key = claimKey(claim);
  const [holds, wants] = [formatHolding(claim).join(", "), asked.join(" or ")];
  const words =
    ofContainers === true // whose containers nobody reviews
      ? `claim ${key}, which is kept for containers of this name, holds ${holds}, and this one asks for ${wants}; ask for what the claim holds, or give the claim back: berthctl release ${key}`
      : `claim ${key}, which is kept for pods of this name, holds ${holds}, and pod ${namespace}/${name}, which no review has seen, asks for ${wants}; delete the pod and create it again, so that it is reviewed, or ask for what the claim holds`;
  return refuse("CLAIM_CHANGED", words, { claim: key, pod: name, address: claim.addresses.join(",") });
}
