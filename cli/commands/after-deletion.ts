// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../allocator/base/ports.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { type Backend, partialCache } from "../backend/backend.ts";
import { futureOfClaim } from "../explain/pod-facts.ts";
import { describeVerdict, presentContainer } from "../explain/render.ts";
import { freeFrom, freeWords, SEEN_MS } from "./free-from.ts";

/**
 * When others may have the addresses of a pod that was deleted, and what frees them at once, a line each. `before`: its claim as it was. None: the
 * claim stays as it is.
 */
export async function addressesAfterDeletion(
  backend: Pick<Backend, "place" | "store" | "world">,
  before: Claim,
  clock: Clock,
): Promise<readonly string[]> {
  const { store } = backend;
  const key = claimKey(before);
  const claim = await store.get("claim", key);
  if (claim === undefined || claim.record.releasing === true) {
    const context = { store, view: await partialCache(store, before.addresses), clock };
    const until = clock.monotonic() + SEEN_MS;
    const lines: string[] = [];
    for (const address of before.addresses)
      lines.push(freeWords(address, await freeFrom(context, address, until), clock.now()));
    return lines;
  }
  const future = await futureOfClaim(backend, claim, clock.now());
  const { kind } = future.verdict;
  const container = kind === "keep" ? presentContainer(claim.record) : undefined;
  const has = formatHolding(claim.record).join(", ");
  if (container !== undefined) return [`its claim ${key} has ${has} as long as container ${container} is up`];
  if (kind !== "release" && kind !== "retain" && future.waitsUntil === undefined) return [];
  return [
    `its claim ${key} has ${has} still: ${describeVerdict(future)}`,
    `to give it back at once: berthctl release ${key}`,
  ];
}
