// SPDX-License-Identifier: Apache-2.0
import { bind } from "../../allocator/bind.ts";
import { type Claim, claimKey } from "../../allocator/claim.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/dialects.ts";
import { isRefusal, type Refusal } from "../../allocator/errors.ts";
import type { KubeObject } from "../../allocator/kube-object.ts";
import { lendSlot } from "../../allocator/lend.ts";
import type { Labels } from "../../allocator/ports.ts";
import { describePreview } from "../../allocator/preview.ts";
import { type Reserved, reserve } from "../../allocator/reserve.ts";
import type { LabelExpression } from "../../allocator/selector.ts";
import { applicantOf, isExempt, previewWish, type Wish, wishOf } from "../../allocator/wish.ts";
import { confirmClaim } from "./arrival.ts";
import { type Desk, expectKind, type Keeper, namespaceOf, objectOf } from "./desk.ts";
import { ASSIGNED } from "./opt-in.ts";
import { addNodeAffinity, annotate, type PatchOp, pointer, prove } from "./patch.ts";
import { rewritten, unclaimed } from "./pod-guard.ts";
import { withAccess } from "./pool-access.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
  type Operation,
  patched,
} from "./review.ts";

/** `/mutate/pods`: reserves what a pod asks for, or finds its claim, and writes both into the pod. */
export function mutatePods(desk: Desk): Handler {
  return async (request) => {
    if (request.operation !== "CREATE" || request.subResource !== "") return allowed(request.uid);
    const pod = objectOf(request, "object");
    if (isRefusal(pod)) return denied(request.uid, pod);
    const wrong = expectKind(pod, ["Pod"]);
    if (wrong !== undefined) return denied(request.uid, wrong);
    return isExempt(pod) ? allowed(request.uid) : await decide(desk, request, pod);
  };
}

async function decide(desk: Desk, request: AdmissionRequest, pod: KubeObject): Promise<AdmissionResponse> {
  const namespace = await namespaceOf(desk.inventory, pod.metadata.namespace);
  const applicant = await applicantOf(desk.context, desk.inventory, pod, namespace);
  if (isRefusal(applicant)) return denied(request.uid, applicant);
  const plain = await wishOf(desk.context, applicant);
  if (plain === undefined) return answer(request, pod, {});
  if (isRefusal(plain)) return denied(request.uid, plain);
  const wish = await permitted(desk, pod, plain);
  return request.dryRun ? await rehearse(desk, request, wish) : await admit(desk, request, pod, wish);
}

/** The wish, with the pools that the pod's service account may use. */
async function permitted(desk: Desk, pod: KubeObject, wish: Wish): Promise<Wish> {
  const { namespace } = pod.metadata;
  if (wish.kind === "any") return { ...wish, slots: await withAccess(desk, namespace, pod.spec, wish.slots) };
  const [intent = wish.intent] = await withAccess(desk, namespace, pod.spec, [wish.intent]);
  return { ...wish, intent };
}

async function rehearse(desk: Desk, request: AdmissionRequest, wish: Wish): Promise<AdmissionResponse> {
  const { context, inventory } = desk;
  const would = await previewWish(context, inventory, wish);
  if (isRefusal(would)) return denied(request.uid, would);
  return allowed(request.uid, [describePreview("this pod", would)]);
}

async function admit(
  desk: Desk,
  request: AdmissionRequest,
  pod: KubeObject,
  wish: Wish,
): Promise<AdmissionResponse> {
  const got = await reserveFor(desk, pod.metadata.namespace, wish);
  if (isRefusal(got)) return denied(request.uid, got);
  const { record } = got.claim;
  const token = record.binding?.node === "" ? record.binding.token : "";
  const assigned = {
    [ASSIGNED_CLAIM]: record.name,
    [ASSIGNED_ADDRESSES]: record.addresses.join(","),
    ...(token === "" ? {} : { [ASSIGNED_TOKEN]: token }),
  };
  return answer(request, pod, assigned, nodesOf(desk, record));
}

/** What has its claim already takes nothing that is to be counted. */
async function reserveFor(
  { context, inventory, holds }: Desk,
  namespace: string,
  wish: Wish,
): Promise<Reserved | Refusal> {
  const intents = wish.kind === "one" ? [wish.intent] : wish.slots;
  const make = () =>
    wish.kind === "one" ? reserve(context, wish.intent) : lendSlot(context, inventory, wish.slots);
  const isThere = intents.every(({ key }) => context.view.claim(claimKey(key)) !== undefined);
  return holds === undefined || isThere ? await make() : await holds.during(namespace, make);
}

/** The nodes where every address of the claim is routed, from the selectors of its pools. */
function nodesOf(desk: Desk, claim: Claim): LabelExpression[] {
  const pools = new Set(claim.addresses.flatMap((address) => desk.context.view.poolOf(address) ?? []));
  return [...pools].flatMap((pool) => [
    ...Object.entries(pool.spec.nodeSelector?.matchLabels ?? {}).map(
      ([key, value]): LabelExpression => ({ key, operator: "In", values: [value] }),
    ),
    ...(pool.spec.nodeSelector?.matchExpressions ?? []),
  ]);
}

