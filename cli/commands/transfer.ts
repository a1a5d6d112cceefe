// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Subject } from "../apply/object-ref.ts";

/** A claim that may be given up, and the new one that takes over from it. */
export interface Transfer {
  readonly seen: Stored<"claim">;
  readonly subject: Subject;
}

/** One attempt; `changed`: the claim is no longer what was seen, and everything is as it was. */
export type Moved = { readonly kind: "moved"; readonly addresses: readonly string[] } | "changed" | Refusal;
/** Why the name cannot be the successor's; undefined for one that is there and waits, which a broken-off attempt leaves. */
export function successorConflict(there: Stored<"claim">, { seen }: Transfer): Refusal | undefined {
  const { handMade, nonce, takesOver, addresses } = there.record;
  if (handMade === true && nonce === "" && takesOver === seen.record.name) return undefined;
  const has = addresses.length === 0 ? "has no addresses yet" : `holds ${sayMacs(addresses.join(", "))}`;
  return refuse(
    "CLAIM_CHANGED",
    `claim ${there.key} exists already and ${has}; name a claim that does not exist`,
    {
      claim: there.key,
    },
  );
}
