// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "./errors.ts";
import type { RangeSpec } from "./range.ts";
import { checkSelector, type LabelSelector } from "./selector.ts";
import { flag, list, object, oneOf, text, textLike, whole } from "./shape.ts";

/** A route that the pod gets; fields as in a CNI 1.1 result. `gw` absent: the gateway of the pod's range. */
export interface RouteSpec {
  readonly dst: string;
  readonly gw?: string;
  readonly mtu?: number;
  readonly advmss?: number;
  readonly priority?: number;
  readonly table?: number;
  readonly scope?: number;
}

/** As in a CNI result, for main plugins that write the pod's resolv.conf. */
export interface DnsSpec {
  readonly nameservers?: readonly string[];
  readonly domain?: string;
  readonly search?: readonly string[];
  readonly options?: readonly string[];
}

/** The `spec` of an IPPool. */
export interface PoolSpec {
  readonly ranges: readonly RangeSpec[];
  /** Addresses, `a-b` or CIDRs that are given by explicit request only. */
  readonly reserved?: readonly string[];
  readonly routes?: readonly RouteSpec[];
  readonly dns?: DnsSpec;
  /** Prefix lengths of the blocks that nodes own; absent: every address is claimed one by one. */
  readonly blockSize?: { readonly ipv4?: number; readonly ipv6?: number };
  /** Absent: every node, namespace, pod. */
  readonly nodeSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly podSelector?: LabelSelector;
  /** Among the pools that match: higher first, then the name. Default 0. */
  readonly priority?: number;
  readonly limits?: { readonly perNamespace?: number };
  /** ServiceAccount: the pod's ServiceAccount needs the verb `use` on the pool. Default Namespace. */
  readonly authorization?: "Namespace" | "ServiceAccount";
  /** Go duration before a released address may go to another identity. Default 30s. */
  readonly cooldown?: string;
  /** No new reservations; existing ones stay. */
  readonly disabled?: boolean;
}

export const MOST_RANGES = 256;
const MOST_INTERVALS = 4096;
/** resolv.conf is lines of words: anything that ends a word or a line would write other directives. */
const DOMAIN = /^[A-Za-z0-9_.-]+$/;
const RESOLVER_OPTION = /^[a-z0-9-]+(?::[0-9]+)?$/;

const INTERVALS = list(text(100), MOST_INTERVALS);
const RANGE = object({ cidr: text(), from: text(), to: text(), gateway: text(), exclude: INTERVALS }, [
  "cidr",
]);

/** Bounds of netlink: mtu and advmss 16 bits, metric and table 32, scope 8. An IPv4 link carries 68 bytes at least. */
const ROUTE = object(
  {
    dst: text(),
    gw: text(),
    mtu: whole(68, 65_535),
    advmss: whole(1, 65_535),
    priority: whole(0, 4_294_967_295),
    table: whole(0, 4_294_967_295),
    scope: whole(0, 255),
  },
  ["dst"],
);

const DNS = object({
  nameservers: list(text(), 16),
  domain: textLike(DOMAIN, "example.org"),
  search: list(textLike(DOMAIN, "example.org"), 32),
  options: list(textLike(RESOLVER_OPTION, "ndots:5"), 32),
});

const SPEC = object(
  {
    ranges: list(RANGE, MOST_RANGES),
    reserved: INTERVALS,
    routes: list(ROUTE, 256),
    dns: DNS,
    blockSize: object({ ipv4: whole(1, 32), ipv6: whole(1, 128) }),
    nodeSelector: checkSelector,
    namespaceSelector: checkSelector,
    podSelector: checkSelector,
    priority: whole(-2_147_483_648, 2_147_483_647),
    limits: object({ perNamespace: whole(1, 2_147_483_647) }),
    authorization: oneOf("Namespace", "ServiceAccount"),
    cooldown: text(),
    disabled: flag,
  },
  ["ranges"],
);

/** Checks the form of a spec from outside, field by field; what the fields mean together is for parsePool. */
export function readPoolSpec(spec: unknown): PoolSpec | Refusal {
  return SPEC(spec, "spec") ?? (spec as PoolSpec);
}
