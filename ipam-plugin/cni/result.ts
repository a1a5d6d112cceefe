// SPDX-License-Identifier: Apache-2.0
import { type Address, type Family, familyOf } from "../../allocator/ip/address.ts";
import type { DnsSpec, RouteSpec } from "../../allocator/pool/pool-spec.ts";
import { atLeast, type Version } from "./versions.ts";

/** One address as the main plugin configures it: with the prefix length of its subnet. */
export interface ResultAddress {
  readonly address: Address;
  readonly prefixLength: number;
  readonly gateway?: Address;
}

/** `dst` is a network in canonical text, host bits kept; the numbers exist from 1.1.0 on. */
export type Route = RouteSpec;
export type Dns = DnsSpec;

/** The result of an ADD, whatever the version. `addresses` is not empty: main plugins fail on such a success. */
export interface IpamResult {
  readonly addresses: readonly ResultAddress[];
  readonly routes: readonly Route[];
  readonly dns: Dns;
}

/** What goes to stdout, in the form of the configuration's version (SPEC, "Success" of each version). */
export function resultAnswer(version: Version, result: IpamResult): string {
  const body = atLeast(version, "0.3.0") ? listed(version, result) : byFamily(result);
  return `${JSON.stringify({ cniVersion: version, ...body, dns: result.dns }, null, 4)}\n`;
}

/** From 0.3.0: a list of addresses; `version` is text, and gone from 1.0.0 on. */
function listed(version: Version, { addresses, routes }: IpamResult): object {
  const ips = addresses.map((entry) => ({
    ...(atLeast(version, "1.0.0") ? {} : { version: familyOf(entry.address) === "IPv4" ? "4" : "6" }),
    address: cidrOf(entry),
    ...gatewayOf(entry),
  }));
  const form = atLeast(version, "1.1.0") ? fullRoute : plainRoute;
  return { ips, ...(routes.length === 0 ? {} : { routes: routes.map(form) }) };
}

/** Up to 0.2.0: one address per family, and the routes under their family's address. */
function byFamily(result: IpamResult): object {
  return { ...oneFamily("ip4", "IPv4", result), ...oneFamily("ip6", "IPv6", result) };
}

function oneFamily(key: string, family: Family, { addresses, routes }: IpamResult): object {
  const entry = addresses.find(({ address }) => familyOf(address) === family);
  if (entry === undefined) return {};
  const own = routes.filter(({ dst }) => dst.includes(":") === (family === "IPv6")).map(plainRoute);
  return { [key]: { ip: cidrOf(entry), ...gatewayOf(entry), ...(own.length === 0 ? {} : { routes: own }) } };
}

function cidrOf({ address, prefixLength }: ResultAddress): string {
  return `${address}/${prefixLength}`;
}

function gatewayOf({ gateway }: ResultAddress): object {
  return gateway === undefined ? {} : { gateway };
}

function plainRoute({ dst, gw }: Route): object {
  return gw === undefined ? { dst } : { dst, gw };
}

/** 0 is a table and a scope; as mtu, advmss and priority it means "not set" and the reference prints none. */
function fullRoute(route: Route): object {
  const { mtu, advmss, priority, table, scope } = route;
  return {
    ...plainRoute(route),
    ...(mtu ? { mtu } : {}),
    ...(advmss ? { advmss } : {}),
    ...(priority ? { priority } : {}),
    ...(table === undefined ? {} : { table }),
    ...(scope === undefined ? {} : { scope }),
  };
}
