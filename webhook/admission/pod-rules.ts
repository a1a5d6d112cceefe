// SPDX-License-Identifier: Apache-2.0
// What must be true of a pod that is created or changed, in a cluster and on one host.

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { sameSet } from "../../allocator/base/same-set.ts";
import type { Context } from "../../allocator/cache/context.ts";
import {
  admissionAnswerOf,
  defaultsAsAnswered,
  requestAsAnswered,
} from "../../allocator/demand/admitted-pod.ts";
import { keysOfOwn, type OwnAnnotations, ownAnnotations } from "../../allocator/demand/foreign-pools.ts";
import { givenElsewhere } from "../../allocator/demand/given-elsewhere.ts";
import { ownMacsOfNetworks } from "../../allocator/demand/own-macs.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, readRequest } from "../../allocator/manifest/annotations.ts";
import {
  addressKeysIn,
  choiceFor,
  dialectKeysIn,
  isReadWith,
  isWrittenBySystem,
  withoutUnread,
} from "../../allocator/manifest/dialects.ts";
import { type KubeObject, podMetadata } from "../../allocator/manifest/kubernetes-object.ts";
import { NETWORKS, networkAttachments } from "../../allocator/manifest/network-attachments.ts";
import { ASSIGNED } from "../../allocator/manifest/opt-in.ts";
import { OWN_REQUESTS, unknownKey } from "../../allocator/manifest/own-keys.ts";
import { requestsAddress, requestsNothing } from "../../allocator/model/address-request.ts";
import { type Claim, claimKey, isReserved } from "../../allocator/model/claim.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import { formatHolding, namesOf, parseAddresses } from "../../allocator/model/interfaces.ts";
import { groupOf } from "../../allocator/model/workload-kinds.ts";
import { unconstrained } from "../../allocator/planning/named-addresses.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { ownOf } from "./foreign-review.ts";

/** An opted-in pod that did not pass the mutating webhook would start without its address, or wait for ever. */
export async function missingClaim(
  admission: AdmissionContext,
  given: KubeObject,
): Promise<Refusal | undefined> {
  const { metadata } = given;
  const pod = {
    ...given,
    metadata: { ...metadata, annotations: withoutUnread(metadata.annotations, admission.dialects) },
  };
  const { namespace, name, annotations } = pod.metadata;
  if (isExempt(pod)) return undefined;
  const wasAsked = Object.hasOwn(annotations, ASSIGNED_CLAIM);
  const space = await namespaceOf(admission.inventory, namespace);
  const own = await ownOf(admission, annotations, space);
  const contradiction = wasAsked ? await contradicted(admission, pod, own) : undefined;
  if (contradiction !== undefined) return contradiction;
  const request = readRequest(own.annotations, own.namespace, "macs");
  if (requestsNothing(request)) return await outdated(admission.context, pod);
  if (wasAsked) return undefined;
  const remedy =
    admission.embedded === undefined
      ? "another webhook added the annotation after Berth was asked; write it into the pod itself"
      : "Berth was not asked before; use: berthctl apply -f FILE";
  return refuse(
    "CLAIM_MISSING",
    `pod ${namespace}/${name} asks for an address and no claim was made for it; ${remedy}`,
    { namespace, pod: name },
  );
}

/**
 * A pod that asks for something else than what it was given: another webhook changed its request after Berth was asked,
 * and it would start with the old one (invariant 7). What its namespace says may have changed since, and does not count.
 */
async function contradicted(
  { context, inventory }: AdmissionContext,
  pod: KubeObject,
  own: OwnAnnotations,
): Promise<Refusal | undefined> {
  const { namespace, name, annotations } = pod.metadata;
  const alone = readRequest(own.annotations);
  // a MAC address of the first interface stands beside what its namespace asks for that
  const request = isRefusal(alone) ? readRequest(own.annotations, own.namespace) : alone;
  if (isRefusal(request)) return request;
  if (!requestsAddress(request)) return undefined;
  const claim = annotations[ASSIGNED_CLAIM] ?? "";
  const answer = admissionAnswerOf(annotations);
  const space = {
    ...own.namespace,
    annotations: defaultsAsAnswered(context.view, own.annotations, answer, request.entries !== undefined),
  };
  const of = { pod: { ...podMetadata(pod, namespace), annotations: own.annotations }, namespace: space };
  const allocation = answer && (await requestAsAnswered(context, inventory, { ...of, answer }));
  if (isRefusal(allocation)) return allocation;
  if (answer !== undefined && allocation !== undefined)
    return unconstrained(context.view, allocation.constraints, answer.addresses);
  return refuse(
    "CLAIM_CHANGED",
    `pod ${namespace}/${name} was given claim ${claim} at its admission, which is not that of the pod as it is now: it was changed after berth was asked; write the change into the pod itself`,
    { claim: `${namespace}/${claim}`, pod: name },
  );
}

/**
 * A pod that asks for nothing was given what the claim of its name had, by a replica whose copy may have been behind: nothing
 * would ever give it that address. The copy here is asked first, and what both copies missed is said when the pod is to be bound.
 */
async function outdated(
  { view, store }: Context,
  { metadata: { namespace, annotations } }: KubeObject,
): Promise<Refusal | undefined> {
  const answer = admissionAnswerOf(annotations);
  if (answer === undefined || answer.token !== "") return undefined;
  const key = claimKey({ namespace, name: answer.claim });
  const isAsAssigned = (claim: Claim | undefined) =>
    claim === undefined || !isReserved(claim) || sameSet(answer.words, formatHolding(claim));
  if (isAsAssigned(view.claim(key)?.record)) return undefined;
  const now = (await store.get("claim", key))?.record;
  return now === undefined || isAsAssigned(now) ? undefined : movedOn(now, answer.words);
}

