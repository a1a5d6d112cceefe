// SPDX-License-Identifier: Apache-2.0
// Hosts that share an etcd have containers and no pods: the name that a claim was given for one says little by itself.

import type { Claim } from "../../allocator/model/claim.ts";
import {
  describeContainer,
  type ShownContainer,
  shownIn,
  shownOf,
} from "../../allocator/model/container-claim.ts";
import { describeIdentity } from "../../allocator/model/identity.ts";
import type { Backend } from "./backend.ts";

/** The container that the claim was made for; undefined: it is for somebody who has a name. */
export function containerOf(
  { name, status: { attachment } }: Pick<Claim, "name" | "status">,
  place: Backend["place"],
): ShownContainer | undefined {
  const named = place === "etcd" ? shownIn(name) : undefined;
  return named !== undefined && attachment !== undefined ? shownOf(attachment) : named;
}

/** Whom the claim is for: that container, or its identity. */
export function describeOwner(
  claim: Pick<Claim, "name" | "identity" | "status">,
  place: Backend["place"],
): string {
  const container = containerOf(claim, place);
  return container === undefined ? describeIdentity(claim.identity) : describeContainer(container);
}

/** Who has the claim, or had it last: "pod mysql-0", "container 3f0d9b6e1c5a". */
export function describeHolder(
  claim: Pick<Claim, "name" | "status" | "binding">,
  place: Backend["place"],
): string {
  const container = containerOf(claim, place);
  if (container !== undefined) return `container ${container.id}`.trim();
  const podName = claim.binding?.podName ?? "";
  return podName === "" ? "a pod without a name yet" : `pod ${podName}`;
}
