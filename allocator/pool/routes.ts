// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../base/errors.ts";
import { invalidPool } from "../base/validation.ts";
import type { Cidr, Family } from "../ip/address.ts";
import { readAddress, readNetwork } from "../ip/ip-range.ts";
import { type AddressSpace, classify, isInNetwork } from "./address-space.ts";
import type { RouteSpec } from "./pool-spec.ts";

/** What is wrong with a pool's routes; undefined: a pod with an address of any of the ranges can use them. */
export function checkRoutes(routes: readonly RouteSpec[], space: AddressSpace): Refusal | undefined {
  for (const [i, route] of routes.entries()) {
    const refusal = checkRoute(route, space, `spec.routes[${i}]`);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function checkRoute(route: RouteSpec, space: AddressSpace, where: string): Refusal | undefined {
  const dst = readNetwork(route.dst, `${where}.dst`);
  if (isRefusal(dst)) return dst;
  if (!space.families.includes(dst.family)) {
    return invalidPool(
      `${where}.dst`,
      `${dst.text} is ${dst.family} and the pool has no ${dst.family} range; add one or drop the route`,
    );
  }
  if (route.gw !== undefined) return checkNextHop(route.gw, dst.family, space, `${where}.gw`);
  return dst.prefixLength === 0 ? checkDefault(dst, space, where) : undefined;
}

/** A next hop that an ordinary pod could be given would turn that pod into the router. */
function checkNextHop(text: string, family: Family, space: AddressSpace, field: string): Refusal | undefined {
  const gw = readAddress(text, family, field);
  if (isRefusal(gw)) return gw;
  if (!isInNetwork(space, gw)) {
    return invalidPool(
      field,
      `${gw} is in no network of the pool, so that pods cannot reach it; give an address of a range's cidr`,
    );
  }
  if (classify(space, gw) !== "open") return undefined;
  return invalidPool(
    field,
    `${gw} could be given to a pod; exclude it from its range or list it in spec.reserved`,
  );
}

/** Without `gw` a route goes by the gateway of the range that the pod's address is from. */
function checkDefault(dst: Cidr, space: AddressSpace, where: string): Refusal | undefined {
  const without = space.ranges.findIndex(
    (range) => range.family === dst.family && range.gateway === undefined,
  );
  if (without < 0) return undefined;
  return invalidPool(
    where,
    `${dst.text} has no gw and spec.ranges[${without}] has no gateway; give one of the two`,
  );
}
