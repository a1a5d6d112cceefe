// SPDX-License-Identifier: Apache-2.0

import type { Address } from "../ip/address.ts";
import { type Block, isReturned, returnedOf } from "../model/block.ts";

/** Who has an address that is in a block: its node, or nobody any more. */
type BlockUse = "owned" | "given-back" | "address-given-back";

/** `block` is the smallest that has the address. */
export function useOf(block: Block, address: Address): BlockUse {
  if (block.releasedAt !== undefined || isReturned(block)) return "given-back";
  return returnedOf(block).includes(address) ? "address-given-back" : "owned";
}

/** Why a fixed pod does not get the address, and what helps. */
export function inBlockWords(
  block: Block,
  address: Address,
): { readonly how: string; readonly next: string } {
  const { cidr, node, division, within } = block;
  const whole = `list it in spec.reserved of the pool, which takes effect when nodes have given back all of ${within ?? cidr}`;
  switch (useOf(block, address)) {
    case "owned":
      return {
        how: `is in block ${cidr} of node ${node}, for pods that need no fixed address`,
        next:
          division === undefined && within === undefined
            ? "list it in spec.reserved of the pool, which takes effect when the node has given the block back"
            : whole,
      };
    case "address-given-back":
      return {
        how: `is in block ${cidr}, and was given back by node ${node} for pods of any node that need no fixed address`,
        next: whole,
      };
    case "given-back":
      return {
        how: `is in block ${cidr}, which node ${node} has given back and which is cooling down`,
        next: division === undefined && within === undefined ? "try again later" : whole,
      };
  }
}
