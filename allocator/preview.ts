// SPDX-License-Identifier: Apache-2.0
import type { Address } from "./address.ts";
import { type Claim, claimKey } from "./claim.ts";
import { followed } from "./claim-ask.ts";
import type { Context } from "./context.ts";
import { isRefusal, type Refusal } from "./errors.ts";
import { barredFrom, stuckWith } from "./objections.ts";
import { type Lot, planAddresses } from "./plan.ts";
import { taken } from "./refusals.ts";
import { isHeldBy } from "./reservation.ts";
import type { Intent } from "./reserve.ts";
import { cooledOff } from "./take.ts";
import { lookUpClaim } from "./view.ts";

/** What an identity would get, if nobody came in between. Nothing is written. */
export interface Preview {
  readonly kind: "preview";
  readonly addresses: readonly { readonly address: Address; readonly pool: string; readonly held: boolean }[];
}

export type Previewer = Pick<Context, "view" | "store" | "clock">;

/**
 * The same planning as `reserve`, with reads of the authority in place of creates. `spoken`: addresses that others
 * of the same review would get before it.
 */
export async function preview(
  context: Previewer,
  intent: Intent,
  spoken: ReadonlySet<Address> = new Set(),
): Promise<Preview | Refusal> {
  const key = claimKey(intent.key);
  const known = (await lookUpClaim(context, key))?.record;
  const claim = known?.releasing === true && known.deleting !== true ? undefined : known;
  const barred = barredFrom(claim, intent.identity);
  if (barred !== undefined) return barred;
  const holds = await standingOf(context, claim);
  const { ask } = followed(intent, claim);
  const plan = planAddresses(context.view, { ...ask, holds });
  if (isRefusal(plan)) return plan;
  const moves = plan.lots.length > 0 || plan.keep.length < (claim?.addresses.length ?? 0);
  const stuck = moves && holds.length > 0 ? stuckWith(claim, ask) : undefined;
  if (stuck !== undefined) return stuck;
  const addresses = plan.keep.map((address) => ({
    address,
    pool: context.view.poolOf(address)?.name ?? "",
    held: true,
  }));
  for (const lot of plan.lots) {
    const got = await previewLot(context, lot, key, spoken);
    if (isRefusal(got)) return got;
    addresses.push({ ...got, held: false });
  }
  return { kind: "preview", addresses };
}

/** The addresses of the claim that are reserved for it. */
async function standingOf(context: Previewer, claim: Claim | undefined): Promise<Address[]> {
  const standing: Address[] = [];
  for (const address of claim?.addresses ?? []) {
    const shown = context.view.reservation(address) ?? (await context.store.get("reservation", address));
    if (shown !== undefined && isHeldBy(shown.record, claim?.nonce ?? "")) standing.push(address);
  }
  return standing;
}

async function previewLot(
  context: Previewer,
  lot: Lot,
  key: string,
  spoken: ReadonlySet<Address>,
): Promise<{ address: Address; pool: string } | Refusal> {
  let besides = 0;
  for (const candidate of lot.candidates) {
    if (spoken.has(candidate.address)) {
      besides++;
      continue;
    }
    const found = await context.store.get("reservation", candidate.address);
    const own = found === undefined || claimKey(found.record.claim) === key;
    if (own || cooledOff(context, found)) return candidate;
    if (!lot.exact) continue;
    const pool = context.view.pool(candidate.pool);
    return pool === undefined ? lot.exhausted() : taken(context.view, pool, candidate.address, found.record);
  }
  return lot.exhausted(besides);
}

/** In words, for warnings of a dry run. */
export function describePreview(who: string, { addresses }: Preview): string {
  const parts = addresses.map(
    ({ address, pool, held }) => `${address} ${held ? "(its own)" : `from pool ${pool}`}`,
  );
  return `${who} would get ${parts.join(" and ")}`;
}
