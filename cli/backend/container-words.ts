// SPDX-License-Identifier: Apache-2.0
// Hosts that share an etcd have containers and no pods: the name that a claim was given for one says little by itself.

import type { Claim } from "../../allocator/model/claim.ts";
import {
  type ClaimPlace,
  describeContainer,
  describeNamed,
  importedFor,
  namedContainer,
  type ShownContainer,
  shownIn,
  shownOf,
} from "../../allocator/model/container-claim.ts";
import type { Backend } from "./backend.ts";

/** The container that the claim was made for; undefined: it is for somebody who has a name. */
export function containerOf(
  { name, status: { attachment } }: Pick<Claim, "name" | "status">,
  place: Backend["place"],
): ShownContainer | undefined {
  const named = place === "etcd" ? shownIn(name) : undefined;
  return named !== undefined && attachment !== undefined ? shownOf(attachment) : named;
}

/** Whose claims are there. */
export function claimPlaceOf(place: Backend["place"]): ClaimPlace {
  return place === "etcd" ? { ofContainers: true } : {};
}

/** Of no container of cni-ipam-etcd a host tells that it runs: what to know of the addresses of one that was imported. */
export function formerUse(
  claim: Pick<Claim, "name" | "handMade" | "binding" | "addresses">,
  place: Backend["place"],
): string | undefined {
  const imported = importedFor(claim, claimPlaceOf(place));
  if (imported === undefined) return undefined;
  const has = `${describeContainer(imported)} may have ${claim.addresses.join(", ")} still: cni-ipam-etcd gave it`;
  return `${has}, and no host was told that this container has ended`;
}

type Owned = Pick<Claim, "namespace" | "name" | "identity" | "status" | "binding">;

/** Whom the claim is for: that container, or its identity. */
export function describeOwner(claim: Owned, place: Backend["place"]): string {
  const container = containerOf(claim, place);
  return container === undefined ? describeNamed(claim, claimPlaceOf(place)) : describeContainer(container);
}

/** Who has the claim, or had it last: "pod mysql-0", "container 3f0d9b6e1c5a", "container recorder". */
export function describeHolder(claim: Owned, place: Backend["place"]): string {
  const container = containerOf(claim, place);
  if (container !== undefined) return `container ${container.id}`.trim();
  const kind = isOfContainer(claim, place) ? "container" : "pod";
  const podName = claim.binding?.podName ?? "";
  return podName === "" ? `a ${kind} without a name yet` : `${kind} ${podName}`;
}

/** Of a host that shares an etcd; else it is a pod's. */
export function isOfContainer(claim: Owned, place: Backend["place"]): boolean {
  return containerOf(claim, place) !== undefined || namedContainer(claim, claimPlaceOf(place)) !== undefined;
}

/** The short id of the container that has the claim, or had it last, as far as something says it; undefined: it is a pod's. */
export function shortIdOf(claim: Owned, place: Backend["place"]): string | undefined {
  if (!isOfContainer(claim, place)) return undefined;
  const { attachment } = claim.status;
  const container = attachment === undefined ? containerOf(claim, place) : shownOf(attachment);
  return container?.id ?? "";
}
