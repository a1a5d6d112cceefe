// SPDX-License-Identifier: Apache-2.0
// Pods that ask where Berth does not look: on their hosts' network, and in kube-system.

import type { Finding } from "../../allocator/gc/finding.ts";
import { pending } from "../../allocator/gc/finding.ts";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podState } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsOfHost, requestsOfSystem } from "../../allocator/manifest/own-keys.ts";
import { isMirror } from "./diagnosis.ts";

/** Undefined: the pod asks for nothing, or where it is heard. */
export function vainRequestOf(pod: KubeObject): Finding | undefined {
  const { namespace, name, annotations } = pod.metadata;
  if (isMirror(pod) || podState(pod).ended) return undefined;
  const isSystem = namespace === EXEMPT_NAMESPACE;
  if (!isSystem && !pod.spec.flag("hostNetwork")) return undefined;
  const [words] = isSystem ? requestsOfSystem(annotations) : requestsOfHost(annotations);
  const subject = `${namespace}/${name}`;
  return words === undefined ? undefined : pending("asks-in-vain", subject, `pod ${subject}: ${words}`);
}
