// SPDX-License-Identifier: Apache-2.0
// Where a pod that asks for no address is served from.

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { networkAttachments } from "../../allocator/manifest/network-attachments.ts";
import type { Block } from "../../allocator/model/block.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import { choosePools, hasBlocks, type PoolChoice } from "../../allocator/pool/pool-choice.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { type Backend, partialCache } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { kubeletsAddresses } from "../backend/reported-addresses.ts";
import { usedUpFor } from "./used-up-pools.ts";

/** What a pod without a claim has, and which pools serve it where its network names none and has no ranges of its own. */
export interface DynamicFacts {
  readonly addresses: readonly { readonly address: Address; readonly block: Block | undefined }[];
  /** Undefined: none of Berth's pools. */
  readonly choice: PoolChoice | Refusal | undefined;
  /** Why none of these pools has an address for it now; absent: one has, or it has its addresses. */
  readonly usedUp?: string;
  /** Where none of Berth's pools serves it: those that would if they were not disabled. */
  readonly disabled?: readonly string[];
  /** This user may not read pools, or blocks: nothing is known of either. */
  readonly hidden?: true;
}

/** What its sandboxes have: by the journal of this host, or by the pod's own status in a cluster. */
async function addressesOf({ place, uses }: Backend, pod: KubeObject): Promise<readonly Address[]> {
  const { namespace, name, uid } = pod.metadata;
  if (place === "cluster") return [...kubeletsAddresses(pod)];
  const own = (await uses([])).filter(
    (use) => use.pod?.namespace === namespace && use.pod.name === name && isSamePod(use.pod.uid, uid),
  );
  return own.flatMap(({ result }) => result.addresses.map(({ address }) => address));
}

/** Neither the runtime nor a manifest needs to say which of a name it is. */
function isSamePod(one: string, other: string): boolean {
  return one === "" || other === "" || one === other;
}

export async function dynamicFactsOf(
  backend: Backend,
  pod: KubeObject,
  { namespaceLabels, nodeLabels }: { readonly namespaceLabels: Labels; readonly nodeLabels: Labels },
): Promise<DynamicFacts> {
  const addresses = await addressesOf(backend, pod);
  const records = new AllowedRecords(backend.store);
  const view = await partialCache(records, addresses);
  if (records.hides("pool") || records.hides("block"))
    return {
      addresses: addresses.map((address) => ({ address, block: undefined })),
      choice: undefined,
      hidden: true,
    };
  const choice = choiceFor(view.pools(), pod.metadata, { namespaceLabels, nodeLabels });
  const disabled =
    choice === undefined ? disabledFor(view.pools(), pod.metadata, { namespaceLabels, nodeLabels }) : [];
  const node = pod.spec.text("nodeName") || backend.node;
  const isWaiting = addresses.length === 0 && node !== "" && choice !== undefined && !isRefusal(choice);
  const usedUp = isWaiting ? await ifAllowed(() => usedUpFor(backend.store, choice, node)) : undefined;
  return {
    addresses: addresses.map((address) => ({ address, block: view.blockOwning(address) })),
    choice,
    ...(usedUp === undefined ? {} : { usedUp }),
    ...(disabled.length === 0 ? {} : { disabled }),
  };
}

type Labelled = Pick<KubeObject["metadata"], "namespace" | "labels" | "annotations">;

function choiceFor(
  pools: readonly Pool[],
  { namespace, labels, annotations }: Labelled,
  { namespaceLabels, nodeLabels }: { readonly namespaceLabels: Labels; readonly nodeLabels: Labels },
): PoolChoice | Refusal | undefined {
  const networks = networkAttachments(annotations, namespace).map(({ network }) => network);
  const choice = choosePools(pools, {
    ...{ namespace, namespaceLabels, podLabels: labels, nodeLabels, networks },
  });
  return choice === undefined || isRefusal(choice) || choice.pools.some(hasBlocks) ? choice : undefined;
}

/** Pools that would serve the pod if they were not disabled, by name. */
function disabledFor(
  pools: readonly Pool[],
  pod: Labelled,
  labels: { readonly namespaceLabels: Labels; readonly nodeLabels: Labels },
): readonly string[] {
  const closed = new Set(pools.filter((pool) => pool.disabled && !pool.deleting).map(({ name }) => name));
  const opened = pools.map((pool) => (closed.has(pool.name) ? { ...pool, disabled: false } : pool));
  const choice = choiceFor(opened, pod, labels);
  return choice === undefined || isRefusal(choice)
    ? []
    : choice.pools.map(({ name }) => name).filter((name) => closed.has(name));
}

const BY: Readonly<Record<PoolChoice["by"], string>> = {
  network: "which its network names",
  annotation: "which its annotation names",
  selectors: "which selects it",
  default: "the default",
};

