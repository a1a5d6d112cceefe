// SPDX-License-Identifier: Apache-2.0
// Hosts that share an etcd have containers and no pods: the name that a claim was given for one says little by itself.

import type { Claim } from "../../allocator/model/claim.ts";
import { SHOWN_OF_ID } from "../../allocator/model/container-claim.ts";
import { describeIdentity } from "../../allocator/model/identity.ts";
import type { Backend } from "./backend.ts";

/** What an agent, or an import, calls the claim of a container whose runtime says no name: its id, its interface, a hash. */
const OF_CONTAINER = /^c-(.*)-[0-9a-f]{16}(?:-[0-9a-f-]+)?$/;
const ID_AND_INTERFACE = /^([0-9a-z]{12})-(.*)$/;

interface Container {
  /** Short; empty: nothing says it. */
  readonly id: string;
  /** Empty: nothing says it. */
  readonly interface: string;
}

/** The container that the claim was made for; undefined: it is for somebody who has a name. */
export function containerOf(
  { name, status: { attachment } }: Pick<Claim, "name" | "status">,
  place: Backend["place"],
): Container | undefined {
  const [, shown] = (place === "etcd" && OF_CONTAINER.exec(name)) || [];
  if (shown === undefined) return undefined;
  if (attachment !== undefined)
    return { id: attachment.containerID.slice(0, SHOWN_OF_ID), interface: attachment.interface };
  const [, id = "", interfaceName = ""] = ID_AND_INTERFACE.exec(shown) ?? [];
  return { id, interface: interfaceName };
}

/** "container 3f0d9b6e1c5a, eth0" */
export function describeContainer(container: Container): string {
  const parts = [`container ${container.id}`.trim(), container.interface];
  return parts.filter((part) => part !== "").join(", ");
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
