// SPDX-License-Identifier: Apache-2.0
// What a container of this host uses, by its journal, and whether etcd says the same.
import { BerthError } from "../../../../allocator/base/errors.ts";
import { sameSet } from "../../../../allocator/base/same-set.ts";
import type { Address } from "../../../../allocator/ip/address.ts";
import { isDetached } from "../../../../allocator/lifecycle/bind.ts";
import type { Claim } from "../../../../allocator/model/claim.ts";
import type { Store } from "../../../../allocator/store/store.ts";
import type { Attachment } from "../../journal/attachment.ts";

/** A container that is attached, and was answered so. */
export interface InUse {
  readonly claim: string;
  readonly containerID: string;
  readonly addresses: readonly Address[];
}

/** None for one whose addresses are of no claim. */
export function inUseOf({ claim, containerID, result }: Attachment): readonly InUse[] {
  if (claim === undefined) return [];
  return [{ claim, containerID, addresses: result.addresses.map(({ address }) => address) }];
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
