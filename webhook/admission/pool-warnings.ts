// SPDX-License-Identifier: Apache-2.0
// What of a pool's spec does not do what somebody may think that it does.

import { isRefusal } from "../../allocator/base/errors.ts";
import { listed } from "../../allocator/base/listed.ts";
import { ownedIn } from "../../allocator/cache/block-index.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { bitsOf, FAMILIES, type Family } from "../../allocator/ip/address.ts";
import { formatInterval, intersection } from "../../allocator/ip/ip-range.ts";
import { excludeEachOther } from "../../allocator/planning/node-fit.ts";
import { blockLength } from "../../allocator/pool/blocks.ts";
import { capacity, type Pool, type PoolRecord, parseStoredPool } from "../../allocator/pool/pool.ts";
import type { NodeUse } from "./admission-context.ts";

/** A warning has 256 bytes. */
const NAMED = 3;
/** In mode crd a CiliumNode lists each address, and not more than 256 of a CIDR. */
const LISTED_BITS = 8;
/** Hardly a cache of neighbours or of names goes by an address for longer. */
const LONG_COOLDOWN_MS = 86_400_000;
const SELECTORS = ["namespaceSelector", "podSelector", "nodeSelector"] as const;

interface PoolChange {
  /** Those that are stored. */
  readonly pools: readonly Pool[];
  readonly now: PoolRecord;
  /** Undefined: the pool is made. */
  readonly before: PoolRecord | undefined;
  /** Whether other pools may be named to whoever makes the change. */
  readonly namesOthers: boolean;
}

type Blocks = Pick<RecordReader, "blocksOf">;

/** What is to be said of the pool, and was not to be said of it before the change: nobody is told the same with each one. */
export function newWarnings(view: Blocks, change: PoolChange, nodeUse?: NodeUse): readonly string[] {
  const { now, before } = change;
  const all = (record: PoolRecord) => {
    const pool = parseStoredPool(record);
    if (isRefusal(pool)) return [];
    const own = pool.spec.nodeCIDRs === undefined ? warningsOf(view, change, pool) : [];
    const words = pool.spec.nodeCIDRs === undefined ? ofAddresses(pool) : ofNodes(pool, nodeUse);
    return [...[...words, ...ofCooldown(pool)].map((one) => `pool ${pool.name} ${one}`), ...own];
  };
  const known = new Set(before === undefined ? [] : all(before));
  return all(now).filter((warning) => !known.has(warning));
}

/** One that is to give nothing for a while can be disabled, and keeps its ranges then: of all families. */
function ofAddresses(pool: Pool): readonly string[] {
  if (pool.disabled) return [];
  const lacking = pool.families.filter((family) => capacity(pool, family) === 0n);
  const meant =
    lacking.length === pool.families.length
      ? ", or write disabled: true if that is meant"
      : "; its other addresses it gives";
  return lacking.map(
    (family) =>
      `has no ${family} address to give: every one of its ${family} ranges is excluded or a gateway; change spec.ranges${meant}`,
  );
}

/** Mostly a wrong unit: pods, or nodes, that come and go use up whatever there is. */
function ofCooldown({ spec: { cooldown, nodeCIDRs }, cooldownMs }: Pool): readonly string[] {
  if (cooldownMs <= LONG_COOLDOWN_MS) return [];
  const [each, who] = nodeCIDRs === undefined ? ["address", "pods"] : ["CIDR", "nodes"];
  return [
    `keeps each ${each} from everybody for ${cooldown} after it was given back (spec.cooldown): ${who} that come and go may leave none free; 30s is the default`,
  ];
}

/** Of a pool for CIDRs of nodes: what it is for, and its size, are settled when it is made. */
function ofNodes({ spec }: Pool, given: NodeUse | undefined): readonly string[] {
  const { use, blockSize } = spec.nodeCIDRs ?? {};
  if (given === undefined) return [];
  if (use === "PodCIDR")
    return given.podCIDRs.length > 0
      ? []
      : ["gives nodes nothing as long as nodeCIDRs.families of Berth's chart is empty (docs/networks.md)"];
  if (given.cilium === undefined)
    return ["gives Cilium's nodes nothing as long as cilium.ipam of Berth's chart is empty (docs/cilium.md)"];
  const wrong = FAMILIES.filter((family) => {
    const length = family === "IPv4" ? blockSize?.ipv4 : blockSize?.ipv6;
    const bits = length === undefined ? undefined : bitsOf(family) - length;
    if (bits === undefined) return false;
    return (given.cilium === "crd" && bits > LISTED_BITS) || (given.cilium === "multi-pool" && bits < 2);
  });
  const [least, most] = [bitsOf("IPv4") - 2, bitsOf("IPv4") - LISTED_BITS];
  return wrong.map((family) =>
    given.cilium === "crd"
      ? `has ${family} CIDRs of more than ${2 ** LISTED_BITS} addresses, of which Cilium's mode crd uses ${2 ** LISTED_BITS}; make one with nodeCIDRs.blockSize of /${most} (IPv6: /120) or smaller`
      : `has ${family} CIDRs of which Cilium's mode multi-pool gives pods nothing; make one with nodeCIDRs.blockSize of /${least} (IPv6: /126) or larger`,
  );
}

