// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import { type BindingEvidence, type BindTarget, planBind } from "../../allocator/lifecycle/bind.ts";
import { evidenceOf, NO_EVIDENCE } from "../../allocator/lifecycle/binding-evidence.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { FENCED, OUT_OF_SERVICE } from "../../allocator/manifest/node-fence.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { macsOf } from "../../allocator/model/interface-macs.ts";
import { parseAddresses } from "../../allocator/model/interfaces.ts";
import { isHeldBy } from "../../allocator/model/reservation.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { readinessOf } from "../backend/node-state.ts";
import {
  confirmedByKubelet,
  kubeletsAddresses,
  reportedAddresses,
  whereOf,
} from "../backend/reported-addresses.ts";
import { adviceOnChange } from "./changed-requests.ts";
import { blocked, type Diagnosis, ok } from "./diagnosis.ts";
import { hasEnded, isDeleting, type PodFacts, podPhase, unschedulable } from "./pod-facts.ts";
import { diagnoseExempt, diagnoseUnclaimed } from "./unclaimed-pod.ts";

/** How it stands with the pod, by the same rule as the binder. Pure. */
export function diagnosePod(pod: KubeObject, facts: PodFacts): Diagnosis {
  const { namespace, name, annotations } = pod.metadata;
  if (isExempt(pod)) return diagnoseExempt(pod, facts);
  const { claim, key } = facts;
  if (key === "") return diagnoseUnclaimed(pod, facts);
  if (hasEnded(pod)) return ok(`has ended (${podPhase(pod)}) and needs its addresses no more`);
  if (claim === undefined) {
    const gone = `was admitted with claim ${annotations[ASSIGNED_CLAIM]}, which is gone; ${withoutClaim(pod)}`;
    return blocked(gone, `delete pod ${namespace}/${name}${withOtherAddresses(facts)}`);
  }
  const plan = planBind(claim.record, bindTargetOf(pod, facts), bindingEvidence(facts), facts.now);
  const given = isRefusal(plan) ? givenToAnother(pod, claim) : undefined;
  if (given !== undefined) return given;
  if (isRefusal(plan)) return { words: `waits: ${plan.message}`, stuck: true, next: adviceFor(plan, facts) };
  const lost = lostOf(facts);
  if (lost !== undefined) return lost;
  const kept = plan.kind === "bind" ? keptFromBinding(pod, facts) : undefined;
  if (kept !== undefined) return kept;
  if (pod.spec.text("nodeName") === "" && facts.place === "cluster") return unscheduled(pod, facts);
  if (plan.kind === "bind") return unbound(pod.metadata.name, facts);
  return bound(pod, claim.record, facts);
}

/** Why the binder leaves it alone, which its claim would be free for; undefined: it does not. */
function keptFromBinding(pod: KubeObject, { place, changed, otherwise }: PodFacts): Diagnosis | undefined {
  if (place === "cluster" && isDeleting(pod))
    return ok("is being deleted, and Berth does not bind it to its claim any more");
  if (changed !== undefined)
    return { words: `waits: ${changed.message}`, stuck: true, next: adviceOnChange(pod.metadata) };
  return otherwise && { words: `waits: ${otherwise.message}`, stuck: true, next: [] };
}

/** A claim may go while its pod is up: somebody fenced the node, or released it by force. Other networks' addresses are not its. */
function withoutClaim(pod: KubeObject): string {
  const reported = reportedAddresses(pod);
  if (reported.size === 0) return "it cannot start";
  const assigned = pod.metadata.annotations[ASSIGNED_ADDRESSES];
  const its =
    assigned === undefined
      ? [...kubeletsAddresses(pod)]
      : parseAddresses(assigned.split(",")).addresses.filter((address) => reported.has(address));
  return its.length === 0
    ? "it runs, and cannot start again"
    : `it runs with ${its.join(" and ")}, which may be given to another pod, and cannot start again`;
}

