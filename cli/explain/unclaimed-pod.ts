// SPDX-License-Identifier: Apache-2.0
// How it stands with pods that have no claim: those that ask for nothing, were not admitted, or are none of Berth's business.

import { isRefusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { MIRROR_POD_ANNOTATION } from "../../allocator/demand/pod-allocation.ts";
import { EXEMPT_NAMESPACE, NAMESPACE_FORMATS, readRequest } from "../../allocator/manifest/annotations.ts";
import { withoutEveryDialect } from "../../allocator/manifest/dialects.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { isSentToBerth, OPT_IN_LABEL, OPT_IN_VALUE } from "../../allocator/manifest/opt-in.ts";
import { requestsOfHost, requestsOfSystem } from "../../allocator/manifest/own-keys.ts";
import { type Request, requestsAddress, requestsNothing } from "../../allocator/model/address-request.ts";
import { bareNamespace, type NamespaceState } from "../../allocator/model/cluster-state.ts";
import { FIRST_INTERFACE, namesOf } from "../../allocator/model/interfaces.ts";
import { blocked, type Diagnosis, ok } from "./diagnosis.ts";
import { type DynamicFacts, describeDynamic } from "./dynamic-pod.ts";
import { type PodFacts, podPhase } from "./pod-facts.ts";

export function diagnoseExempt(pod: KubeObject, { dynamic }: PodFacts): Diagnosis {
  const { namespace, annotations } = pod.metadata;
  // admission keeps away from the namespace, and agents do not
  if (namespace === EXEMPT_NAMESPACE && !hasNoNetwork(pod)) {
    const asked = requestsOfSystem(annotations).map((words) => `; ${words}`);
    if (dynamic !== undefined) return unclaimed(pod, dynamic, asked.join(""));
    if (asked.length > 0) return ok(`has no address reserved${asked.join("")}`);
  }
  const asked = isMirror(pod) ? [] : requestsOfHost(annotations).map((words) => `; ${words}`);
  return ok(`is none of Berth's business: it is on its host's network, or a mirror pod${asked.join("")}`);
}

/** Nobody can change one by the API. */
export function isMirror({ metadata }: KubeObject): boolean {
  return Object.hasOwn(metadata.annotations, MIRROR_POD_ANNOTATION);
}

function hasNoNetwork({ spec, metadata }: KubeObject): boolean {
  return spec.flag("hostNetwork") || Object.hasOwn(metadata.annotations, MIRROR_POD_ANNOTATION);
}

export function diagnoseUnclaimed(pod: KubeObject, { space: there, place, dynamic }: PodFacts): Diagnosis {
  const { namespace, name, annotations } = pod.metadata;
  const isUnseen = place === "cluster" && !isSentToBerth(annotations, there.labels);
  const space = isUnseen ? { ...there, annotations: {} } : there;
  const request = readRequest(annotations, space);
  if (isRefusal(request)) {
    return blocked(`asks for something that cannot be read: ${request.message}`, "correct the annotation");
  }
  if (!requestsAddress(request)) {
    const found = unclaimed(pod, dynamic);
    return (isUnseen ? withIdleDefault(found.words, there) : undefined) ?? found;
  }
  if (place === "cluster" && asksByNamespaceAlone(annotations, there.name))
    return unreviewed(unclaimed(pod, dynamic), there);
  const otherwise = readRequest(withoutEveryDialect(annotations), space);
  if (place === "cluster" && requestsNothing(otherwise)) {
    const further = furtherOf(request);
    if (further.length > 0) {
      const { words, ...rest } = unclaimed(pod, dynamic);
      const left = `asks for ${further.join(" and ")} in another system's annotations, which was left to the networks that make it`;
      // whose network the first one is on is not known
      const stuck = dynamic?.usedUp !== undefined;
      return { ...rest, words: `${left}; on ${FIRST_INTERFACE} it ${words}`, stuck };
    }
    return {
      words:
        "asks for its address in another system's annotations, and was left to that system; in a network of Berth's it cannot start, unless the chart's value dialects says none for that system",
      stuck: false,
      next: ["if Berth is to give it an address, write berth.dev/ips or berth.dev/pools and create it again"],
    };
  }
  return blocked(
    "asks for a fixed address and has no claim: it was never admitted by Berth's webhook; it cannot start",
    "look at the webhook configuration and its selectors: kubectl get mutatingwebhookconfiguration berth -o yaml",
    `delete pod ${namespace}/${name} and create it again`,
  );
}

/** The interfaces that are asked for, where the first is none of them. */
function furtherOf({ interfaces = {}, interfacePools = {} }: Request): readonly string[] {
  const names = namesOf({ ...interfaces, ...interfacePools });
  return names.includes(FIRST_INTERFACE) ? [] : names;
}

function unclaimed(
  pod: KubeObject,
  dynamic: DynamicFacts = { addresses: [], choice: undefined },
  beside = "",
): Diagnosis {
  const { addresses, choice, usedUp, hidden } = dynamic;
  const words = `${describeDynamic(dynamic)}${beside}`;
  if (usedUp !== undefined)
    return blocked(words, "end pods, release claims, or add a range; who has what: berthctl get blocks");
  const isServed = addresses.length > 0 || choice !== undefined || hidden === true;
  const isStuck = !isServed && podPhase(pod) === "Pending" && pod.spec.text("nodeName") !== "";
  return isStuck ? blocked(words) : ok(words);
}

function asksByNamespaceAlone(annotations: Labels, namespace: string): boolean {
  const own = readRequest(annotations, bareNamespace(namespace));
  return requestsNothing(own);
}

/** Agents go by what the pod says itself, and nothing of its namespace was written into it. */
function unreviewed({ words, stuck }: Diagnosis, space: NamespaceState): Diagnosis {
  return {
    words: `${words}; what its namespace says in ${defaultsOf(space)} was not asked for it: it was created before its namespace said so, or while Berth was away (webhook.failurePolicy: Ignore), and no address is kept for it`,
    stuck,
    next: ["if Berth is to give it an address that is kept, delete the pod and create it again"],
  };
}

function defaultsOf({ annotations }: NamespaceState): string {
  const keys = NAMESPACE_FORMATS.map(({ key }) => key).filter((key) => annotations[key] !== undefined);
  return [...new Set(keys)].join(", ");
}

/** Of a pod that its namespace would ask for; undefined: it does not. */
function withIdleDefault(words: string, space: NamespaceState): Diagnosis | undefined {
  const request = readRequest({}, space);
  if (requestsNothing(request)) return undefined;
  const label = `${OPT_IN_LABEL}=${OPT_IN_VALUE}`;
  return {
    words: `${words}; what its namespace says in ${defaultsOf(space)} has no effect with Berth until the namespace has the label ${label}`,
    stuck: false,
    next: [
      `if Berth is to give it an address: kubectl label namespace ${space.name} ${label}, then delete the pod and create it again`,
    ],
  };
}
