// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import type { Claim, ClaimKey } from "../../allocator/model/claim.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import type { Subject } from "../apply/object-ref.ts";

/** A claim that may be given up, and the new one that takes over from it. */
export interface Transfer {
  readonly seen: Stored<"claim">;
  readonly subject: Subject;
  /** What it is not known to be free of, though it is moved by force, in words. */
  readonly forced?: string;
}

/** The old claim is gone already: another call has ended it, or an earlier one that was broken off. */
export interface Succession {
  readonly from: ClaimKey;
  /** The claim that takes over from it: it waits for its addresses, or has them. */
  readonly successor: Stored<"claim">;
}

/** One attempt; `changed`: the claims are no longer what was seen, and whoever looks again goes on from what is there. */
export type Moved = { readonly kind: "moved"; readonly addresses: readonly string[] } | "changed" | Refusal;

/** How it is done, where the claims are. */
export interface Mover {
  readonly move: (context: Context, transfer: Transfer) => Promise<Moved>;
  /** For a successor that waits. */
  readonly finish: (context: Context, succession: Succession) => Promise<Moved>;
}

/** Whether a person made the claim to take over from the one of that name. */
export function isSuccessor({ handMade, takesOver }: Claim, from: string): boolean {
  return handMade === true && takesOver === from;
}

/** A refusal is about claims as they were seen; while another call hands over the same, they are others by now. */
export async function refusedOf(
  store: Pick<Store, "get">,
  { seen }: Transfer,
  refusal: Refusal,
): Promise<Refusal | "changed"> {
  const now = await store.get("claim", seen.key);
  return now?.uid === seen.uid && now.revision === seen.revision ? refusal : "changed";
}

/** Why the name cannot be the successor's; undefined for one that is there and waits, which a broken-off attempt leaves. */
export function successorConflict(there: Stored<"claim">, { seen }: Transfer): Refusal | undefined {
  const { nonce, addresses } = there.record;
  if (nonce === "" && isSuccessor(there.record, seen.record.name)) return undefined;
  const has = addresses.length === 0 ? "has no addresses yet" : `holds ${sayMacs(addresses.join(", "))}`;
  return refuse(
    "CLAIM_CHANGED",
    `claim ${there.key} exists already and ${has}; name a claim that does not exist`,
    {
      claim: there.key,
    },
  );
}
