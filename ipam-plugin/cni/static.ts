// SPDX-License-Identifier: Apache-2.0
import { type Address, familyOf, lastOf, parseCidr, toNumber } from "../../allocator/ip/address.ts";
import type { CniArgs } from "./args.ts";
import { type CniError, cniError, isCniError } from "./errors.ts";
import { checkFamilies, type IpamConfig } from "./ipam-config.ts";
import type { Requested } from "./requested.ts";
import type { ResultAddress } from "./result.ts";
import type { Version } from "./versions.ts";

/**
 * The addresses that configuration and runtime write out, as the static plugin takes them: CNI_ARGS adds to
 * `ipam.addresses`, args.cni.ips replaces both, runtimeConfig.ips replaces all. They need their prefix.
 */
export function staticAddresses(
  { addresses, requests }: IpamConfig,
  version: Version,
  args: CniArgs,
): readonly ResultAddress[] | CniError {
  const replacing = requests.runtimeConfig.length > 0 ? requests.runtimeConfig : requests.argsCni;
  const chosen =
    replacing.length > 0
      ? withPrefixes(replacing, "an entry in the 'ips' field is NOT in CIDR notation")
      : withPrefixes(requests.cniArgs, "the 'ip' field is expected to be in CIDR notation");
  if (isCniError(chosen)) return chosen;
  const added = chosen.map((entry) => routed(entry, args.gateways));
  const all = replacing.length > 0 ? chosen : [...addresses, ...added];
  return (
    checkFamilies(
      version,
      all.map(({ address }) => familyOf(address)),
    ) ?? all
  );
}

function withPrefixes(requests: readonly Requested[], words: string): readonly ResultAddress[] | CniError {
  const addresses: ResultAddress[] = [];
  for (const { address, prefixLength, text } of requests) {
    if (prefixLength === undefined) return cniError("INVALID_CONFIG", `${words}, got: '${text}'`);
    addresses.push({ address, prefixLength });
  }
  return addresses;
}

/** A gateway of CNI_ARGS belongs to each address of CNI_ARGS whose subnet contains it; the last one wins. */
function routed(entry: ResultAddress, gateways: readonly Address[]): ResultAddress {
  const subnet = parseCidr(`${entry.address}/${entry.prefixLength}`);
  const gateway = gateways.findLast((candidate) => {
    if (subnet === undefined || familyOf(candidate) !== subnet.family) return false;
    const n = toNumber(candidate);
    return n >= subnet.base && n <= lastOf(subnet);
  });
  return gateway === undefined ? entry : { ...entry, gateway };
}
