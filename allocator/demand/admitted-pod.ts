// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { sameSet } from "../base/same-set.ts";
import type { Context } from "../cache/context.ts";
import { type Address, familyOf } from "../ip/address.ts";
import { macOfAddress } from "../ip/mac.ts";
import type { AllocationRequest, Reserved } from "../lifecycle/allocation-request.ts";
import { withClaimOwner } from "../lifecycle/existing-claim.ts";
import { isUpToDate, reserve } from "../lifecycle/reserve.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
  familyOfNamespace,
  MAC,
  POOLS,
  readRequest,
  withoutBeside,
} from "../manifest/annotations.ts";
import { type AddressEntry, requestsAddress, requestsAddressOn } from "../model/address-request.ts";
import { type Claim, type ClaimRequest, claimKey } from "../model/claim.ts";
import type { ClusterState, NamespaceState } from "../model/cluster-state.ts";
import type { PodMetadata } from "../model/identity.ts";
import {
  addressesOn,
  FIRST_INTERFACE,
  formatAddresses,
  type Interfaces,
  namesOf,
  parseAddresses,
} from "../model/interfaces.ts";
import { anonymousName } from "./build-request.ts";
import { readPodAs, resolvePod } from "./pod-allocation.ts";

/** What a pod was assigned at its admission, as its annotations have it. */
interface AdmissionAnswer {
  /** Name of its claim. */
  readonly claim: string;
  /** Empty: its claim is found by the pod's name. */
  readonly token: string;
  readonly addresses: AddressEntry;
  /** Of these, the interfaces; absent: it was assigned none. */
  readonly interfaces?: Interfaces;
  /** Both, as they were written. */
  readonly words: readonly string[];
}

/** As many as a claim can have, and one more shows that it is no answer of ours. */
const MOST_ASSIGNED = 17;

/** Undefined: it was assigned no address. */
export function admissionAnswerOf(annotations: Labels): AdmissionAnswer | undefined {
  const claim = annotations[ASSIGNED_CLAIM];
  const { addresses, interfaces } = parseAddresses(
    (annotations[ASSIGNED_ADDRESSES] ?? "").split(",", MOST_ASSIGNED),
  );
  if (claim === undefined || addresses.length === 0) return undefined;
  const words = formatAddresses(addresses, interfaces);
  const token = annotations[ASSIGNED_TOKEN] ?? "";
  return { claim, token, addresses, words, ...(interfaces && { interfaces }) };
}

type AdmittedContext = Pick<Context, "view" | "store" | "clock" | "random" | "dialects">;

/**
 * What the pod asks for and what it was assigned, as one request: the addresses are those that it was assigned. A refusal if the
 * two are not the same: it must not start with others than it asks for (invariant 7). Undefined: it asks for nothing, or
 * what it was assigned is another pod's.
 */
export async function requestAsAnswered(
  knowledge: AdmittedContext,
  inventory: Pick<ClusterState, "workload">,
  { pod, namespace, answer }: { pod: PodMetadata; namespace: NamespaceState; answer: AdmissionAnswer },
): Promise<AllocationRequest | Refusal | undefined> {
  // A pod from generateName had no name at its admission.
  const origin = answer.claim === anonymousName(answer.token) ? { ...pod, name: "" } : pod;
  const input = await readPodAs(knowledge, inventory, origin, namespace);
  if (isRefusal(input)) return input;
  const resolved = await resolvePod(
    knowledge,
    answer.token === "" ? input : { ...input, token: answer.token },
  );
  if (resolved === undefined || isRefusal(resolved)) return resolved;
  const allocation = resolved.requests.find(({ key }) => key.name === answer.claim);
  if (allocation === undefined) return undefined;
  const { fallback: _, interfaces: __, ...constraints } = allocation.constraints;
  const { addresses, interfaces } = answer;
  return (
    asksForOthers(pod, allocation, answer) ?? {
      ...allocation,
      constraints: { ...constraints, addresses, ...(interfaces && { interfaces }) },
    }
  );
}

/**
 * What a namespace says may have changed since, and does not count: but that Calico takes the pools of a family which the pod names none
 * of from there. Those were the pools of what the pod was assigned.
 */
export function defaultsAsAnswered(
  view: Pick<Context["view"], "poolOf">,
  annotations: Labels,
  answer: AdmissionAnswer | undefined,
  isByName: boolean,
): Labels {
  if (answer === undefined) return {};
  const first = addressesOn({ ...answer, request: {} }, FIRST_INTERFACE) ?? answer.addresses;
  const pooled = first.filter((one) => macOfAddress(one) === undefined);
  if (pooled.length > 0 && !asksOfFirst(annotations)) {
    const names = pooled.flatMap((one) => {
      const pool = view.poolOf(one)?.name;
      return pool === undefined ? [] : [`${pool}/${familyOf(one)}`];
    });
    return names.length === 0 ? {} : { [POOLS]: [...new Set(names)].join() };
  }
  const left = familyOfNamespace(annotations);
  if (left === undefined) return {};
  const others = pooled.filter((one) => familyOf(one) === left.family);
  const pools = new Set(others.flatMap((one) => view.poolOf(one)?.name ?? []));
  // assigned none of the family that it names pools of, it was assigned what it does not ask for, unless that is by name
  return pools.size === 0 || (others.length === pooled.length && !isByName)
    ? {}
    : { [left.key]: JSON.stringify([...pools]) };
}

/** Whether the pod itself asks for its first interface; a MAC address alone asks for nothing, nor does that another system's address is kept. */
function asksOfFirst({ [MAC]: _, ...annotations }: Labels): boolean {
  const request = readRequest(annotations);
  if (isRefusal(request)) return true;
  const asking = withoutBeside(request, annotations);
  return requestsAddress(asking) && requestsAddressOn(asking, FIRST_INTERFACE);
}

