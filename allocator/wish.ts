// SPDX-License-Identifier: Apache-2.0
import { type Claim, claimKey, isReserved } from "./claim.ts";
import type { Context } from "./context.ts";
import { EXEMPT_NAMESPACE, readRequest, withDefaults } from "./dialects.ts";
import { isRefusal, type Refusal } from "./errors.ts";
import { type PodStanding, standingOf } from "./identity.ts";
import { type Applicant, intentForClaim, intentOf, slotIntents } from "./intent.ts";
import type { Inventory, NamespaceFacts } from "./inventory.ts";
import { type KubeObject, originOf } from "./kube-object.ts";
import { previewSlot } from "./lend.ts";
import { isNamesake } from "./objections.ts";
import { type Preview, preview } from "./preview.ts";
import { asksForAddress } from "./request.ts";
import type { Intent } from "./reserve.ts";
import { lookUpClaim } from "./view.ts";

/** On pods that kubelet made from a file: the API server refuses any change of theirs. */
export const MIRROR = "kubernetes.io/config.mirror";

/** One claim for the pod alone, or any of those that pods like it take over from each other. */
export type Wish =
  | { readonly kind: "one"; readonly intent: Intent }
  | { readonly kind: "any"; readonly slots: readonly Intent[] };

/** Pods that have no network of their own, or that no webhook may touch. */
export function isExempt(pod: KubeObject): boolean {
  return (
    pod.spec.flag("hostNetwork") ||
    Object.hasOwn(pod.metadata.annotations, MIRROR) ||
    pod.metadata.namespace === EXEMPT_NAMESPACE
  );
}

/** Everything that decides about the pod: what it says itself, what its namespace says, and whose it is. */
export async function applicantOf(
  context: Pick<Context, "clock" | "random">,
  inventory: Pick<Inventory, "workload">,
  pod: KubeObject,
  namespace: NamespaceFacts,
): Promise<Applicant | Refusal> {
  const request = readRequest(withDefaults(pod.metadata.annotations, namespace));
  if (isRefusal(request)) return request;
  const standing = standingOf(originOf(pod, namespace.name));
  return {
    standing,
    request,
    namespace,
    podLabels: pod.metadata.labels,
    start: await startOf(inventory, standing, namespace.name),
    token: context.random.token(),
    now: context.clock.now(),
  };
}

async function startOf(
  inventory: Pick<Inventory, "workload">,
  standing: PodStanding,
  namespace: string,
): Promise<number> {
  if (standing.kind !== "named" || standing.identity.kind !== "StatefulSet") return 0;
  const workload = await inventory.workload("StatefulSet", namespace, standing.identity.name);
  return workload === undefined || workload === "unknown" ? 0 : workload.start;
}

/** What the pod is to be given; undefined when it asks for nothing and no claim waits for it. */
export async function wishOf(
  context: Pick<Context, "view" | "store">,
  applicant: Applicant,
): Promise<Wish | Refusal | undefined> {
  const { standing, request } = applicant;
  if (!asksForAddress(request)) {
    const waiting = await waitingClaim(context, applicant);
    if (waiting === undefined) return undefined;
    return { kind: "one", intent: { ...intentForClaim(applicant, waiting), followsClaim: "any" } };
  }
  const workload = sharerOf(standing);
  if (workload !== undefined && request.entries !== undefined) {
    return { kind: "any", slots: slotIntents(applicant, workload) };
  }
  const intent = intentOf(applicant);
  if (isRefusal(intent)) return intent;
  // A Job's next pod takes over from the last one as the next pod of a set does.
  const takesOver = standing.kind === "named" && standing.byToken === true;
  return takesOver ? { kind: "any", slots: [intent] } : { kind: "one", intent };
}

/** Whose pods share a list of addresses: a name such as CloneSets give does not say which entry is the pod's. */
function sharerOf(standing: PodStanding): string | undefined {
  if (standing.kind === "set") return standing.workload;
  return standing.identity.kind === "CloneSet" ? standing.identity.name : undefined;
}

/**
 * A claim of the pod's name, made by hand or kept from before, speaks for a pod that asks for nothing. It may have
 * been made a moment ago, and a pod that missed it would start with another address.
 */
async function waitingClaim(
  context: Pick<Context, "view" | "store">,
  { standing, namespace }: Applicant,
): Promise<Claim | undefined> {
  if (standing.kind !== "named") return undefined;
  const key = claimKey({ namespace: namespace.name, name: standing.claim });
  const claim = (await lookUpClaim(context, key))?.record;
  if (claim === undefined || claim.releasing === true) return undefined;
  if (isNamesake(claim, standing.identity)) return undefined;
  return claim.handMade === true || isReserved(claim) ? claim : undefined;
}

/** What would come of the wish now; writes nothing. */
export async function previewWish(
  context: Context,
  inventory: Inventory,
  wish: Wish,
): Promise<Preview | Refusal> {
  return wish.kind === "one"
    ? await preview(context, wish.intent)
    : await previewSlot(context, inventory, wish.slots);
}
