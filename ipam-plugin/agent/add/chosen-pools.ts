// SPDX-License-Identifier: Apache-2.0
import { BerthError, type Refusal } from "../../../allocator/base/errors.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { choosePools, hasBlocks, type PoolChoice, selectsSome } from "../../../allocator/pool/pool-choice.ts";
import { namesAttachments } from "../../../allocator/pool/pool-networks.ts";
import { type CniError, cniError } from "../../cni/errors.ts";
import type { BlockFollower } from "../blocks/block-follower.ts";
import type { PodFacts } from "../blocks/block-source.ts";
import { networkNames } from "../claims/claim-networks.ts";
import type { PodRef } from "../claims/claim-source.ts";
import { within } from "../claims/deadline.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { uncutForDropIn } from "./drop-in-refusals.ts";

/** How long an ADD waits for what decides which pools are open to its pod. */
export const KNOWN_MS = 5_000;

/**
 * The pools that serve a pod which has no claim; undefined: none of Berth's. What is not known is waited for, and only if it
 * matters: labels that no selector asks about decide nothing. Throws NOT_READY when it does not come.
 */
export async function poolsFor(
  addRequest: AddRequest,
  { blockFollower, clock }: Pick<AgentServices, "blockFollower" | "clock">,
  signal: AbortSignal,
): Promise<PoolChoice | Refusal | CniError | undefined> {
  const choose = () => chooseNow(addRequest, blockFollower);
  if (typeof choose() === "string")
    await within({ ms: KNOWN_MS, clock, signals: [signal] }, async (late) => {
      while (!late.aborted && typeof choose() === "string") await blockFollower.heard(late);
    });
  const last = choose();
  if (typeof last !== "string") return withoutPool(addRequest, last, blockFollower) ?? last;
  const words = `${last} not known on this node: the API server has not told of it; try again`;
  throw new BerthError("NOT_READY", words);
}

/**
 * A network that was written for another plugin has nothing but pools, and not under the keys that Berth's own networks have. One host makes
 * claims of pools without blocks: what it cannot make one for is refused elsewhere.
 */
function withoutPool(
  { ipam: { dropIn, pools: names, rangeSets, addresses }, scope: { network } }: AddRequest,
  choice: PoolChoice | Refusal | CniError | undefined,
  blockFollower: BlockFollower,
): Refusal | undefined {
  const isWithout = choice === undefined || ("pools" in choice && !choice.pools.some(hasBlocks));
  if (dropIn === undefined || rangeSets.length + addresses.length > 0 || !isWithout) return undefined;
  const pools = blockFollower.everyPool();
  const makesClaim = blockFollower.makesBlocks && pools.some(({ name }) => names.includes(name));
  return makesClaim ? undefined : uncutForDropIn(dropIn, { network, names }, pools);
}

/** What is missing, in words, where that may decide. */
function chooseNow(
  { args: { pod }, ipam, scope, interface: attachTo }: AddRequest,
  blockFollower: BlockFollower,
): PoolChoice | Refusal | CniError | undefined | string {
  const { pools: names } = ipam;
  const stored = blockFollower.pools();
  if (!blockFollower.knowsPools && !isAmong(names, stored)) return poolsMissing(names);
  if (!stored.some(hasBlocks)) return undefined;
  const all = pod === undefined ? stored.filter(isForUnnamed) : stored;
  if (all.length < stored.length && !all.some((pool) => mayServe(pool, names))) return unnamed();
  const facts =
    pod === undefined ? { ...blockFollower.factsOf(NOBODY), ...NO_LABELS } : blockFollower.factsOf(pod);
  const asked = names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
  const annotations = ipam.annotations ?? facts.podAnnotations;
  const known = { ...facts, ...(annotations && { podAnnotations: annotations }) };
  const missing = missingOf(asked, known, blockFollower);
  if (missing !== undefined) return `${missing} of ${nameOf(pod)} are`;
  const place = { pod: pod ?? NOBODY, attachment: { network: scope.network, interface: attachTo } };
  const networks = networkNames(place, annotations ?? {});
  const { podLabels = {}, namespaceLabels = {}, nodeLabels = {} } = facts;
  const labels = { podLabels, namespaceLabels, nodeLabels };
  const network = names.length === 0 ? {} : { network: names };
  return choosePools(all, { namespace: pod?.namespace ?? "", ...labels, ...network, networks });
}

const NOBODY: PodRef = { namespace: "", name: "", uid: "" };
const NO_LABELS: PodFacts = { podLabels: {}, podAnnotations: {}, namespaceLabels: {} };

/** Which pod it is, and what its labels are, decides nothing. */
function isForUnnamed({ spec }: Pool): boolean {
  return spec.namespaceSelector === undefined && spec.podSelector === undefined;
}

function mayServe(pool: Pool, names: readonly string[]): boolean {
  if (names.length > 0) return names.includes(pool.name);
  return hasBlocks(pool) && (pool.spec.default === true || selectsSome(pool));
}

function unnamed(): CniError {
  const words =
    "pools of Berth are chosen by labels of the pod or its namespace, which needs K8S_POD_NAMESPACE and K8S_POD_NAME in CNI_ARGS; the runtime does not send both";
  return cniError("INVALID_CONFIG", words);
}

/** Before everything is listed: the pools that are named are known; where none is named, it cannot be said. */
function isAmong(names: readonly string[], pools: readonly Pool[]): boolean {
  return names.length > 0 && names.every((name) => pools.some((pool) => pool.name === name));
}

function poolsMissing(names: readonly string[]): string {
  return names.length === 0 ? "which pools there are is" : `what pools ${names.join(", ")} have is`;
}

function nameOf(pod: PodRef | undefined): string {
  return pod === undefined ? "a pod that the runtime does not name" : `pod ${pod.namespace}/${pod.name}`;
}

/** Labels that a selector asks about, and that are not known. Those of namespaces are followed from then on. */
function missingOf(
  pools: readonly Pool[],
  facts: PodFacts,
  blockFollower: BlockFollower,
): string | undefined {
  const asks = (selector: "namespaceSelector" | "podSelector" | "nodeSelector") =>
    pools.some(({ spec }) => spec[selector] !== undefined);
  if (facts.namespaceLabels === undefined && asks("namespaceSelector")) {
    blockFollower.wantNamespaces();
    return "the labels of the namespace";
  }
  if (facts.podLabels === undefined && asks("podSelector")) return "the labels";
  if (facts.nodeLabels === undefined && asks("nodeSelector")) return "the labels of the node";
  if (facts.podAnnotations === undefined && pools.some(namesAttachments)) return "the networks";
  return undefined;
}