function asksForOthers(
  { namespace, name }: PodMetadata,
  allocation: AllocationRequest,
  { addresses, interfaces, words }: AdmissionAnswer,
): Refusal | undefined {
  const request = allocation.followsClaim === "any" ? {} : allocation.request;
  const asked = askedOtherwise(request, { words, ...(interfaces && { interfaces }) });
  if (asked.length === 0) return undefined;
  return refuse(
    "CLAIM_CHANGED",
    `pod ${namespace}/${name} asks for ${asked.join(", ")} and was given ${words.join(", ")} at its admission: its request was changed after berth was asked; write the request into the pod itself`,
    { claim: claimKey(allocation.key), pod: name, address: addresses.join(",") },
  );
}

/**
 * Whether the pod itself names addresses, and none of its entries is what it was assigned. Nothing else that may have changed since its admission
 * counts: its namespace's defaults, where its workload's ordinals begin, the pools.
 */
export function namesOthersItself(
  annotations: Labels,
  { addresses, interfaces }: Pick<AdmissionAnswer, "addresses" | "interfaces">,
): boolean {
  const request = readRequest(annotations);
  if (isRefusal(request) || request.entries === undefined || request.fallback !== undefined) return false;
  // where both say so, on the interface that it is asked for
  const isPlaced = request.interfaces !== undefined && interfaces !== undefined;
  const words = formatAddresses(addresses, isPlaced ? interfaces : undefined);
  const wordsOf = (address: Address) => formatAddresses([address], isPlaced ? request.interfaces : undefined);
  const isAssigned = (address: Address) =>
    macOfAddress(address) !== undefined || wordsOf(address).every((one) => words.includes(one));
  return !request.entries.some((entry) => entry.every(isAssigned));
}

/** What the request names, in words, where addresses in words and their interfaces are not that; none, where they are. */
export function askedOtherwise(
  request: ClaimRequest,
  { words, interfaces = {} }: Pick<AdmissionAnswer, "words" | "interfaces">,
): readonly string[] {
  const { interfacePools = {} } = request;
  const lacking = namesOf(interfacePools).filter((name) => !Object.hasOwn(interfaces, name));
  const named =
    request.fallback === "any" ? [] : formatAddresses(request.addresses ?? [], request.interfaces);
  const isAll = request.interfacePools === undefined;
  const asked = [...named, ...lacking.map((name) => `an address of ${name}`)];
  if (asked.length === 0) return [];
  const isAnswered = isAll
    ? sameSet(asked, withoutDefaults(words, request))
    : asked.every((one) => words.includes(one));
  return isAnswered ? [] : asked;
}

/** Of a pod that asks for further interfaces alone, without what its namespace asked for its first one. */
function withoutDefaults(
  words: readonly string[],
  { interfaces }: Pick<ClaimRequest, "interfaces">,
): readonly string[] {
  const isOwn = interfaces === undefined || Object.hasOwn(interfaces, FIRST_INTERFACE);
  return isOwn ? words : words.filter((one) => !one.endsWith(`@${FIRST_INTERFACE}`));
}

/**
 * Writes into its claim what a pod says that is in the store: from here, and not from its review, the claim is of this
 * owner, with this request and retention, and has the addresses assigned to the pod (ADR 0007). A claim that was let go
 * meanwhile is made again. Undefined: by now the claim is bound to or held for another pod.
 */
export async function settleAnswer(
  context: Context,
  allocation: AllocationRequest,
  answer: AdmissionAnswer,
): Promise<Reserved | Refusal | undefined> {
  const before = await context.store.get("claim", claimKey(allocation.key));
  if (before !== undefined && !isHeldFor(before.record, answer)) return undefined;
  const got = await reserve(context, allocation, "pod");
  if (isRefusal(got)) return got;
  return sameSet(got.assigned, answer.words) && isHeldFor(got.claim.record, answer) ? got : undefined;
}

/** By its token, or, for a pod without one, to nobody in particular. */
function isHeldFor({ binding }: Claim, { token }: AdmissionAnswer): boolean {
  return (binding?.token ?? "") === token;
}

/** The same where the allocator hears of the pod itself, on the embedded stack. Undefined: there is nothing to be said about it. */
export async function settlePod(
  context: Context,
  inventory: ClusterState,
  pod: PodMetadata & { readonly uid: string },
): Promise<Refusal | undefined> {
  const answer = admissionAnswerOf(pod.annotations);
  const isThere = async () => (await inventory.pod(pod.namespace, pod.name))?.uid === pod.uid;
  if (!(await isThere())) return succeededBy(pod);
  const namespace = await inventory.namespace(pod.namespace);
  if (answer === undefined || namespace === undefined) return undefined;
  const allocation = await requestAsAnswered(context, inventory, { pod, namespace, answer });
  if (allocation === undefined || isRefusal(allocation)) return allocation;
  const settled = await settleAnswer(context, { ...allocation, isThere }, answer);
  return isRefusal(settled) ? settled : undefined;
}

function succeededBy({ namespace, name }: PodMetadata): Refusal {
  const words = `another pod ${namespace}/${name} is there, or this one is deleted; delete that one and create it again`;
  return refuse("CLAIM_BUSY", words, { claim: claimKey({ namespace, name }), pod: name });
}

/** Nothing about the claim would change, were it settled with the pod. */
export async function isSettled(claim: Claim, allocation: AllocationRequest): Promise<boolean> {
  const { retained: _, ...kept } = claim; // binding it to the pod takes that away
  return isUpToDate(kept, await withClaimOwner(allocation, claim));
}