/** Of a pod that is up with what is another's by now; undefined: it is not up with it. */
function givenToAnother(pod: KubeObject, { key, record }: Stored<"claim">): Diagnosis | undefined {
  const { binding } = record;
  const { namespace, name, uid } = pod.metadata;
  const has = confirmedByKubelet(record, pod);
  if (binding === undefined || ["", uid].includes(binding.podUID) || has.length === 0) return undefined;
  const addresses = has.join(" and ");
  // of a pod that is going this is the usual course: its status has the addresses for a moment longer than its sandbox
  if (isDeleting(pod))
    return ok(
      `is being deleted, and claim ${key} with ${addresses} is pod ${binding.podName}'s by now: its sandbox has ended, or its node was fenced, or its claim released, while it ran`,
    );
  const whose =
    binding.node === ""
      ? `keeps for pod ${binding.podName} now: two pods may have one address when that starts`
      : `gives to pod ${binding.podName} on ${binding.node} now: two pods may have one address`;
  return blocked(
    `runs with ${addresses}, which claim ${key} ${whose}, since the node of this one was fenced, or its claim released, while it ran`,
    `end this one: kubectl delete pod ${name} -n ${namespace}`,
  );
}

/** What the next pod of the name must not ask for again. */
function withOtherAddresses({ lost = new Map() }: PodFacts): string {
  if (lost.size === 0) return " and create it again";
  const held = [...lost].map(([address, claim]) => `${address} is held by ${claim}`).join(", ");
  return `; ${held}: create it again with other addresses, or release that claim first`;
}

/**
 * On a data folder nobody schedules: every pod is on the one host. A runtime that does not say the pod's UID is bound by the
 * pod's name alone.
 */
function bindTargetOf(pod: KubeObject, { place, claim }: PodFacts): BindTarget {
  const { name, uid, annotations } = pod.metadata;
  const scheduled = pod.spec.text("nodeName");
  const binding = place === "data" ? claim?.record.binding : undefined;
  const here = binding?.node ?? "";
  const byName = here !== "" && binding?.podUID === "" && binding.podName === name;
  const assigned = annotations[ASSIGNED_ADDRESSES];
  return {
    name,
    uid: byName ? "" : uid,
    node: scheduled === "" ? here : scheduled,
    token: annotations[ASSIGNED_TOKEN] ?? "",
    ...(assigned === undefined ? {} : { assigned: assigned.split(",").map((address) => address.trim()) }),
  };
}

function bindingEvidence({ place, claim, fenced, holder, now }: PodFacts): BindingEvidence {
  const binding = claim?.record.binding;
  if (binding === undefined) return NO_EVIDENCE;
  const pod = holder && { uid: holder.metadata.uid, ended: hasEnded(holder) };
  const holderThere = pod?.ended === false && binding.podUID !== "";
  const seen = { fenced, pod, place: place === "cluster" ? "cluster" : "host" } as const;
  return { ...evidenceOf(binding, seen, now), holderThere };
}

/** The claim lists an address that is not reserved for it: the pod is not given it then. */
function lostOf({ claim, addresses }: PodFacts): Diagnosis | undefined {
  const nonce = claim?.record.nonce ?? "";
  const lost = addresses.find(
    ({ reservation }) =>
      reservation !== "hidden" && (reservation === undefined || !isHeldBy(reservation.record, nonce)),
  );
  if (lost === undefined) return undefined;
  const { address, reservation } = lost;
  const has = reservation === undefined ? "is not reserved" : "is reserved for somebody else or being let go";
  const words = `waits: address ${address} of claim ${claim?.key} ${has}`;
  return blocked(words, "Berth reserves it again within 60 s if it is free; see: berthctl check");
}

function unscheduled(pod: KubeObject, { nodeless }: PodFacts): Diagnosis {
  const why = unschedulable(pod);
  return {
    words: "is not scheduled yet; its addresses are kept for it",
    stuck: false,
    next: [
      ...(nodeless === undefined ? [] : [nodeless]),
      why === "" ? "wait for the scheduler" : `the scheduler says: ${why}`,
    ],
  };
}

