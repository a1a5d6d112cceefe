// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { addressOfMac, parseMac } from "../../allocator/ip/mac.ts";

/** The address that an operand is, or that a MAC address is kept as; undefined: it is neither. */
export function addressNamed(operand: string): Address | undefined {
  const mac = parseMac(operand);
  return mac === undefined ? parseAddress(operand) : addressOfMac(mac);
}
