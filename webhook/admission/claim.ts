// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isAtRest } from "../../allocator/bind.ts";
import { type Claim, claimKey } from "../../allocator/claim.ts";
import { readClaimRequest } from "../../allocator/claim-request.ts";
import { isRefusal, type Refusal, refuse } from "../../allocator/errors.ts";
import { intentAsWritten } from "../../allocator/intent.ts";
import type { NamespaceFacts } from "../../allocator/inventory.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";
import { belongs } from "../../allocator/objections.ts";
import { describePreview, preview } from "../../allocator/preview.ts";
import { release } from "../../allocator/release.ts";
import { type Intent, reserve } from "../../allocator/reserve.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { readAmendment } from "./claim-amendment.ts";
import { type Desk, expectKind, namespaceOf, objectOf } from "./desk.ts";
import { unseenPod } from "./opt-in.ts";
import { type AdmissionRequest, type AdmissionResponse, allowed, denied, type Handler } from "./review.ts";

/**
 * `/validate/claims`: claims that people make by hand, to have an address before anything exists that wants it. On
 * the embedded stack it is reserved there and then; in a cluster a controller does, once the claim is stored.
 */
export function validateClaims(desk: Desk): Handler {
  return async (request) => {
    if (request.subResource !== "") return allowed(request.uid);
    const object = objectOf(request, request.operation === "DELETE" ? "oldObject" : "object");
    if (isRefusal(object)) return denied(request.uid, object);
    const wrong = expectKind(object, ["IPClaim"]);
    if (wrong !== undefined) return denied(request.uid, wrong);
    if (request.operation === "DELETE") return await claimGone(desk, request, object);
    if (request.operation === "UPDATE" && desk.embedded === undefined) {
      return await amend(desk, request, object);
    }
    const claim = readClaimRequest(object);
    if (isRefusal(claim)) return denied(request.uid, claim);
    return await consider(desk, request, claim);
  };
}

async function consider(desk: Desk, request: AdmissionRequest, claim: Claim): Promise<AdmissionResponse> {
  const namespace = await namespaceOf(desk.inventory, claim.namespace);
  const intent = intentFor(desk, claim, namespace);
  const there = await desk.context.store.get("claim", claimKey(claim));
  if (there !== undefined && there.record.handMade !== true) {
    return denied(request.uid, belongs(there.record));
  }
  if (desk.embedded === undefined) {
    return await foretell(desk, request, claim, { intent, warnings: unseenPod(namespace, claim.name) });
  }
  if (request.dryRun) return await foretell(desk, request, claim, { intent, warnings: [] });
  const refusal = await make(desk, claim, intent);
  return refusal === undefined ? allowed(request.uid) : denied(request.uid, refusal);
}

/** Whether the claim could have its addresses now; told in words to a rehearsal. */
async function foretell(
  desk: Desk,
  request: AdmissionRequest,
  claim: Claim,
  about: { readonly intent: Intent; readonly warnings: readonly string[] },
): Promise<AdmissionResponse> {
  const would = await preview(desk.context, about.intent);
  if (isRefusal(would)) return denied(request.uid, would);
  const told = request.dryRun ? [describePreview(`claim ${claimKey(claim)}`, would)] : [];
  return allowed(request.uid, [...about.warnings, ...told]);
}

/** A claim that is stored already, changed by a person: what is asked for may change while no pod has the addresses. */
async function amend(desk: Desk, request: AdmissionRequest, object: KubeObject): Promise<AdmissionResponse> {
  const before = objectOf(request, "oldObject");
  if (isRefusal(before)) return denied(request.uid, before);
  const amendment = readAmendment(before, object);
  if (isRefusal(amendment)) return denied(request.uid, amendment);
  const { claim, asksAnew, warnings } = amendment;
  if (!asksAnew) return allowed(request.uid, warnings);
  const namespace = await namespaceOf(desk.inventory, claim.namespace);
  return await foretell(desk, request, claim, { intent: intentFor(desk, claim, namespace), warnings });
}

function intentFor(desk: Desk, claim: Claim, namespace: NamespaceFacts): Intent {
  const { clock, random } = desk.context;
  return intentAsWritten(claim, namespace, { token: random.token(), now: clock.now() });
}

/** Stores the claim, then reserves for it; a claim that cannot have its addresses does not stay. */
async function make(desk: Desk, claim: Claim, intent: Intent): Promise<Refusal | undefined> {
  const { store } = desk.context;
  const created = await store.create("claim", claim);
  if (created.kind === "exists" && created.stored.record.handMade !== true)
    return belongs(created.stored.record);
  const got = await reserve(desk.context, { ...intent, byHand: true });
  if (isRefusal(got)) {
    if (created.kind === "created") await store.remove("claim", created.stored);
    return got;
  }
  if (created.kind === "exists") await rewrite(store, got.claim.key, claim);
  return undefined;
}

/** `reserve` leaves what a person wrote as it is; this is the person, writing it anew. */
async function rewrite(store: Store, key: string, said: Claim): Promise<void> {
  for (;;) {
    const seen = await store.get("claim", key);
    if (seen?.record.handMade !== true || seen.record.releasing === true) return;
    const { interface: _, ...kept } = seen.record;
    const { identity, request, retention } = said;
    const where = said.interface === undefined ? {} : { interface: said.interface };
    const next = { ...kept, identity, request, retention, ...where };
    if (isDeepStrictEqual(next, seen.record)) return;
    if ((await store.replace("claim", seen, next)).kind === "replaced") return;
  }
}

/**
 * The API server deletes exactly the claim that it shows here or a later one that it shows again (its deletion compares
 * and sets), and what is read now is that one or a later one: a claim that is bound meanwhile is not deleted.
 */
async function claimGone(
  desk: Desk,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<AdmissionResponse> {
  const { namespace, name } = object.metadata;
  const seen = await desk.context.store.get("claim", claimKey({ namespace, name }));
  if (seen === undefined) return allowed(request.uid);
  const fenced = !isAtRest(seen.record) && (await desk.inventory.fenced(seen.record.binding?.node ?? ""));
  const refusal = fenced ? undefined : inUse(seen);
  if (refusal !== undefined) return denied(request.uid, refusal);
  if (desk.embedded !== undefined && !request.dryRun) await release(desk.context, seen);
  return allowed(request.uid);
}

function inUse({ key, record }: Stored<"claim">): Refusal | undefined {
  if (isAtRest(record)) return undefined;
  const pod = record.binding?.podName ?? "";
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} is in use by pod ${pod} on node ${record.binding?.node ?? ""}; delete the pod first`,
    {
      claim: key,
      pod,
    },
  );
}