function warningsOf(view: Blocks, beside: PoolChange, pool: Pool): readonly string[] {
  const { blockSize } = pool.spec;
  const cut = FAMILIES.filter((family) => blockLength(pool, family) !== undefined);
  const all = cut.length > 0 ? ofBlocks(pool, cut, beside) : [];
  if (cut.length === 0 && blockSize?.ahead !== undefined)
    all.push(
      `does nothing with spec.blockSize.ahead alone; a size is ipv4 or ipv6 of it, and is set when a pool is made`,
    );
  else if (cut.length === 0) all.push(...withoutSize(pool));
  return [...all.map((words) => `pool ${pool.name} ${words}`), ...warningsOfReserved(view, pool)];
}

function withoutSize({ spec, families }: Pool): string[] {
  if (spec.default === true)
    return [
      "serves no pod that asks for nothing, in spite of spec.default: it was made without that, and without spec.blockSize; make another pool for them",
    ];
  const isForAny = spec.blockSize === undefined && spec.authorization !== "ServiceAccount";
  if (spec.networks === undefined || !isForAny) return [];
  const size = families.map((family) => `${family.toLowerCase()}: ${bitsOf(family)}`).join(", ");
  return [
    `has no spec.blockSize, so in a cluster it serves only pods that ask for an address; make it with blockSize: {${size}} if pods of its networks that ask for nothing are to have one, or with {} if not`,
  ];
}

/** Of a pool that nodes get blocks of. */
function ofBlocks(pool: Pool, cut: readonly Family[], beside: PoolChange): string[] {
  const { spec } = pool;
  if (pool.authorization === "ServiceAccount")
    return [
      "serves no pod that asks for nothing, for its authorization is ServiceAccount, and nodes get blocks of it all the same; make it with blockSize: {}, or without authorization",
    ];
  const warnings: string[] = [];
  const missing = pool.families.filter((family) => !cut.includes(family));
  for (const family of missing)
    warnings.push(
      `has ${family} ranges, and spec.blockSize no ${family.toLowerCase()}: pods that ask for nothing get no ${family} address of it`,
    );
  const given = SELECTORS.filter((key) => spec[key] !== undefined);
  if (spec.networks === undefined && given.length > 0 && given.every((key) => isEmpty(spec[key])))
    warnings.push(
      `selects every pod by spec.${given.join(", ")}: {}, so it comes before the default for all that ask for nothing; write default: true if that is not meant, and no selector`,
    );
  return spec.default === true ? [...warnings, ...besideOthers(pool, beside)] : warnings;
}

function isEmpty(selector: Pool["spec"]["nodeSelector"]): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return Object.keys(matchLabels).length + matchExpressions.length === 0;
}

function besideOthers(pool: Pool, { pools, namesOthers }: PoolChange): string[] {
  const others = pools.filter(
    (other) =>
      other.name !== pool.name &&
      other.spec.default === true &&
      other.spec.blockSize !== undefined &&
      !other.disabled &&
      !excludeEachOther(pool, other),
  );
  if (others.length === 0) return [];
  const which = namesOthers ? listed(others, NAMED, ({ name }) => name) : "another pool";
  return [
    `is a default, as ${which}: of several that are open to a pod the one of the highest spec.priority serves it, then the first by name`,
  ];
}

/** A node goes on giving what it owns: `reserved` is for what is cut from now on. */
function warningsOfReserved(view: Blocks, pool: Pool): string[] {
  const held: string[] = [];
  for (const { record } of view.blocksOf?.(pool.name) ?? []) {
    if (record.releasedAt !== undefined) continue;
    const { family, intervals } = ownedIn(record);
    const shared = pool.reserved
      .filter((one) => one.family === family)
      .flatMap((one) => intervals.flatMap((interval) => intersection(one.interval, interval) ?? []));
    for (const interval of shared)
      held.push(`${formatInterval({ family, interval })} (block ${record.cidr} of node ${record.node})`);
  }
  if (held.length === 0) return [];
  return [
    `spec.reserved of pool ${pool.name} has addresses that nodes give to pods until they give the block back: ${listed(held, 1)}; see kubectl get ipblocks`,
  ];
}
