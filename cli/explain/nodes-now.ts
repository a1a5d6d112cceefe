// SPDX-License-Identifier: Apache-2.0
import type { NodeFacts } from "../../allocator/model/node-terms.ts";
import type { Backend } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";

/** The nodes of the cluster; undefined: there is none, or this user may not read them. */
export async function nodesNow({
  place,
  world,
}: Pick<Backend, "place" | "world">): Promise<readonly NodeFacts[] | undefined> {
  if (place !== "cluster") return undefined;
  return await ifAllowed(async () => {
    const nodes: NodeFacts[] = [];
    for await (const { metadata } of world.each("Node"))
      nodes.push({ name: metadata.name, labels: metadata.labels });
    return nodes;
  });
}
