// SPDX-License-Identifier: Apache-2.0

import type { Claim } from "../model/claim.ts";
import {
  type ClaimPlace,
  describeContainer,
  importedFor,
  namedContainer,
  namingContainer,
  SHOWN_OF_ID,
} from "../model/container-claim.ts";
import { isAnonymous } from "../model/identity.ts";

/** What frees a claim's addresses, in words. One that is released while its pod or workload is there is made again. */
export function freedBy(claim: Claim | undefined, key: string, place: ClaimPlace): string {
  const release = `berthctl release ${key}`;
  const imported = claim && importedFor(claim, place);
  if (imported !== undefined)
    return `stop ${describeContainer(imported)}, which had it from cni-ipam-etcd, and if it has ended and its claim stays: ${release}`;
  if (claim === undefined || claim.handMade === true || claim.retained !== undefined)
    return `release it with: ${release}`;
  const { attachment } = claim.status;
  const gone = gonePodOf(claim, place);
  if (gone !== undefined && attachment?.detached !== false) return `release it with: ${release}`;
  if (gone !== undefined && attachment !== undefined)
    return `stop container ${attachment.containerID.slice(0, SHOWN_OF_ID)} of pod ${gone}, which is deleted, and if its claim stays: ${release}`;
  return `${endOf(claim, place)}, and if its claim stays: ${release}`;
}

/** The name of its pod where that is deleted: nobody makes the claim again. */
function gonePodOf({ namespace, name, identity, binding }: Claim, place: ClaimPlace): string | undefined {
  if (identity.kind !== "Pod") return undefined;
  const pod = isAnonymous(name, identity) ? (binding?.podName ?? "") : identity.name;
  return pod !== "" && place.podIsGone?.(namespace, pod) === true ? pod : undefined;
}

function endOf(owned: Claim, place: ClaimPlace): string {
  const { name: claim, identity, binding } = owned;
  const container = namingContainer(owned);
  if (container !== undefined)
    return `stop container ${container.containerID.slice(0, SHOWN_OF_ID)} on host ${container.node}`;
  const named = namedContainer(owned, place);
  if (named !== undefined) return `stop container ${named}`;
  const { kind, name, slot } = identity;
  if (slot !== undefined) return `take it out of the list of ${kind} ${name}`;
  if (kind === "StatefulSet" || kind === "CloneSet") return `scale ${kind} ${name} down`;
  if (kind !== "Pod") return `delete ${kind} ${name}`;
  if (!isAnonymous(claim, identity)) return `delete pod ${name}`;
  const pod = binding?.podName ?? "";
  return pod === "" ? "delete its pod" : `delete pod ${pod}`;
}
