// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { describeDryRun, dryRun } from "../../allocator/demand/allocation-dry-run.ts";
import { requestFromSpec } from "../../allocator/demand/build-request.ts";
import { type AllocationRequest, takingOver } from "../../allocator/lifecycle/allocation-request.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { isOwnClaim } from "../../allocator/lifecycle/claim-conflicts.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { readClaimRequest, unknownClaimField } from "../../allocator/manifest/claim-spec.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { type NamespaceState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
} from "../review/admission-review.ts";
import { type AdmissionContext, expectKind, objectOf } from "./admission-context.ts";
import { readClaimUpdate } from "./claim-update.ts";
import { warnMadeAgain, warnPodOfName, warnUnserved } from "./claim-warnings.ts";
import { isSlotByHand } from "./slot-names.ts";
import { unknownIn } from "./unknown-keys.ts";

/**
 * `/validate/claims`: claims that people make by hand, to have an address before anything exists that wants it. On
 * the embedded stack it is reserved there and then; in a cluster a controller does, once the claim is stored.
 */
export function validateClaims(admission: AdmissionContext): Handler {
  return async (request) => {
    if (request.subResource !== "") return allowed(request.uid);
    const object = claimOf(request);
    if (isRefusal(object)) return denied(request.uid, object);
    if (request.operation === "DELETE") return await onClaimDeleted(admission, request, object);
    if (request.operation === "UPDATE" && admission.embedded === undefined) {
      return await updateClaim(admission, request, object);
    }
    // the API server of a cluster holds a claim to its schema
    const unknown = admission.embedded === undefined ? undefined : unknownClaimField(object);
    const claim = unknown ?? readClaimRequest(object);
    if (isRefusal(claim)) return denied(request.uid, claim);
    return await consider(admission, request, claim);
  };
}

function claimOf(request: AdmissionRequest): KubeObject | Refusal {
  const object = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
  if (isRefusal(object)) return object;
  return expectKind(object, ["IPClaim"]) ?? unknownIn(request, object, "IPClaim") ?? object;
}

async function consider(
  admission: AdmissionContext,
  request: AdmissionRequest,
  claim: Claim,
): Promise<AdmissionResponse> {
  const namespace = await namespaceOf(admission.inventory, claim.namespace);
  const there = await admission.context.store.get("claim", claimKey(claim));
  const asked = allocationFor(admission, claim, namespace);
  const allocation =
    admission.embedded === undefined || there === undefined
      ? asked
      : await asSuccessor(admission.context.store, asked, { claim, there: there.record });
  const unserved = warnUnserved(claim);
  if (there !== undefined && there.record.handMade !== true) {
    return denied(request.uid, isOwnClaim(there.record));
  }
  const slots = there === undefined ? await isSlotByHand(admission, claim) : undefined;
  if (slots !== undefined) return denied(request.uid, slots);
  if (admission.embedded === undefined) {
    return await dryRunOf(admission, request, claim, {
      allocation,
      warnings: unserved.length > 0 ? unserved : await warnPodOfName(admission.inventory, namespace, claim),
    });
  }
  if (request.dryRun) return await dryRunOf(admission, request, claim, { allocation, warnings: unserved });
  const refusal = await make(admission, claim, allocation);
  return refusal === undefined ? allowed(request.uid, unserved) : denied(request.uid, refusal);
}

/** Whether the claim could have its addresses now; told in words to a rehearsal. */
async function dryRunOf(
  admission: AdmissionContext,
  request: AdmissionRequest,
  claim: Claim,
  about: { readonly allocation: AllocationRequest; readonly warnings: readonly string[] },
): Promise<AdmissionResponse> {
  const would = await dryRun(admission.context, about.allocation);
  if (isRefusal(would)) return denied(request.uid, would);
  const warnings = request.dryRun ? [describeDryRun(`claim ${claimKey(claim)}`, would)] : [];
  return allowed(request.uid, [...about.warnings, ...warnings]);
}

