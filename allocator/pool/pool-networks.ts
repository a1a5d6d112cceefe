// SPDX-License-Identifier: Apache-2.0

import { type Refusal, refuse } from "../base/errors.ts";
import type { Pool } from "./pool.ts";

/**
 * Whether the pool is for the network. Its names: that of the CNI configuration, and `namespace/name` of the
 * NetworkAttachmentDefinition that it comes from.
 */
export function isOnNetwork({ spec: { networks } }: Pool, names: readonly string[]): boolean {
  return networks === undefined || networks.some((one) => names.includes(one));
}

/** Whether the pool names a NetworkAttachmentDefinition, which only the pod's annotations tell of. */
export function namesAttachments({ spec: { networks = [] } }: Pool): boolean {
  return networks.some((one) => one.includes("/"));
}

/** And no network by the name of its configuration. */
export function namesAttachmentsAlone({ spec: { networks = [] } }: Pool): boolean {
  return networks.length > 0 && networks.every((one) => one.includes("/"));
}

/**
 * Whether pods of the network may get addresses of the pool. `perhaps`: it names NetworkAttachmentDefinitions, and none of the network's
 * name, which they mostly have.
 */
export function servesNetwork({ spec: { networks } }: Pool, network: string): "yes" | "no" | "perhaps" {
  if (networks === undefined || networks.some((one) => one === network || one.endsWith(`/${network}`)))
    return "yes";
  return networks.some((one) => one.includes("/")) ? "perhaps" : "no";
}

/** The words for a network that the pool is not for. */
export function otherNetwork({ name, spec }: Pool, names: readonly string[], namespace: string): Refusal {
  const own = (spec.networks ?? []).slice(0, 5).join(", ");
  const asked = names.length === 0 ? "what this pod is attached to" : names.join(", ");
  const words = `pool "${name}" is for networks ${own}, and ${asked} is none of them (its networks)`;
  return refuse("POOL_FORBIDDEN", words, { pool: name, namespace });
}
