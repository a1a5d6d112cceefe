// SPDX-License-Identifier: Apache-2.0
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { NODES, POOLS } from "../../kube/api/resource.ts";
import { openStore } from "../api/open-store.ts";
import { make, makePod } from "../api/replica-objects.ts";
import { argsOf, type Said } from "../cni/caller.ts";

/** Of the node whose agent is measured, and of its pods. */
export const NODE = "n1";
export const SHOP = "shop";
export const DYNAMIC = { ranges: [{ cidr: "10.48.0.0/16" }], blockSize: { ipv4: 26 }, default: true };

/** Gives the node, which is there, four blocks of a pool and so many pods that ask for nothing: their calls. */
export async function fillNode(api: Connection, pods: number, more: object = {}): Promise<readonly Said[]> {
  await make(api, POOLS, { name: "dynamic" }, { spec: { ...DYNAMIC, ...more } });
  const store = openStore(api);
  const nodeUID = (await new Client(api, NODES).get({ name: NODE }))?.metadata.uid ?? "";
  for (const n of [1, 2, 3, 4]) {
    const block = { cidr: `10.48.${n}.0/26`, pool: "dynamic", node: NODE, nodeUID, holes: [], granted: true };
    await store.create("block", block);
  }
  const calls: Said[] = [];
  for (let n = 0; n < pods; n++) {
    const name = `plain-${n}`;
    const { metadata } = await makePod(api, { namespace: SHOP, name }, { node: NODE });
    calls.push({ cid: name, args: argsOf({ namespace: SHOP, name, uid: metadata.uid }) });
  }
  return calls;
}