/** A claim that is stored already, changed by a person: what is asked for may change while no pod has the addresses. */
async function updateClaim(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<AdmissionResponse> {
  const before = objectOf(request, "oldObject");
  if (isRefusal(before)) return denied(request.uid, before);
  const amendment = readClaimUpdate(before, object);
  if (isRefusal(amendment)) return denied(request.uid, amendment);
  const { claim, asksAnew, warnings } = amendment;
  if (!asksAnew) return allowed(request.uid, warnings);
  const namespace = await namespaceOf(admission.inventory, claim.namespace);
  return await dryRunOf(admission, request, claim, {
    allocation: allocationFor(admission, claim, namespace),
    warnings: [...warnings, ...warnUnserved(claim)],
  });
}

function allocationFor(
  admission: AdmissionContext,
  claim: Claim,
  namespace: NamespaceState,
): AllocationRequest {
  const { clock, random } = admission.context;
  return requestFromSpec(claim, namespace, { token: random.token(), now: clock.now() });
}

/**
 * Where no controller does it, a hand-over that was broken off is finished by the next review of the new claim, also if that does not
 * say again from whom it takes over. Only a hand-over leaves reservations of a claim that is gone as they are: it was seen unused.
 */
async function asSuccessor(
  store: Store,
  asked: AllocationRequest,
  { claim, there }: { readonly claim: Claim; readonly there: Claim },
): Promise<AllocationRequest> {
  const name = claim.takesOver ?? there.takesOver;
  if (name === undefined || there.nonce !== "" || !isDeepStrictEqual(claim.request, there.request))
    return asked;
  const from = claimKey({ namespace: claim.namespace, name });
  if ((await store.get("claim", from)) !== undefined) return asked;
  return takingOver(asked, { name, wasUnused: true });
}

/** Stores the claim, then reserves for it; a claim that cannot have its addresses does not stay. */
async function make(
  admission: AdmissionContext,
  claim: Claim,
  allocation: AllocationRequest,
): Promise<Refusal | undefined> {
  const { store } = admission.context;
  const created = await store.create("claim", claim);
  if (created.kind === "exists" && created.stored.record.handMade !== true)
    return isOwnClaim(created.stored.record);
  const wanted = { ...allocation, userRequested: true } as const;
  const got = await reserve(admission.context, wanted, "pod").catch(async (fault: unknown) => {
    if (created.kind === "created") await giveUp(admission.context, created.stored);
    throw fault;
  });
  if (isRefusal(got)) {
    if (created.kind === "created") await store.remove("claim", created.stored);
    return got;
  }
  if (created.kind === "exists") await rewrite(store, got.claim.key, claim);
  return undefined;
}

/**
 * After a fault, when nobody knows how far it came: nobody would reserve later for a claim without addresses. One that has some
 * stays, as what its author asked for: another call may have been told so.
 */
async function giveUp(context: Context, made: Stored<"claim">): Promise<void> {
  try {
    const left = await context.store.get("claim", made.key);
    if (left?.uid === made.uid && left.record.nonce === "") await context.store.remove("claim", left);
  } catch (error) {
    context.log.warn("claim by hand stays after a fault", { claim: made.key, error });
  }
}

/** `reserve` leaves what a person wrote as it is; this is the person, writing it anew. */
async function rewrite(store: Store, key: string, said: Claim): Promise<void> {
  await retryOnConflict(store, { kind: "claim", key, doing: "it was written" }, async (seen) => {
    if (seen?.record.handMade !== true || seen.record.releasing === true) return;
    const { interface: _, takesOver: __, ...kept } = seen.record;
    const { identity, request, retention } = said;
    const where = {
      ...(said.interface === undefined ? {} : { interface: said.interface }),
      ...(said.takesOver === undefined ? {} : { takesOver: said.takesOver }),
    };
    const next = { ...kept, identity, request, retention, ...where };
    if (isDeepStrictEqual(next, seen.record)) return;
    const { kind } = await store.replace("claim", seen, next);
    return kind === "replaced" ? undefined : kind;
  });
}

/**
 * The API server deletes exactly the claim that it shows here or a later one that it shows again (its deletion compares
 * and sets), and what is read now is that one or a later one: a claim that is bound meanwhile is not deleted.
 */
async function onClaimDeleted(
  admission: AdmissionContext,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<AdmissionResponse> {
  const { namespace, name } = object.metadata;
  const seen = await admission.context.store.get("claim", claimKey({ namespace, name }));
  if (seen === undefined) return allowed(request.uid);
  const fenced =
    !isDetached(seen.record) && (await admission.inventory.fenced(seen.record.binding?.node ?? ""));
  const refusal = fenced ? undefined : inUse(seen, admission);
  if (refusal !== undefined) return denied(request.uid, refusal);
  if (admission.embedded === undefined)
    return allowed(request.uid, await warnMadeAgain(admission.inventory, seen));
  if (!request.dryRun) await release(admission.context, seen);
  return allowed(request.uid);
}

function inUse(
  { key, record }: Stored<"claim">,
  { onHosts = false, context }: AdmissionContext,
): Refusal | undefined {
  if (isDetached(record)) return undefined;
  const { podName: pod = "", node = "" } = record.binding ?? {};
  const isGone = context.view.podIsGone?.(record.namespace, pod) === true;
  const words = onHosts
    ? `${pod} on host ${node}; stop the container first`
    : `pod ${pod} on node ${node}; ${isGone ? "the pod is deleted: stop its container first" : "delete the pod first"}`;
  return refuse("CLAIM_BUSY", `claim ${key} is in use by ${words}`, { claim: key, pod });
}
