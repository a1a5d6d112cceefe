// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { addressOfMac, parseMac } from "../../allocator/ip/mac.ts";

/** The address that an operand is, or that a MAC address is kept as; undefined: it is neither. */
export function addressNamed(operand: string): Address | undefined {
  const mac = parseMac(operand);
  return mac === undefined ? parseAddress(operand) : addressOfMac(mac);
}

/** The same beside names: "02-00-00-00-00-51" and "0200.0000.0051" may be some, and with colons none is. */
export function addressUnlessName(operand: string): Address | undefined {
  return operand.includes(":") ? addressNamed(operand) : parseAddress(operand);
}
