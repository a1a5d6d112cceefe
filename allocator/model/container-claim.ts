// SPDX-License-Identifier: Apache-2.0
// Hosts that share an etcd have containers and no pods. A container whose runtime says no name has a claim with a name that was made for it.

import type { Address } from "../ip/address.ts";
import type { Claim, ClaimAttachment } from "./claim.ts";
import { describeIdentity } from "./identity.ts";

/** As much of a container's id as tools show. */
export const SHOWN_OF_ID = 12;
/** 64 bits: what differs in one character only has another one. */
const HASH_LENGTH = 16;

/** The name of the claim of one interface of one container; `hash`: of all that tells it from others. */
export function claimNameOf(
  container: Pick<ClaimAttachment, "containerID" | "interface">,
  hash: string,
): string {
  const { containerID, interface: name } = container;
  const shown = `${containerID.slice(0, SHOWN_OF_ID)}-${name}`.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-");
  return `c-${shown}-${hash.slice(0, HASH_LENGTH)}`;
}

/** The container that the claim is named after and that has it, or had it last. No pod is called after its own sandbox. */
export function namingContainer({
  name,
  status: { attachment },
}: Pick<Claim, "name" | "status">): ClaimAttachment | undefined {
  if (attachment === undefined || attachment.podUID !== "") return undefined;
  const hash = name.slice(-HASH_LENGTH);
  const isNamedSo = /^[0-9a-f]{16}$/.test(hash) && name === claimNameOf(attachment, hash);
  return isNamedSo ? attachment : undefined;
}

/** A container as people are told of it. */
export interface ShownContainer {
  /** Short; empty: nothing says it. */
  readonly id: string;
  /** Empty: nothing says it. */
  readonly interface: string;
}

export function shownOf({ containerID, interface: name }: ClaimAttachment): ShownContainer {
  return { id: containerID.slice(0, SHOWN_OF_ID), interface: name };
}

/** Names that `claimNameOf` makes; an import may add what tells it from one that is there. */
const NAMED_SO = new RegExp(`^c-(.*)-[0-9a-f]{${HASH_LENGTH}}(?:-[0-9a-f-]+)?$`);
const CONTAINERS = new RegExp(`^c-.*-[0-9a-f]{${HASH_LENGTH}}$`);
const ID_AND_INTERFACE = new RegExp(`^([0-9a-z]{${SHOWN_OF_ID}})-(.*)$`);

/** What the name of a claim says of the container that it was made for; undefined: it is no such name. */
export function shownIn(name: string): ShownContainer | undefined {
  const [, shown] = NAMED_SO.exec(name) ?? [];
  if (shown === undefined) return undefined;
  const [, id = "", interfaceName = ""] = ID_AND_INTERFACE.exec(shown) ?? [];
  return { id, interface: interfaceName };
}

/** The name of the claim of one address that an import keeps for a container; `name`: of a claim of that container. */
export function importedNameOf(name: string, address: Address): string {
  return `${name}-${address.replaceAll(/[.:]/g, "-")}`;
}

/** Whose claims they are. In a cluster anybody may call a claim made by hand as those of containers are called. */
export interface ClaimPlace {
  /** Containers', of hosts that share an etcd. Absent: pods'. */
  readonly ofContainers?: true | undefined;
  /** Whether a pod of that name was there and was deleted. Absent: nobody knows. */
  readonly podIsGone?: ((namespace: string, name: string) => boolean) | undefined;
}

/**
 * The container that an import keeps the claim's address for, to which cni-ipam-etcd gave it; undefined: it is no such claim, or the
 * container has begun again and has it from Berth. Whether it runs no host has told.
 */
export function importedFor(
  { name, handMade, binding, addresses }: Pick<Claim, "name" | "handMade" | "binding" | "addresses">,
  { ofContainers }: ClaimPlace,
): ShownContainer | undefined {
  if (ofContainers !== true) return undefined;
  const [address, ...more] = addresses;
  if (handMade !== true || binding !== undefined || address === undefined || more.length > 0)
    return undefined;
  const end = importedNameOf("", address);
  const container = name.endsWith(end) ? name.slice(0, -end.length) : "";
  return CONTAINERS.test(container) ? shownIn(container) : undefined;
}

/** "container 3f0d9b6e1c5a, eth0" */
export function describeContainer(container: ShownContainer): string {
  const parts = [`container ${container.id}`.trim(), container.interface];
  return parts.filter((part) => part !== "").join(", ");
}

/** Where the containers of hosts have their claims; whatever is elsewhere in an etcd is of pods of a cluster. */
const NAMESPACE_OF_HOSTS = "default";

/**
 * What a runtime calls the container that a claim made by hand is for; undefined: it is a pod's. A host's containers are pods to nobody,
 * and the uid of a pod is said by a kubelet's runtime alone.
 */
export function namedContainer(
  {
    namespace,
    identity,
    binding,
    status: { attachment },
  }: Pick<Claim, "namespace" | "identity" | "binding" | "status">,
  { ofContainers }: ClaimPlace,
): string | undefined {
  const isPods = (binding?.podUID || attachment?.podUID || "") !== "";
  if (ofContainers !== true || isPods || namespace !== NAMESPACE_OF_HOSTS) return undefined;
  return identity.kind === "Pod" ? identity.name : undefined;
}

/** Whom a claim that is named after no container is for: "Pod mysql-0", "container recorder". */
export function describeNamed(
  claim: Pick<Claim, "namespace" | "identity" | "binding" | "status">,
  place: ClaimPlace,
): string {
  const name = namedContainer(claim, place);
  return name === undefined ? describeIdentity(claim.identity) : `container ${name}`;
}

/** Whom the claim is for, by the claim alone: "Pod mysql-0", "container 3f0d9b6e1c5a, eth0". */
export function describeHolder(
  claim: Pick<Claim, "namespace" | "name" | "identity" | "status" | "handMade" | "binding" | "addresses">,
  place: ClaimPlace,
): string {
  const naming = namingContainer(claim);
  const container = naming === undefined ? importedFor(claim, place) : shownOf(naming);
  return container === undefined ? describeNamed(claim, place) : describeContainer(container);
}
