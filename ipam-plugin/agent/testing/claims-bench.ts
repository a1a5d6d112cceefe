// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import { reserve } from "../../../allocator/lifecycle/reserve.ts";
import { readObject } from "../../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { addrs } from "../../../test/support/fixtures.ts";
import type { World } from "../../../test/support/world.ts";
import type { AttachRequest, ClaimResult, NoClaim } from "../claims/claim-source.ts";
import { EmbeddedClaims, type EmbeddedClaimsOptions } from "../claims/embedded.ts";

/** The signal of an ADD that nobody gives up. */
export const LIVE = new AbortController().signal;

/** Of the agent on node `here`; claims that may have lost what they were kept for go to `suspects`. */
export function optionsOf({ context, objects }: World, suspects: Claim[] = []): EmbeddedClaimsOptions {
  return { context, inventory: objects, node: "here", enqueueForGc: (claim) => void suspects.push(claim) };
}

/** What `optionsOf` gives, running. */
export function claimsOf(world: World, suspects: Claim[] = []): EmbeddedClaims {
  return new EmbeddedClaims(optionsOf(world, suspects));
}

/** A claim of that name for exactly this address, as admission would have made it. */
export async function pin(world: World, name: string, ...addresses: readonly string[]): Promise<void> {
  const given = addrs(...addresses);
  const got = await reserve(
    world.context,
    {
      key: { namespace: "shop", name },
      identity: { kind: "Pod", apiVersion: "v1", name },
      request: { addresses: given },
      retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
      constraints: { namespace: "shop", name, namespaceLabels: {}, podLabels: {}, addresses: given },
    },
    "pod",
  );
  assert.equal(got.kind, "reserved");
  await world.settle();
}

/** The pod `shop/<name>` as the API server has it. */
export async function keepPod(
  world: World,
  name: string,
  annotations: Record<string, string>,
): Promise<void> {
  const metadata = { namespace: "shop", name, uid: `uid-${name}`, annotations };
  const pod = readObject({ apiVersion: "v1", kind: "Pod", metadata, spec: {} });
  if (isRefusal(pod)) throw new TypeError(pod.message);
  await world.objects.keep(pod);
}

/** Found and, if there is a claim, attached. */
export async function attach(
  claims: EmbeddedClaims,
  request: AttachRequest,
): Promise<ClaimResult | NoClaim | Refusal> {
  const found = await claims.find(request, LIVE);
  return found.kind === "found" ? await claims.attach(found, request, LIVE) : found;
}

/** Attached; fails the test if it is not. */
export async function assignedClaim(claims: EmbeddedClaims, request: AttachRequest): Promise<ClaimResult> {
  const got = await attach(claims, request);
  assert.equal(got.kind, "claimed", JSON.stringify(got));
  return got as ClaimResult;
}

/** The claim as the store has it; throws if there is none. */
export async function claimAt(world: World, key: string): Promise<Stored<"claim">> {
  const stored = await world.realStore.get("claim", key);
  if (stored === undefined) throw new Error(`no claim ${key}`);
  return stored;
}
