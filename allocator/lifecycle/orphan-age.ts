// SPDX-License-Identifier: Apache-2.0
// From when on a reservation without its claim may be taken for an orphan by others, and what its reserver knows by that (ADR 0044).

import type { Context } from "../cache/context.ts";
import type { Store, Stored } from "../store/store.ts";
import type { Acquired } from "./acquire.ts";

/**
 * After this long a reservation without its claim was left by a crash, not by a reserver at work. Nobody but its reserver marks a
 * younger one. More than a second: see `wereLeftAlone`.
 */
const BROKEN_OFF_MS = 1_500;

export function isBrokenOff(
  { clock }: Pick<Context, "clock">,
  { createdAt }: Stored<"reservation">,
): boolean {
  return clock.now() - createdAt >= BROKEN_OFF_MS;
}

/**
 * Whether no reservation can have been marked before its claim was there, by what the store says of both: it made them in the same
 * second, and others leave alone for longer than that what has no claim yet. False: nobody knows, and they are to be read.
 * For a claim that is new, with a nonce that nobody else has.
 */
export function wereLeftAlone(
  { stampsSeconds }: Pick<Store, "stampsSeconds">,
  took: readonly Acquired[],
  { createdAt }: Stored<"claim">,
): boolean {
  const isFresh = ({ stored, cooling, alreadyHeld }: Acquired) =>
    cooling === undefined && alreadyHeld !== true && stored.createdAt === createdAt;
  return stampsSeconds === true && took.every(isFresh);
}
