// SPDX-License-Identifier: Apache-2.0

import { BerthError, isRefusal, type Refusal, refuse } from "../../../../allocator/base/errors.ts";
import type { Labels } from "../../../../allocator/base/ports.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  EXEMPT_NAMESPACE,
  readRequest,
} from "../../../../allocator/manifest/annotations.ts";
import { withoutEveryDialect, withoutUnread } from "../../../../allocator/manifest/dialects.ts";
import { OPT_IN_LABEL, OPT_IN_VALUE } from "../../../../allocator/manifest/opt-in.ts";
import { claimRefsFor } from "../../../../allocator/manifest/pod-claim.ts";
import {
  type Request,
  requestsAddressOn,
  requestsNothing,
} from "../../../../allocator/model/address-request.ts";
import type { Dialects } from "../../../../allocator/model/dialect.ts";
import { unknownPool } from "../../../../allocator/planning/refusal-messages.ts";
import type { Pool } from "../../../../allocator/pool/pool.ts";
import type { Stored } from "../../../../allocator/store/store.ts";
import { claimOnNetwork } from "../claim-networks.ts";
import { besideOf, isReplaced, missing, NO_CLAIM, podReplaced, serves } from "../claim-result.ts";
import type { AttachRequest, ClaimMatch, NoClaim } from "../claim-source.ts";
import { type NodeCache, type NodePod, type PodName, podKey } from "./node-cache.ts";

/** How long an ADD waits for the watches and the binder. */
export const BINDING_MS = 5_000;

/** The claim may be on its way. If it does not come, `giveUp` returns or throws what the ADD is answered. */
interface Pending {
  readonly kind: "wait";
  giveUp(): ClaimMatch | Refusal;
}

/** The pod asks for no address and was given no claim: other sources serve it, unless it was not reviewed and a claim is kept for its name. */
export interface Unasked {
  readonly kind: "unasked";
}

const UNASKED: Unasked = { kind: "unasked" };

interface LookupInput {
  readonly view: NodeCache;
  readonly node: string;
  /** Which interface of the pod has the claim, if it names none itself; undefined: any may, so far. */
  readonly interfaceOf: (claim: Stored<"claim">) => string | undefined;
  /** Which requests in other systems' words are for Berth; absent: all. */
  readonly dialects?: Dialects;
  /** Whether pods that ask for nothing are served out of blocks of the pool, so far as is known. */
  readonly hasBlocks: (pool: string) => boolean;
  /** Undefined while not all pools are known. */
  readonly allPools: () => readonly Pool[] | undefined;
}

/**
 * Which claim serves the pod, from memory alone: the one that the binder bound to its UID. Annotations only tell what
 * is worth waiting for.
 *
 * | the pod                                          |                                           |
 * |--------------------------------------------------|-------------------------------------------|
 * | is of kube-system                                | is none of Berth's business                |
 * | has a claim and is seen here                     | found                                      |
 * | has a claim for the network of another interface | other sources of the configuration         |
 * | has a claim for none of its networks             | refuse                                     |
 * | has a claim and is not seen here yet             | wait; then found, and proven by the API server |
 * | has another UID than the one seen                | wait; then it is deleted, refuse           |
 * | is not known, nor are its annotations            | wait; then try again                       |
 * | was given a claim at admission                   | wait for its binding; then try again       |
 * | asks for an address and was given none           | wait, for a claim of its name; then refuse |
 * | asks for nothing                                 | other sources of the configuration, blocks among them, unless one is kept for it unreviewed |
 */
export function lookUpClaim(
  input: LookupInput,
  request: AttachRequest,
): ClaimMatch | NoClaim | Refusal | Pending | Unasked {
  const { view, node } = input;
  if (request.pod.namespace === EXEMPT_NAMESPACE) return NO_CLAIM;
  const asks = (annotations: Labels) => readRequest(withoutUnread(annotations, input.dialects));
  if (!view.isSynced) return needsNoClaim(request, asks, input) ? UNASKED : waitThen(() => notLoaded(node));
  const there = view.pod(request.pod);
  const bound = boundTo(view, request, there);
  if (bound !== undefined) return foundFor(bound, there, { input, request });
  if (there !== undefined && isReplaced(there, request)) return waitThen(() => podReplaced(request.pod));
  const annotations = there?.annotations ?? request.annotations;
  if (annotations === undefined) return waitThen(() => unknown(request, node));
  return unbound(request, annotations, { input, asked: asks(annotations) });
}

type Asks = (annotations: Labels) => Request | Refusal;

/** Before anything is loaded: whether the annotations that the runtime sent already show that the pod has no claim to wait for. */
function needsNoClaim(
  { annotations, pools, attachment }: AttachRequest,
  asks: Asks,
  { hasBlocks }: LookupInput,
): boolean {
  if (annotations === undefined || annotations[ASSIGNED_CLAIM] !== undefined) return false;
  if (pools.length > 0 && !pools.some(hasBlocks)) return false;
  const asked = asks(annotations);
  return !isRefusal(asked) && !requestsAddressOn(asked, attachment.interface);
}

