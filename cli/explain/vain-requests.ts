// SPDX-License-Identifier: Apache-2.0
// Pods that ask where Berth does not look: on their hosts' network, and in kube-system.

import { BerthError } from "../../allocator/base/errors.ts";
import type { Finding } from "../../allocator/gc/audit.ts";
import { pending } from "../../allocator/gc/finding.ts";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podState } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsOfHost, requestsOfSystem } from "../../allocator/manifest/own-keys.ts";
import type { Backend } from "../backend/backend.ts";
import { isMirror } from "./diagnosis.ts";

/** Undefined: this user may not list pods. */
export async function vainRequests({
  world,
}: Pick<Backend, "world">): Promise<readonly Finding[] | undefined> {
  try {
    return (await world.objects("Pod")).flatMap((pod) => found(pod) ?? []);
  } catch (error) {
    if (error instanceof BerthError && error.code === "STORE_READ_ONLY") return undefined;
    throw error;
  }
}

function found(pod: KubeObject): Finding | undefined {
  const { namespace, name, annotations } = pod.metadata;
  if (isMirror(pod) || podState(pod).ended) return undefined;
  const isSystem = namespace === EXEMPT_NAMESPACE;
  if (!isSystem && !pod.spec.flag("hostNetwork")) return undefined;
  const [words] = isSystem ? requestsOfSystem(annotations) : requestsOfHost(annotations);
  const subject = `${namespace}/${name}`;
  return words === undefined ? undefined : pending("asks-in-vain", subject, `pod ${subject}: ${words}`);
}
