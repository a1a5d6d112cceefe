// SPDX-License-Identifier: Apache-2.0

import { BerthError, isRefusal, messageOf, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { familyOf } from "../../../allocator/ip/address.ts";
import { addressOfMac } from "../../../allocator/ip/mac.ts";
import { classify, type Pool } from "../../../allocator/pool/pool.ts";
import { type CniError, fromRefusal } from "../../cni/errors.ts";
import { atLeast } from "../../cni/versions.ts";
import type {
  AttachRequest,
  ClaimMatch,
  ClaimResult,
  NoClaim,
  PodRef,
  RequestedMac,
} from "../claims/claim-source.ts";
import { orAborted } from "../claims/deadline.ts";
import { type Attachment, attachmentKey, keyOf, tombstoneFor } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { cancelledError, commitAttachment } from "./commit.ts";
import { busy, findTaken, supersedeOthers } from "./takeover.ts";

/** `etcd`: which of several has the claim; absent where claims are otherwise. */
type PodAddRequest = AddRequest & { readonly pod: PodRef; readonly etcd?: string };

/** Attaches the addresses of the pod's claim; undefined when the pod has none and asked for none. */
export async function assignFromClaim(
  addRequest: PodAddRequest,
  services: AgentServices,
  signal: AbortSignal,
): Promise<Attachment | CniError | undefined> {
  const taking = takingOf(addRequest, services, signal);
  const found = await findClaim(taking);
  if (found === undefined) return cancelledError(addRequest);
  if (isRefusal(found)) return fromRefusal(found);
  if (found.kind === "unclaimed") return undefined;
  const attached = await services.locks.run(`claim\0${found.claim}`, () => assignTo(found, taking));
  return isRefusal(attached) ? fromRefusal(attached) : attached;
}

/** Which claim serves the pod; undefined when the signal aborted first: what is made after that is given back. */
export async function findClaim({
  addRequest,
  services,
  request,
  signal,
}: Taking): Promise<ClaimMatch | NoClaim | Refusal | undefined> {
  const answer = services.claimSource.find(request, signal);
  const first = await orAborted(answer, signal);
  if (first === undefined) giveBackLate(answer, madeIn, { addRequest, services });
  return first;
}

/** The claim that this lookup has made. */
function madeIn(found: ClaimMatch | NoClaim | Refusal): string | undefined {
  return found.kind === "found" && found.made !== undefined ? found.claim : undefined;
}

function requestOf(addRequest: PodAddRequest, { bootId, pools: known }: AgentServices): AttachRequest {
  const { dropIn, pools } = addRequest.ipam;
  return {
    pod: addRequest.pod,
    attachment: keyOf(addRequest),
    // a plugin that goes by an annotation makes no claim for a pod without
    pools: dropIn?.annotation === undefined ? pools : [],
    ...(dropIn?.families !== undefined && { families: dropIn.families }),
    ...(addRequest.etcd !== undefined && { etcd: addRequest.etcd }),
    addresses: addRequest.requested,
    ...(addRequest.mac !== undefined && { mac: requestedMac(addRequest.mac, known()) }),
    annotations: addRequest.ipam.annotations,
    ...(addRequest.netnsSeen && { seenAt: { netns: addRequest.netns, bootID: bootId } }),
  };
}

/** What somebody says of the interface's MAC address, and which pool says who may have that one. */
export function requestedMac(mac: string, pools: Iterable<Pool>): RequestedMac {
  for (const pool of pools)
    if (["open", "reserved"].includes(classify(pool, addressOfMac(mac)))) return { mac, pool: pool.name };
  return { mac };
}

/** The claim moves to this sandbox only when no other of this node can have it any more (invariant 3c). */
async function assignTo(
  found: ClaimMatch,
  taking: Taking,
): Promise<Attachment | CniError | Refusal | undefined> {
  const { addRequest, services, signal } = taking;
  const superseded = await supersedeOthers(found, addRequest, services, signal);
  if (isRefusal(superseded) || signal.aborted) {
    await giveBack({ claim: madeIn(found) }, addRequest, services);
    return isRefusal(superseded) ? superseded : cancelledError(addRequest);
  }
  const bound = await attachTo(found, taking);
  if (bound === undefined) return cancelledError(addRequest);
  if (isRefusal(bound)) return bound;
  if (bound.kind === "unclaimed") return undefined;
  try {
    const attached = await take(bound, superseded, taking);
    if (isRefusal(attached)) await giveBack(bound, addRequest, services);
    return attached;
  } catch (error) {
    await giveBack(bound, addRequest, services);
    throw error;
  }
}

/** Undefined when the signal aborted first. An answer that comes after that is given back. */
async function attachTo(
  found: ClaimMatch,
  { addRequest, services, request, signal }: Taking,
): Promise<ClaimResult | NoClaim | Refusal | undefined> {
  const answer = services.claimSource.attach(found, request, signal);
  const first = await orAborted(answer, signal);
  const claimIn = (late: ClaimResult | NoClaim | Refusal) =>
    late.kind === "claimed" ? late.claim : undefined;
  if (first === undefined) giveBackLate(answer, claimIn, { addRequest, services });
  return first;
}

/** Of an answer that nobody waits for any more; the ADD has left its turn by then. */
function giveBackLate<T>(
  answer: Promise<T>,
  claimIn: (late: T) => string | undefined,
  { addRequest, services }: Pick<Taking, "addRequest" | "services">,
): void {
  const given = answer.then((late) =>
    services.locks.run(attachmentKey(addRequest), () =>
      giveBack({ claim: claimIn(late) }, addRequest, services),
    ),
  );
  given.catch((error: unknown) => {
    services.log.debug("the claim source answered too late", { error: messageOf(error) });
  });
}

interface Taking {
  readonly addRequest: PodAddRequest;
  readonly services: AgentServices;
  /** What the claim source is asked, of the claim and then for it. */
  readonly request: AttachRequest;
  readonly signal: AbortSignal;
}

export function takingOf(addRequest: PodAddRequest, services: AgentServices, signal: AbortSignal): Taking {
  return { addRequest, services, request: requestOf(addRequest, services), signal };
}

async function take(
  bound: ClaimResult,
  superseded: readonly Attachment[],
  { addRequest, services, signal }: Taking,
): Promise<Attachment | Refusal> {
  if (bound.addresses.length === 0) {
    throw new BerthError(
      "INTERNAL",
      `claim ${bound.claim} of pod ${addRequest.pod.namespace}/${addRequest.pod.name} has no address`,
    );
  }
  const unsayable = beyondVersion(bound, addRequest);
  if (unsayable !== undefined) return unsayable;
  const taken = findTaken(bound, addRequest, { services, superseded });
  if (taken !== undefined) return taken;
  if (signal.aborted) return busy(bound.claim, "the ADD was cancelled or took too long; try again");
  return commitAttachment(addRequest, services, {
    source: bound.claim === undefined ? "ranges" : "claim",
    ...(bound.claim === undefined ? {} : { claim: bound.claim }),
    result: {
      addresses: bound.addresses,
      routes: bound.routes.length > 0 ? bound.routes : addRequest.ipam.routes,
      dns: Object.keys(bound.dns).length > 0 ? bound.dns : addRequest.dns,
    },
    superseded,
  });
}

/** A result of before 0.3.0 has one address of each family: the others would be left out of it. */
function beyondVersion(
  { addresses, claim = "" }: ClaimResult,
  { version, interface: name }: AddRequest,
): Refusal | undefined {
  const families = new Set(addresses.map(({ address }) => familyOf(address)));
  if (atLeast(version, "0.3.0") || families.size === addresses.length) return undefined;
  const words = `claim ${claim} has several addresses of one family for ${name}, which a result of cniVersion ${version} cannot say; write 0.3.0 or a newer one into the network's configuration`;
  return refuse("REQUEST_INVALID", words, { claim });
}

/**
 * The claim source counts this sandbox as attached, and it is not: the journal has that reported, as after a DEL. It is no DEL,
 * so the same ADD may come again.
 */
async function giveBack(
  { claim }: { readonly claim?: string | undefined },
  addRequest: PodAddRequest,
  services: AgentServices,
): Promise<void> {
  const { attachments, clock, bootId, detachReporter, log } = services;
  const known = attachments.get(addRequest);
  if (claim === undefined || known?.state === "attached") return;
  const deadlineNs = known?.deadlineNs ?? 0n;
  const tombstone = {
    ...tombstoneFor(addRequest, { now: clock.now(), deadlineNs, bootId }),
    claim,
    pod: addRequest.pod,
  };
  try {
    await attachments.commit({ put: [{ ...tombstone, source: "claim", noticePending: true }] });
    detachReporter.wake();
  } catch (error) {
    log.error("claim was not given back", { claim, containerID: addRequest.containerID, error });
  }
}
