// SPDX-License-Identifier: Apache-2.0

import type { RecordReader } from "../../allocator/cache/reader.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import { isWaitingFor } from "../../allocator/lifecycle/claim-owner.ts";
import { ASSIGNED_CLAIM, readRequest } from "../../allocator/manifest/annotations.ts";
import { dialectKeysIn } from "../../allocator/manifest/dialects.ts";
import { type KubeObject, podState } from "../../allocator/manifest/kubernetes-object.ts";
import { OWN_REQUESTS } from "../../allocator/manifest/own-keys.ts";
import type { OwnReader } from "../../allocator/manifest/pod-claim.ts";
import { requestsNothing } from "../../allocator/model/address-request.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { bareNamespace } from "../../allocator/model/cluster-state.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Backend } from "../backend/backend.ts";
import { notForPod } from "./kept-for-name.ts";
import { SentForReview } from "./sent-for-review.ts";

/** A pod that asks Berth itself and was told no claim. */
export interface UnreviewedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** What it asks with, with commas between. */
  readonly keys: string;
  /** That it runs with, from wherever. */
  readonly addresses: readonly Address[];
  /** Absent: nobody makes it again. */
  readonly owner?: string;
}

/** What its annotations say of it; undefined: a review told it its claim, or it asks Berth for nothing. */
export function unreviewedPod(
  pod: KubeObject,
  addresses: readonly Address[],
  own: OwnReader,
): UnreviewedPod | undefined {
  const { namespace, name, uid, annotations, owner } = pod.metadata;
  if (annotations[ASSIGNED_CLAIM] !== undefined) return undefined;
  const read = own(annotations, bareNamespace(namespace)).annotations;
  const keys = [...OWN_REQUESTS.filter((key) => Object.hasOwn(read, key)), ...dialectKeysIn(read)];
  const request = readRequest(read);
  if (keys.length === 0 || requestsNothing(request)) return undefined;
  const whose = owner === undefined ? {} : { owner: `${owner.kind} ${owner.name}` };
  return { namespace, name, uid, keys: keys.join(", "), addresses, ...whose };
}

/** What of annotations is for Berth, and the pools that say so. */
interface Requests {
  readonly least: OwnReader;
  readonly view: Pick<RecordReader, "poolOf">;
}

/**
 * Pods that came in while nobody reviewed and ask all the same: those that have no claim, and for which none of their name is kept that is
 * what they ask for.
 */
export async function unreviewedPods(
  pods: readonly UnreviewedPod[],
  claims: readonly Stored<"claim">[],
  { least: own, view }: Requests,
  { store, world, place }: Pick<Backend, "store" | "world" | "place">,
): Promise<readonly Finding[]> {
  if (pods.length === 0) return [];
  const bound = new Set(claims.map(({ record }) => record.binding?.podUID));
  const sent = place === "cluster" ? await SentForReview.read(world) : undefined;
  const findings: Finding[] = [];
  for (const pod of pods) {
    const { namespace, name, uid } = pod;
    if (bound.has(uid)) continue;
    const now = await world.object("Pod", namespace, name);
    if (now?.metadata.uid !== uid) continue;
    const claim = (await store.get("claim", claimKey(pod)))?.record;
    const isKept = claim !== undefined && isKeptFor(claim, now, own);
    if (isKept && (await notForPod(claim, now, { view, own, world })) === undefined) continue;
    const isLeftOut = (await sent?.maySend(now)) === false;
    findings.push(found(pod, isLeftOut ? LEFT_OUT : whyAndAdvice(pod, place), isKept ? claim : undefined));
  }
  return findings;
}

/** It has it, or gets it once it is scheduled, if it is what it asks for. */
function isKeptFor(claim: Claim, pod: KubeObject, own: OwnReader): boolean {
  if (claim.releasing === true || claim.nonce === "") return false;
  return claim.binding?.podUID === pod.metadata.uid || isWaitingFor(podState(pod), claim, own);
}

/** The chart's values, which its webhook configuration has. */
const LEFT_OUT =
  "Berth's webhook is not asked about it (webhook.namespaceSelector, webhook.objectSelector of the chart); let these values take it in before you make it again, or take the annotation away";

function found(pod: UnreviewedPod, whyAndWhat: string, claim?: Claim): Finding {
  const subject = `${pod.namespace}/${pod.name}`;
  const { keys, addresses } = pod;
  const kept =
    claim === undefined
      ? "no address is kept for it"
      : `claim ${claimKey(claim)} of its name holds ${sayMacs(formatHolding(claim).join(", "))}, which is not what it asks for`;
  const how =
    addresses.length === 0
      ? `${kept}, and it cannot start in a network of Berth's`
      : `it runs with ${sayMacs(addresses.join(", "))}, which is not kept for it`;
  const message = `pod ${subject} asks by ${keys}, and no review has seen that: ${how}; ${whyAndWhat}`;
  return { severity: "pending", kind: "unreviewed", subject, message };
}

function whyAndAdvice({ namespace, name, owner }: UnreviewedPod, place: Backend["place"]): string {
  if (place === "data")
    return `it was kept without a review; delete it with: berthctl delete pod/${namespace}/${name}, and apply it again`;
  const command = `kubectl delete pod ${name} -n ${namespace}`;
  const advice =
    owner === undefined
      ? `delete it and create it again: ${command}`
      : `delete it, so that ${owner} makes it again: ${command}`;
  return `it was created while Berth's webhook did not answer (webhook.failurePolicy: Ignore), or before Berth was installed; ${advice}`;
}
