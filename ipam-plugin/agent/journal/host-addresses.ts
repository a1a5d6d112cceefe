// SPDX-License-Identifier: Apache-2.0
import { networkInterfaces } from "node:os";
import { type Address, parseAddress } from "../../../allocator/ip/address.ts";

/** An address of this host, and the interface that has it. */
export interface HostAddress {
  readonly address: Address;
  readonly interface: string;
}

/** Those that are up in the network namespace of this process, without loopback. */
export function hostAddresses(): readonly HostAddress[] {
  const found: HostAddress[] = [];
  for (const [name, entries = []] of Object.entries(networkInterfaces())) {
    for (const entry of entries) {
      const address = entry.internal ? undefined : parseAddress(entry.address);
      if (address !== undefined) found.push({ address, interface: name });
    }
  }
  return found;
}
