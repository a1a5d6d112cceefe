// SPDX-License-Identifier: Apache-2.0
// Whether a pod may run where the addresses of a pool are routed.

import { type Refusal, refuse } from "../base/errors.ts";
import type { Address } from "../ip/address.ts";
import { refuseAddress } from "../ip/mac.ts";
import {
  allows,
  mayRunOn,
  type NodeExpression,
  type NodeFacts,
  namesIn,
  type PodNodes,
} from "../model/node-terms.ts";
import { type LabelSelector, matches } from "../pool/label-selector.ts";
import type { Pool } from "../pool/pool.ts";
import { quoted } from "./refusal-messages.ts";

/**
 * | now   | one of the nodes that the pod may run on is one of the pool's, or nodes are not known                      |
 * | later | there is no such node now, but one that is added, or gets other labels, may be                             |
 * | never | what the pod asks for and what the pool is for exclude each other, or its node is named and is another one |
 */
export type NodeFit = "now" | "later" | "never";

/** Comparisons of a node with a pool for one pod: a millisecond or so. */
const MOST_LOOKS = 4_000;

/** How well each of the pools suits the pod. */
export function nodeFits(nodes: PodNodes | undefined, pools: readonly Pool[]): readonly NodeFit[] {
  if (nodes === undefined || pools.every(({ spec }) => spec.nodeSelector === undefined)) {
    return pools.map(() => "now");
  }
  const { terms } = nodes;
  if (terms === undefined) return fitsAnywhere(pools, nodes);
  const keys = new Set(pools.flatMap(({ spec }) => expressionsOf(spec.nodeSelector)).map(({ key }) => key));
  const known = nodes.known?.();
  const places = known === undefined ? undefined : placesOf(nodes, known, keys);
  return pools.map(({ spec: { nodeSelector } }) => {
    if (nodeSelector === undefined) return "now";
    const isPossible = terms.some((term) => !isContradiction([...term, ...expressionsOf(nodeSelector)]));
    if (!isPossible) return "never";
    if (places === undefined || places.labels.some((labels) => matches(nodeSelector, labels))) return "now";
    return places.isAll ? "never" : "later";
  });
}

/**
 * Of a pod that may run anywhere. Most pools have one of the first nodes. Where there are thousands, and a pool for each rack, not all
 * is looked at for each pod: a pool of which it is not known counts as one that has a node.
 */
function fitsAnywhere(pools: readonly Pool[], nodes: PodNodes): readonly NodeFit[] {
  let looks = MOST_LOOKS;
  return pools.map(({ spec: { nodeSelector } }) => {
    const known = nodeSelector === undefined ? undefined : nodes.known?.();
    if (nodeSelector === undefined || known === undefined) return "now";
    for (const { labels } of known) if (looks-- <= 0 || matches(nodeSelector, labels)) return "now";
    return "later";
  });
}

interface Places {
  /** Of the nodes that the pod may run on, each once, as far as selectors ask about them. */
  readonly labels: readonly NodeFacts["labels"][];
  /** The pod may run on no others, whichever come: they are named. */
  readonly isAll: boolean;
}

/** There may be thousands of nodes and hundreds of pools, but nodes have few values of what pools ask about. */
function placesOf({ terms }: PodNodes, known: Iterable<NodeFacts>, keys: ReadonlySet<string>): Places {
  const missing = new Set(terms && namesIn(terms));
  const isNamed = missing.size > 0;
  const seen = new Map<string, NodeFacts["labels"]>(); // their values -> labels
  for (const node of known) {
    missing.delete(node.name);
    const values = [...keys].map((key) => (Object.hasOwn(node.labels, key) ? node.labels[key] : null));
    const place = JSON.stringify(values);
    if (!seen.has(place) && mayRunOn(terms, node)) seen.set(place, node.labels);
  }
  return { labels: [...seen.values()], isAll: isNamed && missing.size === 0 };
}

function expressionsOf(selector: LabelSelector | undefined): NodeExpression[] {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return [
    ...Object.entries(matchLabels).map(
      ([key, value]): NodeExpression => ({
        ...{ key, operator: "In", values: [value], of: "labels" },
      }),
    ),
    ...matchExpressions.map(({ values = [], ...one }): NodeExpression => ({ ...one, values, of: "labels" })),
  ];
}

/** No node can satisfy all of them, whatever its labels are. */
function isContradiction(expressions: readonly NodeExpression[]): boolean {
  const byKey = Map.groupBy(expressions, ({ key, of }) => `${of} ${key}`);
  return [...byKey.values()].some((about) => {
    const absent = about.some(({ operator }) => operator === "DoesNotExist");
    const present = about.filter(({ operator }) => operator !== "DoesNotExist" && operator !== "NotIn");
    if (absent) return present.length > 0;
    const [choice, ...others] = about.filter(({ operator }) => operator === "In");
    const also = [...others, ...about.filter(({ operator }) => operator !== "In")];
    return choice?.values.every((value) => !also.every((one) => allows(one, value))) ?? false;
  });
}

