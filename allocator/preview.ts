// SPDX-License-Identifier: Apache-2.0
import type { Address } from "./address.ts";
import { claimKey } from "./claim.ts";
import type { Context } from "./context.ts";
import { isRefusal, type Refusal } from "./errors.ts";
import { type Lot, planAddresses } from "./plan.ts";
import { taken } from "./refusals.ts";
import type { Intent } from "./reserve.ts";

/** What an identity would get, if nobody came in between. Nothing is written. */
export interface Preview {
  readonly kind: "preview";
  readonly addresses: readonly { readonly address: Address; readonly pool: string; readonly held: boolean }[];
}

export type Previewer = Pick<Context, "view" | "store">;

/** The same planning as `reserve`, with reads of the authority in place of creates. */
export async function preview(context: Previewer, intent: Intent): Promise<Preview | Refusal> {
  const key = claimKey(intent.key);
  const holds = context.view.claim(key)?.record.addresses ?? [];
  const plan = planAddresses(context.view, { ...intent.ask, holds });
  if (isRefusal(plan)) return plan;
  const addresses = plan.keep.map((address) => ({
    address,
    pool: context.view.poolOf(address)?.name ?? "",
    held: true,
  }));
  for (const lot of plan.lots) {
    const got = await previewLot(context, lot, key);
    if (isRefusal(got)) return got;
    addresses.push({ ...got, held: false });
  }
  return { kind: "preview", addresses };
}

async function previewLot(
  context: Previewer,
  lot: Lot,
  key: string,
): Promise<{ address: Address; pool: string } | Refusal> {
  for (const candidate of lot.candidates) {
    const found = await context.store.get("reservation", candidate.address);
    if (found === undefined || claimKey(found.record.claim) === key) return candidate;
    if (!lot.exact) continue;
    const pool = context.view.pool(candidate.pool);
    return pool === undefined ? lot.exhausted() : taken(context.view, pool, candidate.address, found.record);
  }
  return lot.exhausted();
}

/** In words, for warnings of a dry run. */
export function describePreview(who: string, { addresses }: Preview): string {
  const parts = addresses.map(
    ({ address, pool, held }) => `${address} ${held ? "(its own)" : `from pool ${pool}`}`,
  );
  return `${who} would get ${parts.join(" and ")}`;
}