const ASKS = "asks for no fixed address";

/** With pools that would serve it if they were not `disabled`. */
function unserved(disabled: readonly string[] = []): string {
  const many = disabled.length === 1 ? "pool" : "pools";
  const names = disabled.map((name) => `"${name}"`).join(", ");
  const remedy =
    disabled.length === 0
      ? "make a pool with blockSize (docs/blocks.md)"
      : `${many} ${names} would serve it, and ${disabled.length === 1 ? "is" : "are"} disabled (spec.disabled)`;
  return `${ASKS}, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: ${remedy}`;
}

const UNLESS = "from a block of its node, unless its network names pools or has ranges of its own";

const UNREADABLE = "pools and blocks may not be read with the rights of this user";

function hasAll(addresses: DynamicFacts["addresses"]): string {
  return addresses.length === 0 ? "" : `, and has ${addresses.map(({ address }) => address).join(" and ")}`;
}

/** In words, behind the pod's name. */
export function describeDynamic({ addresses, choice, usedUp, disabled, hidden }: DynamicFacts): string {
  if (hidden === true) return `${ASKS}${hasAll(addresses)}; ${UNREADABLE}`;
  if (addresses.length > 0)
    return `${ASKS}, and has ${addresses.map((one) => describeAddress(one, choice)).join(" and ")}`;
  if (choice === undefined) return unserved(disabled);
  if (isRefusal(choice)) return `${ASKS}, and no pool gives it one: ${choice.message}`;
  const [first, ...rest] = choice.pools.map(({ name }) => `"${name}"`);
  const next = rest.length === 0 ? "" : `, then ${rest.join(", ")}`;
  const full = usedUp === undefined ? "" : `; it waits: ${usedUp}`;
  return `${ASKS}; it gets any of pool ${first} (${BY[choice.by]})${next} ${UNLESS}${full}`;
}

function describeAddress(
  { address, block }: DynamicFacts["addresses"][number],
  choice: DynamicFacts["choice"],
): string {
  return block === undefined
    ? `${address}, of its network's own configuration`
    : `${address}, of block ${block.cidr} that node ${block.node} has of pool "${block.pool}" (${whyOf(block.pool, choice)})`;
}

/** By the pools and labels as they are now, which may not be those that it started with. */
function whyOf(pool: string, choice: DynamicFacts["choice"]): string {
  const known = choice === undefined || isRefusal(choice) ? [] : choice.pools;
  const place = known.findIndex(({ name }) => name === pool);
  if (place < 0 || choice === undefined || isRefusal(choice))
    return "which its network names, unless labels or pools have changed since";
  const before = known.slice(0, place).map(({ name }) => `"${name}"`);
  return `${BY[choice.by]}${before.length === 0 ? "" : `, after ${before.join(", ")}, which had none then`}`;
}

/** The same of a pod that is not there yet: on which node it will be is not known. */
export function foretellDynamic(
  view: Pick<RecordReader, "pools">,
  pod: Labelled,
  namespaceLabels: Labels,
): string {
  const pools = view.pools();
  const of = (some: readonly Pool[]) => choiceFor(some, pod, { namespaceLabels, nodeLabels: {} });
  const bound = new Set(pools.filter(isForSomeNodes).map(({ name }) => name));
  // of those alone: with a selector, be it empty, a pool that nothing selects for would be for every pod
  const onAnyNode = pools.map((pool) =>
    bound.has(pool.name) ? { ...pool, spec: { ...pool.spec, nodeSelector: {} } } : pool,
  );
  const selecting = of(onAnyNode);
  if (selecting === undefined)
    return `it ${unserved(disabledFor(onAnyNode, pod, { namespaceLabels, nodeLabels: {} }))}`;
  if (isRefusal(selecting)) return `it ${unserved()}`;
  const named = ({ name }: Pool) => `"${name}"${bound.has(name) ? " on its nodes" : ""}`;
  const [first, ...rest] = selecting.pools.map(named);
  const next = rest.length === 0 ? "" : `, then ${rest.join(", ")}`;
  const elsewhere = selecting.pools.every(({ name }) => bound.has(name))
    ? of(pools.filter(({ name }) => !bound.has(name)))
    : undefined;
  const [other] = elsewhere === undefined || isRefusal(elsewhere) ? [] : elsewhere.pools;
  const last = other === undefined ? "" : `, else of "${other.name}"`;
  return `it ${ASKS}; it gets any of pool ${first} (${BY[selecting.by]})${next}${last} ${UNLESS}`;
}

function isForSomeNodes({ spec: { nodeSelector = {} } }: Pool): boolean {
  const { matchLabels = {}, matchExpressions = [] } = nodeSelector;
  return Object.keys(matchLabels).length + matchExpressions.length > 0;
}