/**
 * The patch, proven on the object before it is sent. Assigned annotations that the pod brought along, from a template
 * or copied from another pod, go: they are ours to write and nobody's to inherit.
 */
function answer(
  request: AdmissionRequest,
  pod: KubeObject,
  assigned: Labels,
  nodes: readonly LabelExpression[] = [],
): AdmissionResponse {
  const { annotations } = pod.metadata;
  const brought = Object.keys(annotations).filter(
    (key) => ASSIGNED.includes(key) && assigned[key] === undefined,
  );
  const own = Object.entries(annotations).filter(([key]) => !ASSIGNED.includes(key));
  const written: PatchOp[] =
    brought.length > 0
      ? [
          {
            op: "replace",
            path: pointer("metadata", "annotations"),
            value: { ...Object.fromEntries(own), ...assigned },
          },
        ]
      : annotate(pod.json.at("metadata").get("annotations") as Labels | undefined, assigned);
  const ops = [...written, ...addNodeAffinity(pod.json.value, nodes)];
  prove(pod.json.value, ops);
  return patched(request.uid, ops);
}

/**
 * `/validate/pods`: that a pod which asks for an address has a claim, and keeps it. On the embedded stack this is also
 * where the pod comes to be, with its name and uid, and where it ends; in a cluster the binder hears of both from its
 * watch.
 */
export function validatePods(desk: Desk): Handler {
  return async (request) => {
    if (request.subResource !== "") return allowed(request.uid);
    return desk.embedded === undefined
      ? await guardPod(desk, request)
      : await podMade(desk, desk.embedded, request);
  };
}

async function podMade(desk: Desk, keeper: Keeper, request: AdmissionRequest): Promise<AdmissionResponse> {
  if (request.operation === "DELETE") return await podGone(desk, keeper, request);
  const pod = objectOf(request, "object");
  if (isRefusal(pod)) return denied(request.uid, pod);
  const wrong = expectKind(pod, ["Pod"]) ?? (await unclaimed(desk, pod));
  if (wrong !== undefined) return denied(request.uid, wrong);
  if (request.dryRun) return allowed(request.uid);
  const refusal = (await meet(desk, pod)) ?? (await keepPod(desk, keeper, request.operation, pod));
  return refusal === undefined ? allowed(request.uid) : denied(request.uid, refusal);
}

async function guardPod(desk: Desk, request: AdmissionRequest): Promise<AdmissionResponse> {
  if (request.operation !== "CREATE" && request.operation !== "UPDATE") return allowed(request.uid);
  const pod = objectOf(request, "object");
  if (isRefusal(pod)) return denied(request.uid, pod);
  const wrong = expectKind(pod, ["Pod"]) ?? (await objection(desk, request, pod));
  return wrong === undefined ? allowed(request.uid) : denied(request.uid, wrong);
}

async function objection(
  desk: Desk,
  request: AdmissionRequest,
  pod: KubeObject,
): Promise<Refusal | undefined> {
  // a rehearsal gives the pod no claim
  if (request.operation === "CREATE") return request.dryRun ? undefined : await unclaimed(desk, pod);
  const before = objectOf(request, "oldObject");
  return isRefusal(before) ? before : rewritten(before, pod);
}

async function keepPod(
  { context }: Desk,
  keeper: Keeper,
  operation: Operation,
  pod: KubeObject,
): Promise<Refusal | undefined> {
  await keeper.keep(pod);
  const lost = operation === "CREATE" ? await confirmClaim(context, pod) : undefined;
  if (lost !== undefined) await keeper.forget("Pod", pod.metadata.namespace, pod.metadata.name);
  return lost;
}

/** Finds the claim that was promised to the pod, and tells it the pod's name. */
async function meet(desk: Desk, pod: KubeObject): Promise<Refusal | undefined> {
  const { namespace, name, uid, annotations } = pod.metadata;
  const claim = annotations[ASSIGNED_CLAIM];
  const token = annotations[ASSIGNED_TOKEN];
  if (claim === undefined || token === undefined) return undefined;
  const bindee = { name, uid, token, node: "" };
  const met = await bind(desk.context, claimKey({ namespace, name: claim }), bindee, async () => ({
    fenced: false,
    promiseOver: false,
  }));
  return isRefusal(met) ? met : undefined;
}

async function podGone(desk: Desk, keeper: Keeper, request: AdmissionRequest): Promise<AdmissionResponse> {
  const pod = objectOf(request, "oldObject");
  const { namespace, name } = isRefusal(pod) ? request : pod.metadata;
  if (request.dryRun) return allowed(request.uid);
  await keeper.forget("Pod", namespace, name);
  for (const { record } of desk.context.view.claims()) {
    const its = record.namespace === namespace && (record.name === name || record.binding?.podName === name);
    if (its) desk.suspect(record);
  }
  return allowed(request.uid);
}
