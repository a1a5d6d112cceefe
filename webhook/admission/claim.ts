// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isAtRest } from "../../allocator/bind.ts";
import { type Claim, claimKey } from "../../allocator/claim.ts";
import { readClaimRequest } from "../../allocator/claim-request.ts";
import { isRefusal, type Refusal, refuse } from "../../allocator/errors.ts";
import { intentForClaim } from "../../allocator/intent.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";
import { describePreview, preview } from "../../allocator/preview.ts";
import { release } from "../../allocator/release.ts";
import { type Intent, reserve } from "../../allocator/reserve.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { type Desk, expectKind, namespaceOf, objectOf } from "./desk.ts";
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
    const claim = readClaimRequest(object);
    if (isRefusal(claim)) return denied(request.uid, claim);
    return await consider(desk, request, claim);
  };
}

async function consider(desk: Desk, request: AdmissionRequest, claim: Claim): Promise<AdmissionResponse> {
  const intent = await intentFor(desk, claim);
  const there = await desk.context.store.get("claim", claimKey(claim));
  const anew = request.operation === "CREATE" || desk.embedded !== undefined;
  if (there !== undefined && there.record.handMade !== true && anew) {
    return denied(request.uid, belongs(there.record));
  }
  if (desk.embedded === undefined || request.dryRun) {
    const would = await preview(desk.context, intent);
    if (isRefusal(would)) return denied(request.uid, would);
    return allowed(request.uid, request.dryRun ? [describePreview(`claim ${claimKey(claim)}`, would)] : []);
  }
  const refusal = await make(desk, claim, intent);
  return refusal === undefined ? allowed(request.uid) : denied(request.uid, refusal);
}

async function intentFor(desk: Desk, claim: Claim): Promise<Intent> {
  const { clock, random } = desk.context;
  const applicant = {
    standing: { kind: "named", claim: claim.name, identity: claim.identity } as const,
    request: {},
    namespace: await namespaceOf(desk.inventory, claim.namespace),
    podLabels: {},
    start: 0,
    token: random.token(),
    now: clock.now(),
  };
  return intentForClaim(applicant, claim);
}

/** Stores the claim, then reserves for it; a claim that cannot have its addresses does not stay. */
async function make(desk: Desk, claim: Claim, intent: Intent): Promise<Refusal | undefined> {
  const { store } = desk.context;
  const created = await store.create("claim", claim);
  const got = await reserve(desk.context, intent);
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
    if (seen === undefined || seen.record.releasing === true) return;
    const { interface: _, ...kept } = seen.record;
    const { identity, request, retention } = said;
    const where = said.interface === undefined ? {} : { interface: said.interface };
    const next = { ...kept, identity, request, retention, ...where };
    if (isDeepStrictEqual(next, seen.record)) return;
    if ((await store.replace("claim", seen, next)).kind === "replaced") return;
  }
}

function belongs(claim: Claim): Refusal {
  const key = claimKey(claim);
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} exists already and holds ${claim.addresses.join(", ")}; release it first, or choose another name`,
    {
      claim: key,
    },
  );
}

async function claimGone(
  desk: Desk,
  request: AdmissionRequest,
  object: KubeObject,
): Promise<AdmissionResponse> {
  const { namespace, name } = object.metadata;
  const seen = await desk.context.store.get("claim", claimKey({ namespace, name }));
  if (seen === undefined) return allowed(request.uid);
  const refusal = inUse(seen);
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
