// SPDX-License-Identifier: Apache-2.0
// Families in other systems' words (Calico's ipFamilies, kube-ovn's ip_family) are of the interface that those systems make: the pod's first.

import type { Refusal } from "../base/errors.ts";
import { type Address, areOfFamilies, type Family } from "../ip/address.ts";
import { isLink } from "../model/interface-macs.ts";
import {
  FIRST_INTERFACE,
  type InterfacePools,
  type Interfaces,
  namesOf,
  saidOf,
} from "../model/interfaces.ts";
import { bad } from "./annotation-values.ts";
import { familyOfPart, partsOfFamily } from "./pool-names.ts";

/** What a pod with several interfaces asks for. */
interface InterfaceRequest {
  readonly interfaces?: Interfaces | undefined;
  readonly interfacePools?: InterfacePools | undefined;
}

/** Pools of each interface with the first's of these families alone. `key` is the annotation that says the families. */
export function withFirstOfFamilies(
  { interfaces = {}, interfacePools = {} }: InterfaceRequest,
  families: readonly Family[],
  key: string,
): InterfacePools | Refusal {
  const addresses = saidOf<readonly Address[]>(interfaces, FIRST_INTERFACE);
  if (addresses !== undefined) {
    return areOfFamilies(addresses, families)
      ? interfacePools
      : bad(key, `it disagrees with the addresses of ${FIRST_INTERFACE}; keep one of the two`);
  }
  const pools = saidOf<readonly string[]>(interfacePools, FIRST_INTERFACE);
  const [family] = families;
  if (pools === undefined || family === undefined) return interfacePools;
  const other = pools.find((name) => !families.includes(familyOfPart(name) ?? family));
  if (other !== undefined)
    return bad(key, `it disagrees with pool ${other} of ${FIRST_INTERFACE}; keep one of the two`);
  if (pools.length === 0)
    return bad(
      key,
      `it is of ${FIRST_INTERFACE}, for which no pool is named; write berth.dev/pools with one, such as db/${family}`,
    );
  const parts = families.flatMap((one) => partsOfFamily(pools, one));
  return { ...interfacePools, [FIRST_INTERFACE]: [...new Set(parts)] };
}

/** Without any, families are of all that the pod asks for. */
export function hasFurtherInterfaces({ interfaces = {}, interfacePools = {} }: InterfaceRequest): boolean {
  const names = namesOf({ ...interfaces, ...interfacePools });
  return names.some((name) => name !== FIRST_INTERFACE && !isLink(name));
}
