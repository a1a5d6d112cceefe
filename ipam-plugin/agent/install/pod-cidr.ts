// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../../allocator/base/errors.ts";
import { Client } from "../../../kube/api/client.ts";
import type { Connection } from "../../../kube/api/connection.ts";
import { type KubeItem, NODES } from "../../../kube/api/resource.ts";

/** What stands in a list for all nodes in the place of a node's own range, by the words that Calico's installer knows. */
const PLACES: Readonly<Record<string, (cidr: string) => boolean>> = {
  usePodCidr: (cidr) => !cidr.includes(":"),
  usePodCidrIPv6: (cidr) => cidr.includes(":"),
};

/** Whether the text has a place that only the node can fill. */
export function needsPodCidr(text: string): boolean {
  return text.includes('"usePodCidr"') || text.includes('"usePodCidrIPv6"');
}

/** The JSON with the node's ranges in their places. Throws NOT_READY when the node has none of a family. */
export function fillPodCidrs(text: string, node: string, cidrs: readonly string[]): string {
  const fill = (_: string, value: unknown): unknown => {
    const fits = typeof value === "string" && Object.hasOwn(PLACES, value) ? PLACES[value] : undefined;
    if (fits === undefined) return value;
    const cidr = cidrs.find(fits);
    if (cidr !== undefined) return cidr;
    const has = cidrs.length === 0 ? "no podCIDRs" : `the podCIDRs ${cidrs.join(", ")}`;
    throw new BerthError(
      "NOT_READY",
      `the conflist says ${String(value)}, and node ${node} has ${has}; kube-controller-manager gives them with --allocate-node-cidrs, or write the range itself`,
      { details: { node } },
    );
  };
  return JSON.stringify(JSON.parse(text, fill), undefined, 2);
}

/** `spec.podCIDRs` of the node, from the API server. */
export async function podCidrsOf(connection: Connection, node: string): Promise<readonly string[]> {
  const item: (KubeItem & { readonly spec?: { readonly podCIDRs?: unknown } }) | undefined = await new Client(
    connection,
    NODES,
  ).get({ name: node });
  const cidrs = item?.spec?.podCIDRs;
  return Array.isArray(cidrs) ? cidrs.filter((cidr) => typeof cidr === "string") : [];
}
