// SPDX-License-Identifier: Apache-2.0
// What a container of this host uses, by its journal, and whether etcd says the same.
import { BerthError } from "../../../../allocator/base/errors.ts";
import { sameSet } from "../../../../allocator/base/same-set.ts";
import type { Address } from "../../../../allocator/ip/address.ts";
import { isDetached } from "../../../../allocator/lifecycle/bind.ts";
import type { Claim } from "../../../../allocator/model/claim.ts";
import type { Store } from "../../../../allocator/store/store.ts";
import type { Attachment } from "../../journal/attachment.ts";
import { tellOfEnd, unseenEnd } from "../../journal/unseen-end.ts";

/** A container that is attached, and was answered so. */
export interface InUse {
  readonly claim: string;
  readonly containerID: string;
  readonly interface: string;
  readonly network: string;
  readonly addresses: readonly Address[];
  /** Why its host does not see when it ends without a DEL, in words; undefined: it does. */
  readonly unseen?: () => string | undefined;
}

/** None for one whose addresses are of no claim. */
export function inUseOf(attachment: Attachment): readonly InUse[] {
  const { claim, containerID, interface: name, scope, result, netns, netnsSeen } = attachment;
  if (claim === undefined) return [];
  const addresses = result.addresses.map(({ address }) => address);
  const unseen = () => unseenEnd(netnsSeen === false ? undefined : netns); // looks at a file
  return [{ claim, containerID, interface: name, network: scope.network, addresses, unseen }];
}

/** "container 3f0d9b6e1c5a (eth0) of network lan has 10.10.20.50 by claim default/c-3f0d9b6e1c5a-eth0-91c2" */
export function describeUse({ containerID, interface: name, network, addresses, claim }: InUse): string {
  return `container ${containerID} (${name}) of network ${network} has ${addresses.join(", ")} by claim ${claim}`;
}

/** What is to be done beside stopping the containers; empty: nothing, their host sees that they end. */
export function sayUnseen(uses: readonly InUse[], node: string): string {
  for (const { containerID, unseen } of uses) {
    const why = unseen?.();
    if (why !== undefined)
      return `; that container ${containerID} has ended this host does not see (${why}): once it has, ${tellOfEnd(node)}`;
  }
  return "";
}

export function isSameUse(one: InUse, other: InUse): boolean {
  return (
    one.claim === other.claim &&
    one.containerID === other.containerID &&
    sameSet(one.addresses, other.addresses)
  );
}

/**
 * Whether the claim, as etcd has it, keeps the addresses for this host: a host binds it before it journals the attachment, and
 * lets it go after it has journalled the end, so that one that does not is not as this host has left it.
 *
 * Another container of this host in its status does not count: an ADD that moves the claim has written it before the journal
 * knows. While the claim is this host's nobody else gets its addresses, and this host asks its journal.
 */
export function isKept(claim: Claim | undefined, { addresses }: InUse, node: string): boolean {
  if (claim?.binding?.node !== node || isDetached(claim)) return false;
  return addresses.every((address) => claim.addresses.includes(address));
}

/** By the store itself. A claim that cannot be read counts: etcd has not lost it. */
export async function isKeptIn(store: Pick<Store, "get">, use: InUse, node: string): Promise<boolean> {
  try {
    return isKept((await store.get("claim", use.claim))?.record, use, node);
  } catch (error) {
    if (error instanceof BerthError && error.code === "STATE_CORRUPT") return true;
    throw error;
  }
}
