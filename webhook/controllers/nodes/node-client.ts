// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../../allocator/base/errors.ts";
import type { ClusterNode } from "../../../allocator/blocks/node-cidr-distributor.ts";
import { parseCidr } from "../../../allocator/ip/address.ts";
import { Client } from "../../../kube/api/client.ts";
import type { Connection } from "../../../kube/api/connection.ts";
import { NODES } from "../../../kube/api/resource.ts";
import { CILIUM_CIDR_KEYS } from "../../cluster-state/node-annotations.ts";
import { observedNode } from "../../cluster-state/projections.ts";

/** All that Berth writes of a Node: its CIDRs, once, and the annotations that say the same (the policy nodes.berth.dev). */
export class NodeClient {
  readonly #client: Client;

  constructor(connection: Connection) {
    this.#client = new Client(connection, NODES);
  }

  async live(name: string): Promise<ClusterNode | undefined> {
    const item = await this.#client.get({ name });
    return item && clusterNode(observedNode(item));
  }

  async writePodCIDRs({ name, uid }: ClusterNode, cidrs: readonly string[]): Promise<"written" | "changed"> {
    const annotations = Object.fromEntries(cidrs.flatMap(annotationsOf));
    // the API server refuses another UID, and another CIDR where there is one
    const body = { metadata: { uid, annotations }, spec: { podCIDR: cidrs[0], podCIDRs: cidrs } };
    try {
      return (await this.#client.patch({ name }, { type: "merge", body })) === undefined
        ? "changed"
        : "written";
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      const live = await this.live(name);
      if (live === undefined || live.uid !== uid || live.podCIDRs.length > 0) return "changed";
      throw error;
    }
  }
}

function annotationsOf(text: string): readonly (readonly [string, string])[] {
  const cidr = parseCidr(text);
  return cidr === undefined ? [] : CILIUM_CIDR_KEYS[cidr.family].map((key) => [key, text] as const);
}

/** As a watch shows it, or a read. */
export function clusterNode({
  name,
  uid,
  labels,
  podCIDRs = "",
  annotatedCIDRs = "",
}: ReturnType<typeof observedNode>): ClusterNode {
  const said = podCIDRs === "" ? annotatedCIDRs : podCIDRs;
  const isAnnotated = podCIDRs === "" && annotatedCIDRs !== "";
  return {
    name,
    uid,
    labels,
    podCIDRs: said === "" ? [] : said.split(","),
    ...(isAnnotated && { isAnnotated }),
  };
}
