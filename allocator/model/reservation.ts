// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../ip/address.ts";
import type { Claim, ClaimKey } from "./claim.ts";

/** The record that one address is taken. It is named by the address: creating it is the atomic act. */
export interface Reservation {
  readonly address: Address;
  readonly pool: string;
  readonly claim: ClaimKey;
  /** Equals that of its claim. A reservation whose nonce no claim carries was left by a crash. */
  readonly nonce: string;
  /** The garbage collector means to delete it and is looking at the claim once more (ADR 0001, reserve and collect). */
  readonly marked?: boolean;
  /** Milliseconds since 1970: given back, cooling until its pool's cooldown is over. Only `claim` may have it sooner. */
  readonly releasedAt?: number;
  /** What its pool said of that when it was given back, where that is not the default: it counts once the pool is gone. */
  readonly cooldownMs?: number;
}

/** Taken and in force: neither cooling nor marked for deletion. */
export function isHeldBy(reservation: Reservation, nonce: string): boolean {
  return reservation.nonce === nonce && reservation.releasedAt === undefined && reservation.marked !== true;
}

/** Whether the claim, as it stands, is what the reservation was made for. */
export function isBackedByClaim(claim: Claim | undefined, reservation: Reservation): boolean {
  return (
    claim !== undefined &&
    claim.nonce === reservation.nonce &&
    (claim.releasing === true || claim.addresses.includes(reservation.address))
  );
}
