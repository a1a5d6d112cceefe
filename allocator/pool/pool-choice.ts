// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import { listed } from "../base/listed.ts";
import type { Labels } from "../base/ports.ts";
import { FAMILIES, type Family } from "../ip/address.ts";
import { blockLength } from "./blocks.ts";
import { matches } from "./label-selector.ts";
import { forNodes } from "./node-cidrs.ts";
import type { Pool } from "./pool.ts";
import { isOnNetwork, otherNetwork } from "./pool-networks.ts";
import { hasMacsAlone } from "./special-addresses.ts";

/** What decides which pools a pod without a claim is served from. */
export interface ChoiceInput {
  readonly namespace: string;
  readonly namespaceLabels: Labels;
  readonly podLabels: Labels;
  /** Of the node that it is on. */
  readonly nodeLabels: Labels;
  /** Names of the network that it is attached to; absent: not known. */
  readonly networks?: readonly string[];
  /** `ipam.pools` of the network's configuration. */
  readonly network?: readonly string[];
  /** What the pod's annotation names; where it has none, its namespace's. */
  readonly annotation?: readonly string[];
}

export interface PoolChoice {
  /** What it was chosen by. */
  readonly by: "network" | "annotation" | "selectors" | "default";
  /** At least one. Of a family the first that has an address serves. */
  readonly pools: readonly Pool[];
  /** The pod gets one address of each. */
  readonly families: readonly Family[];
}

/**
 * Where a pod that has no claim is served from: what its network names, else what its annotation names, else what selects it
 * (by priority, then those that name its network, then by name), else what is the default. Undefined: Berth's pools do not serve it. Nobody is served from a
 * pool that is closed to him, whoever names it. Same pools and facts in, same choice out.
 */
export function choosePools(pools: Iterable<Pool>, pod: ChoiceInput): PoolChoice | Refusal | undefined {
  // those that name its network are the most exact: what is not for it is closed
  const isExact = (pool: Pool) => (pod.networks !== undefined && pool.spec.networks !== undefined ? 0 : 1);
  const ordered = [...pools].sort(
    (a, b) => b.priority - a.priority || isExact(a) - isExact(b) || (a.name < b.name ? -1 : 1),
  );
  const { network, annotation = [] } = pod;
  if (annotation.length > 0) return byAnnotation(ordered, pod, annotation);
  if (network !== undefined) return byNetwork(ordered, pod, network);
  const open = ordered.filter((pool) => hasBlocks(pool) && ineligibility(pool, pod) === undefined);
  const selecting = open.filter(selectsSome);
  if (selecting.length > 0) return choiceOf("selectors", selecting, selecting.slice(0, 1));
  const [first] = open.filter(({ spec }) => spec.default === true);
  return first && choiceOf("default", [first], [first]);
}

/** Whether the pool may serve the pod where it is, whatever network it is attached to. */
export function isOpenTo(pool: Pool, pod: ChoiceInput): boolean {
  return closedToPod(pool, pod) === undefined && matches(pool.spec.nodeSelector, pod.nodeLabels);
}

/** A pod on another node is served from the pool of that one: pools that its own node has no way to are passed over. */
function byAnnotation(
  pools: readonly Pool[],
  pod: ChoiceInput,
  names: readonly string[],
): PoolChoice | Refusal {
  const { network } = pod;
  const strange = network && names.find((name) => !network.includes(name));
  if (strange !== undefined) {
    const words = `pool "${strange}" is not one of its network, which has ${listOf(network ?? [])}; name one of those, or none`;
    return refuse("POOL_FORBIDDEN", words, { pool: strange, namespace: pod.namespace });
  }
  const named = poolsNamed(pools, names);
  if (isRefusal(named)) return named;
  const why = named.map((pool) => closedToPod(pool, pod)).find((refusal) => refusal !== undefined);
  return why ?? openOf("annotation", named, pod);
}

/** A network may be for pods of many namespaces, and list what each of them has. */
function byNetwork(
  pools: readonly Pool[],
  pod: ChoiceInput,
  names: readonly string[],
): PoolChoice | Refusal | undefined {
  const named = poolsNamed(pools, names);
  if (isRefusal(named)) return named;
  return named.length === 0 ? undefined : openOf("network", named, pod);
}