function unbound(pod: string, { place, key, claim }: PodFacts): Diagnosis {
  const only = claim?.record.interface;
  const when =
    only === undefined ? "its sandbox starts" : `its interface ${only} is attached, which the claim is for`;
  if (place === "data") {
    const state = only === undefined ? "whose sandbox has not started" : `whose ${only} is not attached yet`;
    const ofClaim = `is reserved for pod ${pod}, ${state}`;
    return { ...ok(`has claim ${key}, and is bound to it when ${when}`), ofClaim };
  }
  return {
    words: `may have claim ${key}, and is not bound to it yet`,
    ofClaim: `is reserved for pod ${pod}, which is not bound to it yet`,
    stuck: false,
    next: ["Berth binds within seconds; if it does not, look at the log of its webhook"],
  };
}

function bound(pod: KubeObject, claim: Claim, facts: PodFacts): Diagnosis {
  const { place } = facts;
  const { uid } = bindTargetOf(pod, facts);
  const own = claim.status.attachment?.podUID === uid ? claim.status.attachment : undefined;
  if (own?.detached === false) return ok(`has its addresses${whereOf(claim, pod)}`);
  const isEnded = own?.detached === true || confirmedByKubelet(claim, pod).length === 0;
  if (isEnded && isDeleting(pod))
    return ok(
      `is being deleted, and ${own === undefined ? "no sandbox of it is reported" : "its sandbox has ended"}`,
    );
  if (!isEnded) return ok(`has its addresses${whereOf(claim, pod)}`);
  const node = pod.spec.text("nodeName");
  const next =
    place === "data"
      ? "the container runtime sets its sandbox up with the CNI plugin"
      : `kubelet sets it up; if it does not: kubectl describe pod ${pod.metadata.name} -n ${pod.metadata.namespace}, and the log of Berth's agent on ${node}`;
  return {
    words: "is bound to its claim, and its sandbox is not reported yet",
    stuck: false,
    next: [next, ...adviceOnMacs(claim)],
  };
}

/** Of all that a claim asks of a node, this alone is nothing that Berth's plugin can do. */
function adviceOnMacs(claim: Claim): readonly string[] {
  const macs = [...macsOf(claim)].map(([name, mac]) => `${mac} for ${name}`);
  if (macs.length === 0) return [];
  return [
    `it pins MAC address ${macs.join(" and ")}: the sandbox is refused until the runtime says the same and the network's configuration declares "capabilities": {"mac": true}; kubelet alone says none, Multus does (docs/cluster.md, MAC addresses)`,
  ];
}

/** What to do about the binder's refusal, beyond what it says itself. */
function adviceFor({ code }: Refusal, facts: PodFacts): readonly string[] {
  const { claim, place } = facts;
  const binding = claim?.record.binding;
  if (code !== "CLAIM_BUSY" || binding === undefined || binding.node === "" || place === "data") return [];
  return waitingFor(facts, binding.podName, binding.node);
}

/** Who must say that the sandbox of the present binding has ended, and what if nobody is left to say it. */
export function waitingFor(facts: PodFacts, podName: string, nodeName: string): readonly string[] {
  const { holder, node, claim } = facts;
  const place = `${podName} -n ${claim?.record.namespace ?? ""}`;
  if (holder !== undefined && !hasEnded(holder)) {
    const state = isDeleting(holder) ? "is still being deleted" : "still exists";
    return [`pod ${podName} ${state} on ${nodeName}; see: kubectl describe pod ${place}`];
  }
  if (node === undefined) {
    return [
      `node ${nodeName} is gone: the claim moves when Berth has missed it for 45 s; if it does not, look at the log of its webhook`,
    ];
  }
  if (node === "hidden") return [`ask whoever may read nodes how ${nodeName} is`];
  if (readinessOf(node).ready) {
    return [`look at Berth's agent on ${nodeName}, which has not reported the end of the sandbox`];
  }
  return [
    `bring ${nodeName} back, and its agent reports`,
    `or, when it is certainly off: kubectl taint node ${nodeName} ${OUT_OF_SERVICE}=nodeshutdown:NoExecute`,
    `or, when you have cut it off yourself: kubectl annotate node ${nodeName} ${FENCED}=true`,
  ];
}
