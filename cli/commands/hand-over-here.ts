// SPDX-License-Identifier: Apache-2.0
// `berthctl release --to` on a data folder, or in the etcd that hosts share: nobody but the calls themselves finishes it.

import { BerthError, isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { dryRun } from "../../allocator/demand/allocation-dry-run.ts";
import { requestFromSpec } from "../../allocator/demand/build-request.ts";
import { type AllocationRequest, takingOver } from "../../allocator/lifecycle/allocation-request.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { readClaimRequest } from "../../allocator/manifest/claim-spec.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { type ClusterState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import { MAX_ATTEMPTS } from "../../allocator/store/retry-on-conflict.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Subject } from "../apply/object-ref.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { type Moved, type Mover, refusedOf, successorConflict, type Transfer } from "./transfer.ts";

interface Place {
  readonly world: ClusterState;
}

/** The new claim, and what it asks for. */
interface Wanted {
  readonly claim: Claim;
  readonly request: AllocationRequest;
}

export function movesHere(place: Place): Mover {
  return {
    move: (context, transfer) => moveHere(place, context, transfer),
    finish: async (context, { successor }) =>
      await takeOver(context, await wantedBy(place, context, successor.record)),
  };
}

/** What would become of it. */
export function triesHere(place: Place): Mover {
  return {
    move: (context, transfer) => tryHere(place, context, transfer),
    finish: async (context, { successor }) => {
      const { request } = await wantedBy(place, context, successor.record);
      const would = await dryRun({ ...context, view: await loadCache(context.store) }, request);
      return isRefusal(would)
        ? would
        : { kind: "moved", addresses: successor.record.request.addresses ?? [] };
    },
  };
}

async function tryHere(place: Place, context: Context, transfer: Transfer): Promise<Moved> {
  const { seen, subject } = transfer;
  const wanted = await wantedFor(place, context, subject);
  if (isRefusal(wanted)) return wanted;
  const would = await dryRun({ ...context, view: await loadCache(context.store) }, wanted.request);
  if (isRefusal(would)) return would;
  const there = await context.store.get("claim", claimKey(subject));
  const conflict = there && successorConflict(there, transfer);
  return conflict ?? { kind: "moved", addresses: seen.record.addresses };
}

/**
 * The new claim, then the end of the old one, then the addresses by compare-and-set on their reservations. Whoever looks in
 * between finds them reserved, and whoever says the same again goes on from there.
 */
async function moveHere(place: Place, context: Context, transfer: Transfer): Promise<Moved> {
  const { store } = context;
  const { seen, subject } = transfer;
  const wanted = await wantedFor(place, context, subject);
  if (isRefusal(wanted)) return wanted;
  const would = await dryRun({ ...context, view: await loadCache(store) }, wanted.request);
  if (isRefusal(would)) return await refusedOf(store, transfer, would);
  const made = await store.create("claim", wanted.claim);
  const conflict = made.kind === "exists" ? successorConflict(made.stored, transfer) : undefined;
  if (conflict !== undefined) return await refusedOf(store, transfer, conflict);
  if ((await store.remove("claim", seen)).kind === "removed") return await takeOver(context, wanted);
  if (made.kind === "created") await takeBack(context, made.stored, seen.key);
  return "changed";
}

/** What this call has made and nobody has changed; with the old claim gone another call relies on it. */
async function takeBack({ store }: Context, made: Stored<"claim">, from: string): Promise<void> {
  if ((await store.get("claim", from)) !== undefined) await store.remove("claim", made);
}

/** The old claim is gone. Whatever ends this call leaves the new one waiting, which a repeat goes on from. */
async function takeOver(context: Context, { claim, request }: Wanted): Promise<Moved> {
  const { store } = context;
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    await store.create("claim", claim); // another call, which had made it, may have taken it back
    const now = { ...context, view: await loadCache(store) };
    const got = await reserve(now, { ...request, userRequested: true }, "pod").catch(whileAnotherCall);
    if (got === "changed") return got;
    if (!isRefusal(got)) return { kind: "moved", addresses: got.claim.record.addresses };
    const there = await store.get("claim", claimKey(claim));
    if (there !== undefined) return there.record.nonce === "" ? stillWaits(claim, got) : "changed";
  }
  return "changed";
}

/** Two calls that reserve the same get in each other's way; one of them gets through. */
function whileAnotherCall(error: unknown): "changed" {
  if (error instanceof BerthError && error.code === "REVISION_CONFLICT") return "changed";
  throw error;
}

function stillWaits(claim: Claim, { code, message, details }: Refusal): Refusal {
  const key = claimKey(claim);
  const words = `claim ${claim.takesOver} is released, and ${key}, which takes over from it, has no addresses: ${message}; say the same again when that is solved, or give it up with: berthctl release ${key}`;
  return refuse(code, words, details);
}

async function wantedFor(place: Place, context: Context, { json }: Subject): Promise<Wanted | Refusal> {
  const object = readObject(json);
  const claim = isRefusal(object) ? object : readClaimRequest(object);
  return isRefusal(claim) ? claim : await wantedBy(place, context, claim);
}

/** The old claim is unused or its user is overruled: what it leaves need not cool first. */
async function wantedBy({ world }: Place, { clock, random }: Context, claim: Claim): Promise<Wanted> {
  const namespace = await namespaceOf(world, claim.namespace);
  const request = requestFromSpec(claim, namespace, { token: random.token(), now: clock.now() });
  return { claim, request: takingOver(request, { name: claim.takesOver ?? "", wasUnused: true }) };
}
