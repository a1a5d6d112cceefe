// SPDX-License-Identifier: Apache-2.0
import type { Block } from "../../allocator/model/block.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { Kind, Records } from "../../allocator/store/store.ts";

/** A record in a few words, as a schedule shows it. */
export function inShort<K extends Kind>(kind: K, record: Records[K]): string {
  if (kind === "claim") return ofClaim(record as Claim);
  if (kind === "block") return ofBlock(record as Block);
  return kind === "reservation" ? ofReservation(record as Reservation) : JSON.stringify(record);
}

function ofClaim({ addresses, nonce, binding, releasing, handMade, retained, status }: Claim): string {
  return words([
    `[${addresses.join(" ")}]`,
    nonce === "" ? "no nonce" : `nonce ${nonce}`,
    binding &&
      (binding.node === "" ? `held for ${binding.token}` : `bound to ${binding.podUID} on ${binding.node}`),
    releasing && "releasing",
    retained && "retained",
    handMade && "made by hand",
    status.attachment?.detached && "detached",
  ]);
}

function ofReservation({ address, claim, nonce, marked, releasedAt }: Reservation): string {
  const cooling = releasedAt !== undefined && "cooling";
  return words([`${address} for ${claim.name}`, `nonce ${nonce}`, marked && "marked", cooling]);
}

function ofBlock({ node, holes, granted, recalledAt, releasedAt, division, status }: Block): string {
  const without = holes.length > 0 && `without ${holes.join(" ")}`;
  return words([
    `for ${node}`,
    without,
    granted && "granted",
    recalledAt !== undefined && "recalled",
    status?.returnedAt !== undefined && "returned",
    status?.returnedAddresses && `without ${status.returnedAddresses.join(" ")} that were returned`,
    releasedAt !== undefined && "cooling",
    division && `divided: ${division}`,
  ]);
}

function words(parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== false).join(", ");
}