/** A pod whose UID the runtime does not say is the one that is seen here. */
function boundTo(
  view: NodeCache,
  request: AttachRequest,
  there: NodePod | undefined,
): Stored<"claim"> | undefined {
  const { pod, annotations } = request;
  if (pod.uid === "" && there !== undefined && isReplaced(there, request)) return undefined;
  const uid = pod.uid === "" ? there?.uid : pod.uid;
  const bound = view.claimsOf(pod).filter(({ record }) => record.binding?.podUID === uid);
  const claimRefs = claimRefsFor(pod, annotations ?? there?.annotations ?? {});
  const named = claimRefs.flatMap((ref) => bound.find(({ key }) => key === ref.key) ?? []);
  return named[0] ?? bound[0];
}

function foundFor(
  claim: Stored<"claim">,
  there: NodePod | undefined,
  { input, request }: { input: LookupInput; request: AttachRequest },
): ClaimMatch | NoClaim | Refusal | Pending {
  if (!serves(claim.record, request, input.interfaceOf(claim))) return NO_CLAIM;
  // The sandbox's own annotations, where the runtime sends them.
  const annotations = request.annotations ?? there?.annotations;
  const network = claimOnNetwork(input.view, claim.record, request, annotations);
  if (network === "elsewhere") return NO_CLAIM;
  if (network === "unknown") return waitThen(() => unknown(request, input.node));
  if (network !== "serves") return network;
  const assigned = annotations?.[ASSIGNED_ADDRESSES]?.split(",");
  const { token = "", podUID } = claim.record.binding ?? {};
  const found = {
    kind: "found",
    claim: claim.key,
    token,
    ...(assigned === undefined ? {} : { assigned }),
    ...besideOf(claim.record),
  } as const;
  return there?.uid === podUID ? found : waitThen(() => found);
}

/** No claim is bound to the pod, so far as is known. */
function unbound(
  request: AttachRequest,
  annotations: Labels,
  {
    input: { node, hasBlocks, allPools },
    asked,
  }: { readonly input: LookupInput; readonly asked: Request | Refusal },
): Unasked | Refusal | Pending {
  const named = annotations[ASSIGNED_CLAIM];
  if (named !== undefined) return waitThen(() => notBound(request.pod, named, node));
  if (isRefusal(asked)) return asked;
  if (requestsAddressOn(asked, request.attachment.interface))
    return waitThen(() => missing(request.pod, asksOthersOnly(annotations)));
  const served = request.pools.length === 0 || request.pools.some(hasBlocks);
  return served ? UNASKED : notAdmitted(request, allPools());
}

/** The pod's own request is in other systems' words alone. The defaults of its namespace are not known here. */
function asksOthersOnly(annotations: Labels): boolean {
  const otherwise = readRequest(withoutEveryDialect(annotations));
  return requestsNothing(otherwise);
}

function waitThen(giveUp: () => ClaimMatch | Refusal): Pending {
  return { kind: "wait", giveUp };
}

function notLoaded(node: string): never {
  throw new BerthError("NOT_READY", notLoadedWords(node), { details: { node } });
}

/** For ADD and for STATUS. */
export function notLoadedWords(node: string): string {
  return `the claims of node ${node} are not loaded: the API server has not answered since the agent started; try again`;
}

function unknown({ pod }: AttachRequest, node: string): never {
  const words = `pod ${podKey(pod)} is not known on node ${node}: the API server has not told of it in ${BINDING_MS / 1000} s; try again`;
  throw new BerthError("NOT_READY", words, { details: { pod: pod.name, node } });
}

function notBound(pod: PodName, name: string, node: string): Refusal {
  const key = podKey({ namespace: pod.namespace, name });
  const words = `claim ${key} is not bound to pod ${podKey(pod)} on node ${node} in ${BINDING_MS / 1000} s; the events of the pod say why, unless no Berth webhook runs; try again`;
  return refuse("CLAIM_BUSY", words, { claim: key, pod: pod.name, node });
}

/** Pools without blocks serve only admitted pods: an agent in a cluster reserves nothing. A pool that does not exist serves nobody. */
function notAdmitted({ pod, pools }: AttachRequest, all: readonly Pool[] | undefined): Refusal {
  const strange = all && pools.find((name) => !all.some((pool) => pool.name === name));
  if (all !== undefined && strange !== undefined) return unknownPool({ pools: () => all }, strange);
  const label = `${OPT_IN_LABEL}=${OPT_IN_VALUE}`;
  const words = `pod ${podKey(pod)} asked for no address, and its network takes them from pools (${pools.join(", ")}), which have no blockSize and serve pods that ask: annotate the pod, or its namespace with the label ${label}, with berth.dev/pools: ${pools.join(",")} and create the pod again; or have a pool with blockSize (32 and 128: one address at a time), which serves pods that ask for nothing; a pool gets it when it is made`;
  return refuse("CLAIM_MISSING", words, { pod: pod.name, pool: pools.join(",") });
}
