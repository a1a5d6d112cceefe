// SPDX-License-Identifier: Apache-2.0
import { type Cidr, type Family, toNumber } from "./address.ts";
import { isRefusal, type Refusal } from "./errors.ts";
import { type PoolSpace, standing } from "./pool-space.ts";
import type { RouteSpec } from "./pool-spec.ts";
import { contains, readAddress, readNetwork, wholeOf } from "./range.ts";
import { wrong } from "./shape.ts";

/** What is wrong with a pool's routes; undefined: a pod with an address of any of the ranges can use them. */
export function checkRoutes(routes: readonly RouteSpec[], space: PoolSpace): Refusal | undefined {
  for (const [i, route] of routes.entries()) {
    const refusal = checkRoute(route, space, `spec.routes[${i}]`);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function checkRoute(route: RouteSpec, space: PoolSpace, where: string): Refusal | undefined {
  const dst = readNetwork(route.dst, `${where}.dst`);
  if (isRefusal(dst)) return dst;
  if (!space.families.includes(dst.family)) {
    return wrong(
      `${where}.dst`,
      `${dst.text} is ${dst.family} and the pool has no ${dst.family} range; add one or drop the route`,
    );
  }
  if (route.gw !== undefined) return checkNextHop(route.gw, dst.family, space, `${where}.gw`);
  return dst.prefixLength === 0 ? checkDefault(dst, space, where) : undefined;
}

/** A next hop that an ordinary pod could be given would turn that pod into the router. */
function checkNextHop(text: string, family: Family, space: PoolSpace, field: string): Refusal | undefined {
  const gw = readAddress(text, family, field);
  if (isRefusal(gw)) return gw;
  const n = toNumber(gw);
  if (!space.ranges.some((range) => range.family === family && contains(wholeOf(range.cidr), n))) {
    return wrong(
      field,
      `${gw} is in no network of the pool, so that pods cannot reach it; give an address of a range's cidr`,
    );
  }
  if (standing(space, gw) !== "open") return undefined;
  return wrong(field, `${gw} could be given to a pod; exclude it from its range or list it in spec.reserved`);
}

/** Without `gw` a route goes by the gateway of the range that the pod's address is from. */
function checkDefault(dst: Cidr, space: PoolSpace, where: string): Refusal | undefined {
  const without = space.ranges.findIndex(
    (range) => range.family === dst.family && range.gateway === undefined,
  );
  if (without < 0) return undefined;
  return wrong(
    where,
    `${dst.text} has no gw and spec.ranges[${without}] has no gateway; give one of the two`,
  );
}
