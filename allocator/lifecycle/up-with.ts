// SPDX-License-Identifier: Apache-2.0

import type { Address } from "../ip/address.ts";
import type { Claim } from "../model/claim.ts";

/**
 * Whether a pod has the claim's addresses, by what its status reports: then it is bound to the claim, whatever was written into it since.
 * One address is enough: the status has those of its first interface alone, and a sandbox has all of them or none.
 */
export function isUpWith({ addresses }: Pick<Claim, "addresses">, reported: ReadonlySet<Address>): boolean {
  return addresses.some((address) => reported.has(address));
}