/** The pod asks for nothing itself, and what its claim has was changed by another pod of the name. */
export function movedOn(claim: Claim, assigned: readonly string[]): Refusal {
  const key = claimKey(claim);
  const words = `claim ${key} holds ${formatHolding(claim).join(", ")} now, and this pod was given ${assigned.join(", ")} while another one of its name was on its way; create it again`;
  return refuse("CLAIM_CHANGED", words, { claim: key, address: assigned.join(",") });
}

/** What Berth wrote into a pod says which claim it has, for as long as it lives. */
export function assignedChanged(before: KubeObject, now: KubeObject): Refusal | undefined {
  const { namespace, name, annotations } = now.metadata;
  const key = ASSIGNED.find((one) => annotations[one] !== before.metadata.annotations[one]);
  if (key === undefined) return undefined;
  return refuse(
    "OBJECT_INVALID",
    `annotation ${key} of pod ${namespace}/${name} is written by berth when the pod is created and stays; leave it as it is`,
    { namespace, pod: name, annotation: key },
  );
}

/** What a pod asks for is read once. A change would do nothing, and must not look as if it did. */
export function changed(
  known: Pick<Context, "view"> & { readonly dialects: Context["dialects"] | undefined },
  before: KubeObject,
  now: KubeObject,
): Refusal | undefined {
  if (isExempt(now)) return undefined;
  const { namespace, name, annotations } = now.metadata;
  const had = before.metadata.annotations;
  const key = changedRequest(known, had, now);
  if (key !== undefined)
    return refuse(
      "REQUEST_INVALID",
      `annotation ${key} of pod ${namespace}/${name} is read when the pod is created, and a change would do nothing; ${remedyFor(now)}`,
      { namespace, pod: name, annotation: key },
    );
  const added = Object.entries(annotations).filter(([one, value]) => had[one] !== value);
  return (
    unknownKey("Pod", annotations, had) ??
    givenElsewhere(known.view, Object.fromEntries(added), known.dialects)
  );
}

/** The first of the annotations whose change would be for Berth to answer. */
function changedRequest(
  { view, dialects }: Parameters<typeof changed>[0],
  had: Labels,
  { metadata: { annotations, namespace } }: KubeObject,
): string | undefined {
  const isAnswered = (key: string) => choiceFor(dialects, key) === "all";
  const ofOwn = [had, annotations].flatMap((one) => keysOfOwn(view, one, namespace));
  // without a claim it is another system's pod, and that system's annotation, unless it asks for what is Berth's to answer
  const others = Object.hasOwn(had, ASSIGNED_CLAIM)
    ? addressKeysIn({ ...had, ...annotations })
    : dialectKeysIn(annotations).filter(isAnswered);
  const isRead = isReadWith(dialects);
  // what a system has written itself is no request, nor is that it takes it away again
  const askedIn = (all: Labels) => (one: string) => (isWrittenBySystem(one, all) ? undefined : all[one]);
  const [now, before] = [askedIn(annotations), askedIn(had)];
  const said = [...others, ...ofOwn].filter(isRead);
  const keys = [...OWN_REQUESTS, ...said].filter((one) => now(one) !== before(one));
  return keys.find(
    (one) => one !== NETWORKS || !keepsNetworks({ view, dialects }, { had, now: annotations, namespace }),
  );
}

/**
 * Networks may come and go while a pod runs, as long as it asks for the same and the interfaces that have addresses of Berth's stay of the
 * same networks.
 */
function keepsNetworks(
  { view, dialects }: Parameters<typeof changed>[0],
  { had, now, namespace }: { readonly had: Labels; readonly now: Labels; readonly namespace: string },
): boolean {
  if (!isDeepStrictEqual(ownMacsOfNetworks(view, had), ownMacsOfNetworks(view, now))) return false;
  const space = { name: namespace, labels: {}, annotations: {} };
  const [before, after] = [had, now].map((all) =>
    readRequest(ownAnnotations(view, all, space, dialects).annotations, space, "macs"),
  );
  if (before === undefined || after === undefined || isRefusal(before) || isRefusal(after)) return false;
  if (!isDeepStrictEqual(before, after)) return false;
  const { interfaces = {} } = parseAddresses((had[ASSIGNED_ADDRESSES] ?? "").split(","));
  const [were, are] = [had, now].map(
    (all) => new Map(networkAttachments(all, namespace).map((one) => [one.interface, one.network])),
  );
  return namesOf(interfaces).every((name) => were?.get(name) === are?.get(name));
}

/** Where OpenKruise's kinds say that a changed template is written into the pods that are there: kind -> what to write in its place. */
const IN_PLACE: ReadonlyMap<string, string> = new Map([
  ["CloneSet", "set spec.updateStrategy.type to ReCreate"],
  ["StatefulSet", "set spec.updateStrategy.rollingUpdate.podUpdatePolicy to ReCreate"],
  ["DaemonSet", "set spec.updateStrategy.rollingUpdate.rollingUpdateType to Standard"],
]);

function remedyFor({ metadata: { owner } }: KubeObject): string {
  if (owner === undefined) return "delete the pod and create it again with what you want";
  const { kind, name, apiVersion } = owner;
  const remedy = groupOf(apiVersion) === "apps.kruise.io" ? IN_PLACE.get(kind) : undefined;
  return remedy === undefined
    ? `change it in the template that ${kind} ${name} makes its pods from`
    : `change it in the template of ${kind} ${name}, which cannot update its pods in place by it: ${remedy}, or delete its pods one by one`;
}
