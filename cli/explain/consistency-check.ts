// SPDX-License-Identifier: Apache-2.0

import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { type Clock, noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import { type AuditInput, audit } from "../../allocator/gc/audit.ts";
import { defect, type Finding, pending } from "../../allocator/gc/finding.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { Block } from "../../allocator/model/block.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { findOverlap } from "../../allocator/pool/overlap.ts";
import { type Pool, parseStoredPool } from "../../allocator/pool/pool.ts";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import type { Backend } from "../backend/backend.ts";
import { toAuditAttachment } from "../backend/embedded-backend.ts";
import type { UnreadRecord } from "../backend/unread-records.ts";
import { changedRequests } from "./changed-requests.ts";
import { isUntouched, keysOf, partOf, type Reading, readAgain, readAll } from "./checked-records.ts";
import { fencedAndReady, missingParts } from "./installation.ts";
import { nodesOnce } from "./nodes-once.ts";
import { inUseByOthers, surroundingsWith } from "./occupied-addresses.ts";
import { ordinalsWithoutClaim } from "./ordinals-without-claim.ts";
import { ownIn } from "./own-requests.ts";
import { type SurveyedPod, surveyPods } from "./pod-survey.ts";
import { podsWithoutClaim } from "./pods-without-claim.ts";
import { poolsForNobody } from "./pools-for-nobody.ts";
import { sharedNodeCidrs } from "./shared-node-cidrs.ts";
import { unneeded } from "./unneeded-claims.ts";
import { unreviewedPods } from "./unreviewed-pods.ts";

/** Longer than any one act takes. */
const GRACE_MS = 1_000;
/** As the garbage collector: what looks wrong counts when it has looked the same, unchanged, for so many graces. */
const MORE_LOOKS = 2;

const UNSEEN =
  "which addresses others have was not looked at in full: this user may not list nodes, pods and Services";
const UNOPENED =
  "whether pools have nodes and namespaces was not looked at in full: this user may not list nodes and namespaces";
const UNLOOKED =
  "who needs claims was not looked at in full: this user may not list pods and StatefulSets, or read workloads and namespaces";

/** What was compared, and what is wrong with it. */
export interface CheckResult {
  readonly counts: Readonly<Record<"pools" | "claims" | "reservations" | "attachments", number>> & {
    /** Absent: there are none. */
    readonly blocks?: number;
  };
  readonly findings: readonly Finding[];
  /** Addresses that sandboxes have out of blocks, as agents said last; absent where the journal's attachments have them, and without blocks. */
  readonly usedInBlocks?: number;
  /** What could not be compared, in words; absent: everything was. */
  readonly unlooked?: string;
}

/**
 * Compares everything with everything. The records are not read in one moment, and others are at work on them: what
 * looks wrong is read again, by itself, and is a defect only if it stays and nobody has touched it meanwhile. What stays
 * while somebody is at work on it is pending.
 */
export async function checkBackend(backend: Backend, clock: Clock): Promise<CheckResult> {
  const all = await readAll(backend);
  const unread = backend.unread?.all() ?? [];
  const found = findingsOf(all, backend).filter((finding) => !mayBeOf(unread, finding));
  const counts = countsOf(all);
  let suspects = found.filter(isDefect);
  let seen = partOf(all, keysOf(all, suspects));
  for (let look = 0; look < MORE_LOOKS && suspects.length > 0; look++) {
    await clock.sleep(GRACE_MS);
    const now = await readAgain(backend, keysOf(all, suspects));
    const again = findingsOf(now, backend);
    const before = seen;
    suspects = suspects
      .filter((suspect) => again.some((finding) => isSame(finding, suspect)))
      .map((suspect) => (isUntouched(suspect, before, now) ? suspect : underWay(suspect)));
    seen = now;
  }
  const around = await findAround(all, backend, clock);
  const refused = await backend.refusedJournal?.();
  const journal = refused === undefined ? [] : [defect("journal-refused", "journal", refused)];
  const unsettled = found.filter((finding) => !isDefect(finding));
  const used = all.blocks.reduce((sum, { record }) => sum + (record.use ? 0 : (record.status?.used ?? 0)), 0);
  return {
    counts,
    ...(backend.place === "cluster" && all.blocks.length > 0 ? { usedInBlocks: used } : {}),
    findings: [
      ...(backend.unread?.taken() ?? []).map(({ key, why }) => defect("unread", key, why)),
      ...suspects,
      ...overlappingPools(poolsOf(all)),
      ...journal,
      ...unsettled,
      ...around.findings,
    ],
    ...(around.unlooked === "" ? {} : { unlooked: around.unlooked }),
  };
}

/** What the objects around the records say of them; `unlooked`: of what nothing is known, in words, or empty. */
async function findAround(
  all: Reading,
  { world, ...rest }: Backend,
  clock: Clock,
): Promise<{ readonly findings: readonly Finding[]; readonly unlooked: string }> {
  const backend: Backend = { ...rest, world: nodesOnce(world) };
  const own = await ownIn(all.pools, backend);
  const survey = await surveyPods(backend.world, own.least);
  const { pods } = survey ?? {};
  const idle = pods && (await unneeded({ ...all, own: own.most, pods, now: clock.now() }, backend));
  const lacking = await ordinalsWithoutClaim(all.claims, backend, clock);
  const told = new Set([
    ...all.claims.map(({ key }) => key),
    ...(lacking ?? []).map(({ subject }) => subject),
  ]);
  const claimless = pods && (await podsWithoutClaim(pods, told, backend, clock));
  const untold = survey && (await unreviewedPods(survey.unreviewed, all.claims, own, backend));
  const of = { ...backend, own: own.least, now: clock.now() };
  const changed = survey && (await changedRequests(survey.changed, all.claims, of));
  const others = await ofOthers(all, pods, backend);
  const records = all.blocks.map(({ record }) => record);
  const shared = backend.place === "cluster" ? await sharedNodeCidrs(records, backend.world) : [];
  const forNobody = await poolsForNobody({ ...all, pools: poolsOf(all) }, backend);
  const isCluster = backend.place === "cluster";
  const parts = isCluster ? await missingParts(backend.world) : [];
  const fenced = isCluster ? await fencedAndReady(backend.world) : [];
  const unlooked = [
    ...(idle?.isPart !== false || [lacking, claimless].includes(undefined) ? [UNLOOKED] : []),
    ...(others.isPart || shared === undefined || fenced === undefined ? [UNSEEN] : []),
    ...(forNobody.isPart ? [UNOPENED] : []),
  ];
  const found = [
    ...[parts, fenced, idle?.findings, lacking, claimless, untold, changed, survey?.vain],
    ...[forNobody.findings, others.findings, shared],
  ];
  return { findings: found.flatMap((some) => some ?? []), unlooked: unlooked.join("; ") };
}

/** What has addresses of pools and not from Berth. */
async function ofOthers(
  { pools, claims, reservations, blocks }: Reading,
  pods: readonly SurveyedPod[] | undefined,
  backend: Backend,
): Promise<{ readonly findings: readonly Finding[]; readonly isPart: boolean }> {
  const cache = new RecordCache(noopLogger);
  const put = <K extends Kind>(kind: K, some: readonly Stored<K>[]) => {
    for (const stored of some) cache.apply(kind, { type: "put", stored });
  };
  put("pool", pools);
  put("block", blocks);
  // the many records as they are here: the cache would have them once more
  const holders = new Map(reservations.map(({ record }) => [record.address, record.claim]));
  const podOf = new Map(claims.map(({ key, record }) => [key, record.binding?.podName]));
  const claimOf = (address: Address) => holders.get(address);
  const outside: Finding[] = [];
  const surroundings = await surroundingsWith(pods, backend, ({ namespace, name, node }, address) => {
    const holder = claimOf(address);
    const key = holder && claimKey(holder);
    const bound = key === undefined ? undefined : podOf.get(key);
    const isHolder = holder?.namespace === namespace && (bound === undefined || bound === name);
    const block = isHolder ? undefined : cache.blockOwning(address);
    if (block !== undefined && block.node !== node)
      outside.push(outsideBlock({ who: `pod ${namespace}/${name}`, node, address, block }));
    return isHolder || block !== undefined;
  });
  const inUse = inUseByOthers(cache.pools(), surroundings, claimOf);
  return { findings: [...outside, ...inUse], isPart: surroundings.isPart };
}

/** A pod that is about to go may be told with an address that its node has given back. */
function outsideBlock({ who, node, address, block }: UseOfBlock): Finding {
  const words = `address ${address} is used by ${who} on node ${node}, and is in block ${block.cidr} of node ${block.node}`;
  return pending("outside-block", address, words);
}

interface UseOfBlock {
  readonly who: string;
  readonly node: string;
  readonly address: Address;
  readonly block: Block;
}

/** Whether the finding may come of nothing but a record that could not be read: what it says is not known. */
function mayBeOf(unread: readonly UnreadRecord[], { kind, subject, message }: Finding): boolean {
  const words = new Set([subject, ...message.split(/[\s,;]+/)]);
  const isOfPools = ["outside", "misfiled", "stray-block"].includes(kind);
  return unread.some((one) => (isOfPools && one.kind === "pool") || words.has(one.key));
}

export function isDefect({ severity }: Finding): boolean {
  return severity === "defect";
}

function underWay(finding: Finding): Finding {
  return { ...finding, severity: "pending" };
}

function isSame(a: Finding, b: Finding): boolean {
  return a.kind === b.kind && a.subject === b.subject && a.message === b.message;
}

function findingsOf({ pools, claims, reservations, blocks, uses }: Reading, { node }: Backend): Finding[] {
  const auditInput: AuditInput = {
    pools: poolsOf({ pools }),
    claims: claims.map(({ record }) => record),
    reservations: reservations.map(({ record }) => record),
    blocks: blocks.map(({ record }) => record),
    attachments: uses.map((use) => toAuditAttachment(use, node === "" ? "this node" : node)),
  };
  return audit(auditInput);
}

function poolsOf({ pools }: Pick<Reading, "pools">): Pool[] {
  return pools.map(({ record }) => readable(parseStoredPool(record), record.name));
}

/** Without its pool a reservation cannot be judged, and to call it sound would be a guess. */
function readable(pool: ReturnType<typeof parseStoredPool>, name: string): Pool {
  if (!isRefusal(pool)) return pool;
  throw new BerthError("STATE_CORRUPT", `pool ${name} cannot be used: ${pool.message}; apply it anew`, {
    details: { pool: name },
  });
}

function countsOf({ pools, claims, reservations, blocks, uses }: Reading): CheckResult["counts"] {
  return {
    pools: pools.length,
    claims: claims.length,
    reservations: reservations.length,
    ...(blocks.length === 0 ? {} : { blocks: blocks.length }),
    attachments: uses.length,
  };
}

/** Two replicas that review two pools at the same moment may let both pass. One finding for each pair. */
function overlappingPools(pools: readonly Pool[]): Finding[] {
  return pools.flatMap((pool, n) =>
    pools.slice(0, n).flatMap((other) => {
      const refusal = findOverlap([other], pool);
      if (refusal === undefined) return [];
      const words = `${refusal.message}, or set spec.disabled: true on one and delete it once nothing of it is in use`;
      return [defect("pool-overlap", pool.name, words)];
    }),
  );
}
