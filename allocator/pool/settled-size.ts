// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../base/errors.ts";
import { bitsOf, type Family } from "../ip/address.ts";
import { BlockSpace } from "./blocks.ts";
import { excludesTooMuch } from "./excluded-total.ts";
import { parsePool } from "./pool.ts";
import type { PoolSpec } from "./pool-spec.ts";

type BlockSize = NonNullable<PoolSpec["blockSize"]>;
type Spec = Readonly<Record<string, unknown>>;

/** By these a pool says which pods it is for. */
const SELECTORS = ["namespaceSelector", "podSelector", "nodeSelector", "networks"] as const;

/**
 * The size of blocks that a pool gets whose spec says none: single addresses, if it is made for pods that ask for nothing, as their
 * default, by selectors or by networks, and what it has been made with, as long as it stands. Undefined: the spec stays as it is. Whether a pool has
 * blocks is settled when it is made, for a fixed address looks for a block only in a pool that has some (ADR 0020, 0028, 0041).
 */
export function settledSize(spec: Spec, before?: Spec): BlockSize | undefined {
  if ((spec["blockSize"] ?? spec["nodeCIDRs"] ?? undefined) !== undefined) return undefined;
  if (before !== undefined) return isSettled(before["blockSize"]) ? before["blockSize"] : undefined;
  if (spec["default"] === true) return singlesOf(spec, () => true);
  const size = isForSome(spec) ? singlesOf(spec, hasSome) : undefined;
  // what it is made for is fixed addresses, too: no node has one that no pod needs
  return size && { ...size, ahead: 0 };
}

/** The spec with that size. */
export function withSettledSize(spec: Spec, before?: Spec): Spec {
  const blockSize = settledSize(spec, before);
  return blockSize === undefined ? spec : { ...spec, blockSize };
}

/**
 * Who asks for nothing passes no check of service accounts, and is counted for no limit of its namespace. A pool that says nobody is for
 * fixed addresses alone, unless a network names it in `ipam.pools`, and nobody knows of that when it is made.
 */
function isForSome(spec: Spec): boolean {
  const says = (key: string, of: unknown = spec) =>
    typeof of === "object" && of !== null && ((of as Spec)[key] ?? undefined) !== undefined;
  const isGuarded = spec["authorization"] === "ServiceAccount" || says("perNamespace", spec["limits"] ?? {});
  return !isGuarded && SELECTORS.some((key) => says(key));
}

/** Of a spec that cannot be read nothing is said: it will be refused. */
function singlesOf(spec: Spec, isCut: (space: BlockSpace) => boolean): BlockSize | undefined {
  if (excludesTooMuch(spec) !== undefined) return undefined;
  const { blockSize: _, ...rest } = spec;
  const pool = parsePool({ name: "new", spec: rest });
  if (isRefusal(pool)) return undefined;
  const has = (family: Family) =>
    pool.families.includes(family) && isCut(new BlockSpace(pool, family, bitsOf(family)));
  const size = {
    ...(has("IPv4") ? { ipv4: bitsOf("IPv4") } : {}),
    ...(has("IPv6") ? { ipv6: bitsOf("IPv6") } : {}),
  };
  return has("IPv4") || has("IPv6") ? size : undefined;
}

/** All of it may be reserved, for those who ask for an address. */
function hasSome(space: BlockSpace): boolean {
  return space.count > 0n;
}

/** It was not written by anybody, or says that there are no blocks. */
function isSettled(size: unknown): size is BlockSize {
  if (typeof size !== "object" || size === null) return false;
  const { ipv4 = bitsOf("IPv4"), ipv6 = bitsOf("IPv6") } = size as BlockSize;
  return ipv4 === bitsOf("IPv4") && ipv6 === bitsOf("IPv6");
}
