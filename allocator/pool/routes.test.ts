// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../base/errors.ts";
import type { RangeSpec } from "../ip/ip-range.ts";
import { readSpace } from "./address-space.ts";
import type { RouteSpec } from "./pool-spec.ts";
import { checkRoutes } from "./routes.ts";

function messageFor(ranges: readonly RangeSpec[], route: RouteSpec): string | undefined {
  const space = readSpace({ ranges, reserved: ["10.0.0.40"] });
  assert.ok(!isRefusal(space), isRefusal(space) ? space.message : "");
  const refusal = checkRoutes([{ dst: "192.168.0.0/16" }, route], space);
  assert.equal(refusal === undefined ? undefined : refusal.code, refusal && "POOL_INVALID");
  return refusal?.message;
}

const dual: readonly RangeSpec[] = [
  { cidr: "10.0.0.0/24", from: "10.0.0.20", gateway: "10.0.0.254", exclude: ["10.0.0.30"] },
  { cidr: "fd00::/64", from: "fd00::20", gateway: "fd00::1" },
];
const bare: readonly RangeSpec[] = [
  { cidr: "10.0.0.0/24", from: "10.0.0.20", gateway: "10.0.0.254" },
  { cidr: "10.0.1.0/24" },
  { cidr: "fd00::/64" },
];

describe("checkRoutes", () => {
  for (const { name, ranges = dual, route } of [
    { name: "a default route by the range's gateway", route: { dst: "0.0.0.0/0" } },
    { name: "an IPv6 default route by the range's gateway", route: { dst: "::/0" } },
    {
      name: "a default route by a router outside the range's bounds",
      route: { dst: "0.0.0.0/0", gw: "10.0.0.1" },
    },
    {
      name: "an IPv6 route by a router outside the range's bounds",
      route: { dst: "fd01::/64", gw: "fd00::2" },
    },
    { name: "a route by an excluded address", route: { dst: "10.9.0.0/16", gw: "10.0.0.30" } },
    { name: "a route by a pod that is asked for by name", route: { dst: "10.9.0.0/16", gw: "10.0.0.40" } },
    { name: "a route by a gateway", route: { dst: "10.9.0.0/16", gw: "10.0.0.254" } },
    { name: "a route to one host", route: { dst: "10.9.0.1/32", gw: "10.0.0.1" } },
    { name: "a route on the link, without any gateway", ranges: bare, route: { dst: "10.9.0.0/16" } },
    {
      name: "a default route whose router is named",
      ranges: bare,
      route: { dst: "0.0.0.0/0", gw: "10.0.0.1" },
    },
  ]) {
    it(`accepts ${name}`, () => assert.equal(messageFor(ranges, route), undefined));
  }

  for (const { ranges = dual, route, message } of [
    { route: { dst: "10.9.0.0" }, message: '.dst "10.9.0.0" is not a CIDR such as 10.0.0.0/24 or fd00::/64' },
    { route: { dst: "10.9.0.1/16" }, message: ".dst 10.9.0.1/16 has host bits; write 10.9.0.0/16" },
    {
      ranges: [{ cidr: "10.0.0.0/24" }],
      route: { dst: "::/0" },
      message: ".dst ::/0 is IPv6 and the pool has no IPv6 range; add one or drop the route",
    },
    { route: { dst: "10.9.0.0/16", gw: "router" }, message: '.gw "router" is not an IP address' },
    { route: { dst: "10.9.0.0/16", gw: "fd00::1" }, message: ".gw fd00::1 is IPv6; give an IPv4 address" },
    { route: { dst: "fd01::/64", gw: "10.0.0.1" }, message: ".gw 10.0.0.1 is IPv4; give an IPv6 address" },
    {
      route: { dst: "10.9.0.0/16", gw: "10.0.1.1" },
      message:
        ".gw 10.0.1.1 is in no network of the pool, so that pods cannot reach it; give an address of a range's cidr",
    },
    {
      route: { dst: "fd01::/64", gw: "fd00::20" },
      message: ".gw fd00::20 could be given to a pod; exclude it from its range or list it in spec.reserved",
    },
    {
      ranges: bare,
      route: { dst: "0.0.0.0/0" },
      message: " 0.0.0.0/0 has no gw and spec.ranges[1] has no gateway; give one of the two",
    },
    {
      ranges: bare,
      route: { dst: "::/0" },
      message: " ::/0 has no gw and spec.ranges[2] has no gateway; give one of the two",
    },
  ]) {
    it(`refuses ${JSON.stringify(route)}${ranges === dual ? "" : " with other ranges"}`, () => {
      assert.equal(messageFor(ranges, route), `spec.routes[1]${message}`);
    });
  }
});
