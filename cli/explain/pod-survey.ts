// SPDX-License-Identifier: Apache-2.0
// All pods, of which there may be 100,000: read once, page by page, and none of them is kept whole.

import type { Labels } from "../../allocator/base/ports.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import { type Finding, pending } from "../../allocator/gc/finding.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { ASSIGNED_CLAIM, EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podState } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsOfHost, requestsOfSystem } from "../../allocator/manifest/own-keys.ts";
import type { OwnReader } from "../../allocator/manifest/pod-claim.ts";
import type { PodState } from "../../allocator/model/cluster-state.ts";
import type { Objects } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { kubeletsAddresses } from "../backend/reported-addresses.ts";
import { type ChangedPod, changedPod } from "./changed-requests.ts";
import { isMirror } from "./unclaimed-pod.ts";
import { type UnreviewedPod, unreviewedPod } from "./unreviewed-pods.ts";

/** What is kept of a pod. */
export interface SurveyedPod {
  /** Of its annotations the name of its claim alone, and no labels. */
  readonly state: PodState;
  /** That it has on the pods' network, while it runs. */
  readonly addresses: readonly Address[];
  /** Berth gives it addresses, it has not ended, and nobody has deleted it. */
  readonly isServed: boolean;
}

interface PodSurvey {
  readonly pods: readonly SurveyedPod[];
  /** Pods that ask where Berth does not look. */
  readonly vain: readonly Finding[];
  /** Those that ask Berth and were told no claim; empty where nobody says what is asked of Berth. */
  readonly unreviewed: readonly UnreviewedPod[];
  /** Those that ask Berth for others than they were assigned; empty there, too. */
  readonly changed: readonly ChangedPod[];
}

const NONE: Labels = Object.freeze({});
const NOTHING: Noted = Object.freeze({});
const NO_ADDRESSES: readonly Address[] = [];

/** Undefined: this user may not list pods. */
export async function surveyPods(
  world: Pick<Objects, "each">,
  own?: OwnReader,
): Promise<PodSurvey | undefined> {
  const pods: SurveyedPod[] = [];
  const vain: Finding[] = [];
  const unreviewed: UnreviewedPod[] = [];
  const changed: ChangedPod[] = [];
  return await ifAllowed(async () => {
    for await (const pod of world.each("Pod")) {
      const seen = surveyed(pod);
      pods.push(seen);
      const found = vainRequestOf(pod);
      if (found !== undefined) vain.push(found);
      const { untold, other } = own && seen.isServed ? requestIn(pod, seen, own) : NOTHING;
      if (untold !== undefined) unreviewed.push(untold);
      if (other !== undefined) changed.push(other);
    }
    return { pods, vain, unreviewed, changed };
  });
}

interface Noted {
  readonly untold?: UnreviewedPod | undefined;
  readonly other?: ChangedPod | undefined;
}

function requestIn(pod: KubeObject, { addresses }: SurveyedPod, own: OwnReader): Noted {
  return { untold: unreviewedPod(pod, addresses, own), other: changedPod(pod, addresses, own) };
}

export function surveyed(pod: KubeObject): SurveyedPod {
  const { namespace, name, uid, node, ended } = podState(pod);
  const claim = pod.metadata.annotations[ASSIGNED_CLAIM];
  const annotations = claim === undefined ? NONE : { [ASSIGNED_CLAIM]: claim };
  const isGoing = pod.json.at("metadata").get("deletionTimestamp") !== undefined;
  const addresses = addressesOf(pod);
  return {
    state: { namespace, name, uid, node, ended, labels: NONE, annotations },
    addresses: addresses.length === 0 ? NO_ADDRESSES : addresses,
    isServed: !isExempt(pod) && !isGoing && !ended,
  };
}

function addressesOf(pod: KubeObject): readonly Address[] {
  if (pod.spec.flag("hostNetwork") || podState(pod).ended) return NO_ADDRESSES;
  return [...kubeletsAddresses(pod)];
}

/** Of a pod that asks where Berth does not look: on its host's network, or in kube-system. Undefined: it asks for nothing, or where it is heard. */
function vainRequestOf(pod: KubeObject): Finding | undefined {
  const { namespace, name, annotations } = pod.metadata;
  if (isMirror(pod) || podState(pod).ended) return undefined;
  const isSystem = namespace === EXEMPT_NAMESPACE;
  if (!isSystem && !pod.spec.flag("hostNetwork")) return undefined;
  const [words] = isSystem ? requestsOfSystem(annotations) : requestsOfHost(annotations);
  const subject = `${namespace}/${name}`;
  return words === undefined ? undefined : pending("asks-in-vain", subject, `pod ${subject}: ${words}`);
}