function openOf(by: PoolChoice["by"], named: readonly Pool[], pod: ChoiceInput): PoolChoice | Refusal {
  const why = named.map((pool) => ineligibility(pool, pod));
  const open = named.filter((_, i) => why[i] === undefined);
  const refusal = why.find((one) => one !== undefined);
  return open.length === 0 && refusal !== undefined ? refusal : choiceOf(by, open, open);
}

function choiceOf(by: PoolChoice["by"], pools: readonly Pool[], deciding: readonly Pool[]): PoolChoice {
  const cut = FAMILIES.filter((family) => deciding.some((pool) => blockLength(pool, family) !== undefined));
  const all = FAMILIES.filter((family) => deciding.some((pool) => pool.families.includes(family)));
  return { by, pools, families: cut.length > 0 ? cut : all };
}

function poolsNamed(pools: readonly Pool[], names: readonly string[]): readonly Pool[] | Refusal {
  const found: Pool[] = [];
  for (const name of names) {
    const pool = pools.find((one) => one.name === name);
    if (pool === undefined) {
      const there =
        pools.length === 0
          ? "there are no pools yet, create an IPPool first"
          : `name one of ${listOf(pools.filter((one) => !hasMacsAlone(one)).map((p) => p.name))}`;
      return refuse("POOL_UNKNOWN", `there is no pool "${name}"; ${there}`, { pool: name });
    }
    found.push(pool);
  }
  return found;
}

/** Why the pool does not serve the pod where it is. */
function ineligibility(pool: Pool, pod: ChoiceInput): Refusal | undefined {
  const why = closedToPod(pool, pod) ?? closedToNetwork(pool, pod);
  if (why !== undefined || matches(pool.spec.nodeSelector, pod.nodeLabels)) return why;
  const words = `pool "${pool.name}" is for nodes with other labels than this one's (its nodeSelector)`;
  return refuse("POOL_FORBIDDEN", words, { pool: pool.name, namespace: pod.namespace });
}

function closedToNetwork(pool: Pool, { networks = [], namespace }: ChoiceInput): Refusal | undefined {
  return isOnNetwork(pool, networks) ? undefined : otherNetwork(pool, networks, namespace);
}

/** Why it serves the pod nowhere. Who may `use` a pool is asked at admission, and without a claim there was none. */
function closedToPod(pool: Pool, pod: ChoiceInput): Refusal | undefined {
  const { namespace } = pod;
  const no = (words: string) =>
    refuse("POOL_FORBIDDEN", `pool "${pool.name}" ${words}`, { pool: pool.name, namespace });
  if (pool.spec.nodeCIDRs !== undefined) return forNodes(pool, namespace);
  if (!matches(pool.spec.namespaceSelector, pod.namespaceLabels))
    return no(`is not open to namespace ${namespace}`);
  if (!matches(pool.spec.podSelector, pod.podLabels))
    return no("takes only pods with other labels than this one's (its podSelector)");
  if (pool.authorization === "ServiceAccount")
    return no("is for pods that ask for it at admission, with a service account that may use it");
  if (!pool.disabled) return undefined;
  const state = pool.deleting ? "is being deleted" : "takes no new reservations";
  return refuse("POOL_DISABLED", `pool "${pool.name}" ${state}; name another pool`, {
    pool: pool.name,
    namespace,
  });
}

/** It says whom it is for; one that does not is for those who name it. */
export function selectsSome({ spec }: Pool): boolean {
  const said = [spec.namespaceSelector, spec.podSelector, spec.nodeSelector, spec.networks];
  return said.some((one) => one !== undefined);
}

/** Nodes get blocks of it. */
export function hasBlocks(pool: Pool): boolean {
  return pool.families.some((family) => blockLength(pool, family) !== undefined);
}

function listOf(names: readonly string[]): string {
  return listed(
    names.map((name) => `"${name}"`),
    10,
  );
}
