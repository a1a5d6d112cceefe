// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { type CniError, cniError } from "./errors.ts";
import type { Fields } from "./json-fields.ts";

/** An address of `prevResult`. It is the result of the whole chain: other plugins may have added to it. */
export interface PreviousAddress {
  readonly address: Address;
  readonly gateway?: Address;
}

/** The addresses of `prevResult`, in the form of any version; undefined when there is none (SPEC section 2, CHECK). */
export function readPrevious(fields: Fields): readonly PreviousAddress[] | CniError | undefined {
  const previous = fields.section("prevResult");
  if (previous === undefined) return fields.problem;
  const entries = previous.sections("ips").map((entry) => ({ entry, text: entry.text("address") }));
  for (const key of ["ip4", "ip6"]) {
    const entry = previous.section(key);
    if (entry !== undefined) entries.push({ entry, text: entry.text("ip") });
  }
  const addresses: PreviousAddress[] = [];
  for (const { entry, text = "" } of entries) {
    const address = parseAddress(text.split("/", 1)[0] ?? "");
    if (address === undefined)
      return cniError("DECODING_FAILURE", `prevResult: invalid CIDR address: ${text}`);
    const gateway = parseAddress(entry.text("gateway") ?? "");
    addresses.push(gateway === undefined ? { address } : { address, gateway });
  }
  return fields.problem ?? addresses;
}
