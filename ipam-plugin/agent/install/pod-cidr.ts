// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../../allocator/base/errors.ts";
import { isObject } from "../../../allocator/base/validation.ts";
import { parseCidr } from "../../../allocator/ip/address.ts";
import { Client } from "../../../kube/api/client.ts";
import type { Connection } from "../../../kube/api/connection.ts";
import { type KubeItem, NODES } from "../../../kube/api/resource.ts";

/** On a Node: further ranges of its own. Kubernetes gives a node one of each family at most (`spec.podCIDRs`). */
export const POD_CIDRS = "berth.dev/pod-cidrs";

/** What stands in a list for all nodes in the place of a node's own ranges, by the words that Calico's installer knows. */
const PLACES: Readonly<Record<string, (cidr: string) => boolean>> = {
  usePodCidr: (cidr) => !cidr.includes(":"),
  usePodCidrIPv6: (cidr) => cidr.includes(":"),
};

/** Whether the text has a place that only the node can fill. */
export function needsPodCidr(text: string): boolean {
  return text.includes('"usePodCidr"') || text.includes('"usePodCidrIPv6"');
}

/**
 * The JSON with the node's ranges in their places: in a list of subnets one for each range of the family, elsewhere the first.
 * Throws NOT_READY when the node has none of a family.
 */
export function fillPodCidrs(text: string, node: string, cidrs: readonly string[]): string {
  const of = (place: string): readonly [string, ...string[]] => {
    const [first, ...more] = cidrs.filter(PLACES[place] ?? (() => false));
    if (first !== undefined) return [first, ...more];
    const has = cidrs.length === 0 ? "no podCIDRs" : `the podCIDRs ${cidrs.join(", ")}`;
    throw new BerthError(
      "NOT_READY",
      `the conflist says ${place}, and node ${node} has ${has}; kube-controller-manager gives them with --allocate-node-cidrs, Berth with nodeCIDRs.families, or write the range itself`,
      { details: { node } },
    );
  };
  return JSON.stringify(fill(JSON.parse(text), of), undefined, 2);
}

type RangesOf = (place: string) => readonly [string, ...string[]];

function fill(value: unknown, of: RangesOf): unknown {
  if (isPlace(value)) return of(value)[0];
  if (Array.isArray(value)) return value.flatMap((entry) => expanded(entry, of));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner, of)]));
}

/** An entry of a list. What else it says, as a gateway, is of the first range alone. */
function expanded(entry: unknown, of: RangesOf): unknown[] {
  const subnet = isObject(entry) ? entry["subnet"] : undefined;
  if (!isPlace(subnet)) return [fill(entry, of)];
  const [, ...more] = of(subnet);
  return [fill(entry, of), ...more.map((cidr) => ({ subnet: cidr }))];
}

function isPlace(value: unknown): value is string {
  return typeof value === "string" && Object.hasOwn(PLACES, value);
}

type NodeItem = KubeItem & { readonly spec?: { readonly podCIDRs?: unknown } };

/** `spec.podCIDRs` of the node, then those of its annotation, from the API server. Throws NOT_READY for one that is no range. */
export async function podCidrsOf(connection: Connection, node: string): Promise<readonly string[]> {
  const item: NodeItem | undefined = await new Client(connection, NODES).get({ name: node });
  return item === undefined ? [] : rangesOf(item, node);
}

export function rangesOf({ metadata, spec }: NodeItem, node: string): readonly string[] {
  const given = spec?.podCIDRs;
  const own = Array.isArray(given) ? given.filter((cidr) => typeof cidr === "string") : [];
  const more = (metadata.annotations?.[POD_CIDRS] ?? "").split(",").map((text) => text.trim());
  const further = more.filter((text) => text !== "");
  const wrong = further.find((text) => parseCidr(text)?.hostBits !== false);
  if (wrong !== undefined) {
    const words = `${wrong} in the annotation ${POD_CIDRS} of node ${node} is no range such as 10.244.7.0/24`;
    throw new BerthError("NOT_READY", words, { details: { node } });
  }
  return [...new Set([...own, ...further])];
}