/** Whether a node may be of all of the pools, and the pod run on it. One that has none of their labels yet may get them. */
export function haveCommonNodes(nodes: PodNodes | undefined, pools: readonly Pool[]): boolean {
  const selecting = new Set(pools.filter(({ spec }) => spec.nodeSelector !== undefined));
  if (selecting.size < 2) return true;
  const all = [...selecting].flatMap(({ spec }) => expressionsOf(spec.nodeSelector));
  return (nodes?.terms ?? [[]]).some((term) => !isContradiction([...term, ...all]));
}

const SELECTORS = ["nodeSelector", "namespaceSelector", "podSelector"] as const;

/** No pod can be served by both, whatever labels there are: what they are for excludes each other. */
export function excludeEachOther({ spec: one }: Pool, { spec: other }: Pool): boolean {
  const apart = (key: (typeof SELECTORS)[number]) =>
    isContradiction([...expressionsOf(one[key]), ...expressionsOf(other[key])]);
  const shareNetworks = one.networks?.some((name) => other.networks?.includes(name) ?? true) ?? true;
  return !shareNetworks || SELECTORS.some(apart);
}

/** The words for pools that no node is of: a pod with addresses of both could run nowhere. */
export function withoutCommonNodes(
  pools: readonly Pool[],
  namespace: string,
  otherwise = ", or one family",
): Refusal {
  const both = pools.length > 2 ? "all of them" : "both";
  return refuse(
    "NODE_MISMATCH",
    `pool ${whoseNodes(pools)}, and no node is of ${both}; name addresses or pools of the same nodes${otherwise}`,
    { pool: pools.map(({ name }) => name).join(","), namespace },
  );
}

function whoseNodes(pools: readonly Pool[]): string {
  return pools
    .slice(0, 5)
    .map((pool) => `${quoted(pool.name)} is for nodes with ${selectorText(pool.spec.nodeSelector)}`)
    .join(", pool ");
}

/**
 * What is to be said of a pod with addresses of these pools, if no node that there is now is of all of them and one that it may run on;
 * undefined: one is, or nodes are not known. `then`: what comes of it.
 */
export function withoutNodeNow(
  nodes: PodNodes | undefined,
  pools: readonly Pool[],
  then = "the pod stays Pending until one has",
): string | undefined {
  const selecting = pools.filter(({ spec }) => spec.nodeSelector !== undefined);
  const known = selecting.length === 0 ? undefined : nodes?.known?.();
  if (nodes === undefined || known === undefined) return undefined;
  for (const node of known) {
    const isOfAll = selecting.every(({ spec }) => matches(spec.nodeSelector ?? {}, node.labels));
    if (isOfAll && mayRunOn(nodes.terms, node)) return undefined;
  }
  const where = nodes.terms === undefined ? "no node" : "no node where the pod may run";
  const which = selecting.length === 1 ? "has that" : "has all of that";
  return `pool ${whoseNodes(selecting)}, and ${where} ${which} now: ${then}`;
}

/** The words for pools that the pod could have, were it for other nodes. */
export function onOtherNodes(pools: readonly Pool[], namespace: string): Refusal {
  return refuse(
    "NODE_MISMATCH",
    `pool ${whoseNodes(pools)}, where this pod cannot run by its own nodeName, nodeSelector or node affinity; name a pool of the pod's nodes, or change where the pod may run`,
    { pool: pools.map(({ name }) => name).join(","), namespace },
  );
}

/** The words for an address that an identity has, and that is not routed to where its pod may run now. */
export function keptElsewhere(pool: Pool, address: Address, namespace: string): Refusal {
  return refuseAddress(
    "NODE_MISMATCH",
    `address ${address}, which is kept for this pod, is of pool ${quoted(pool.name)}, for nodes with ${selectorText(pool.spec.nodeSelector)}, where the pod cannot run by its own nodeName, nodeSelector or node affinity; change where the pod may run, name another pool, or give the address back (berthctl release)`,
    { pool: pool.name, address, namespace },
  );
}

/** The words for the pod of a claim that is on a node where an address of the claim is not routed. */
export function keptForOtherNodes(
  pool: Pool,
  address: Address,
  { namespace, node }: { readonly namespace: string; readonly node: string },
): Refusal {
  return refuseAddress(
    "NODE_MISMATCH",
    `address ${address}, which is kept for this pod, is of pool ${quoted(pool.name)}, for nodes with ${selectorText(pool.spec.nodeSelector)}, and the pod is on node ${node}, which is none of them: it was not reviewed by Berth, or labels were changed since; delete the pod so that it is created again, or label the node`,
    { pool: pool.name, address, namespace, node },
  );
}

/** As kubectl takes it. */
function selectorText(selector: LabelSelector | undefined): string {
  const parts = expressionsOf(selector).map(({ key, operator, values }) => {
    if (operator === "Exists") return key;
    if (operator === "DoesNotExist") return `!${key}`;
    if (operator === "In" && values.length === 1) return `${key}=${values[0] ?? ""}`;
    return `${key} ${operator === "In" ? "in" : "notin"} (${values.slice(0, 5).join(",")})`;
  });
  return parts.join(",");
}
