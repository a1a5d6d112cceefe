// SPDX-License-Identifier: Apache-2.0

import { bitsOf, FAMILIES, parseCidr } from "../ip/address.ts";
import type { PoolSpec } from "./pool-spec.ts";

type BlockSize = NonNullable<PoolSpec["blockSize"]>;
type Spec = Readonly<Record<string, unknown>>;

/**
 * The size of blocks that a pool gets whose spec says none: single addresses, if it is made to serve pods that ask for nothing
 * (`default`), and what it has been made with, as long as it stands. Undefined: the spec stays as it is. Whether a pool has blocks is
 * settled when it is made, for a fixed address looks for a block only in a pool that has some (ADR 0020).
 */
export function settledSize(spec: Spec, before?: Spec): BlockSize | undefined {
  if ((spec["blockSize"] ?? undefined) !== undefined) return undefined;
  if (before !== undefined) return isOfSingles(before["blockSize"]) ? before["blockSize"] : undefined;
  return spec["default"] === true ? singlesOf(spec["ranges"]) : undefined;
}

/** The spec with that size. */
export function withSettledSize(spec: Spec, before?: Spec): Spec {
  const blockSize = settledSize(spec, before);
  return blockSize === undefined ? spec : { ...spec, blockSize };
}

function singlesOf(ranges: unknown): BlockSize | undefined {
  const cidrs = Array.isArray(ranges) ? ranges.map((range: unknown) => textAt(range, "cidr")) : [];
  const families = new Set(cidrs.map((text) => parseCidr(text)?.family));
  const size = {
    ...(families.has("IPv4") ? { ipv4: bitsOf("IPv4") } : {}),
    ...(families.has("IPv6") ? { ipv6: bitsOf("IPv6") } : {}),
  };
  return FAMILIES.some((family) => families.has(family)) ? size : undefined;
}

function isOfSingles(size: unknown): size is BlockSize {
  if (typeof size !== "object" || size === null) return false;
  const { ipv4, ipv6 } = size as BlockSize;
  if (ipv4 === undefined && ipv6 === undefined) return false;
  return (ipv4 ?? bitsOf("IPv4")) === bitsOf("IPv4") && (ipv6 ?? bitsOf("IPv6")) === bitsOf("IPv6");
}

function textAt(value: unknown, key: string): string {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return "";
  const text = (value as Spec)[key];
  return typeof text === "string" ? text : "";
}
