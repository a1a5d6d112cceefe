// SPDX-License-Identifier: Apache-2.0
// What this node keeps in memory of the API server's objects.
import { BerthError, isRefusal } from "../../../../allocator/base/errors.ts";
import type { Labels } from "../../../../allocator/base/ports.ts";
import { MIRROR_POD_ANNOTATION } from "../../../../allocator/demand/pod-allocation.ts";
import { FAMILIES } from "../../../../allocator/ip/address.ts";
import {
  ANNOTATION_FORMATS,
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
} from "../../../../allocator/manifest/annotations.ts";
import { keptKeysIn } from "../../../../allocator/manifest/dialects.ts";
import { Fields } from "../../../../allocator/manifest/kubernetes-object.ts";
import { NETWORK_ANNOTATIONS } from "../../../../allocator/manifest/network-attachments.ts";
import { fenceOf } from "../../../../allocator/manifest/node-fence.ts";
import { type Pool, parseStoredPool } from "../../../../allocator/pool/pool.ts";
import { storedOf } from "../../../../allocator/store/kubernetes/objects.ts";
import type { KubeItem } from "../../../../kube/api/resource.ts";
import type { PoolOwner } from "../../blocks/block-source.ts";
import type { NodePod } from "./node-cache.ts";

const READ = [
  ...ANNOTATION_FORMATS.map(({ key }) => key),
  ASSIGNED_CLAIM,
  ASSIGNED_ADDRESSES,
  ASSIGNED_TOKEN,
  MIRROR_POD_ANNOTATION,
  ...NETWORK_ANNOTATIONS,
];
/** Of its annotations only what Berth reads. */
export function nodePod({ metadata, ...rest }: KubeItem): NodePod {
  const { namespace = "", name, uid, annotations = {}, labels = {} } = metadata;
  const status = new Fields(rest).at("status");
  const phase = status.text("phase");
  const keys = new Set([...READ, ...keptKeysIn(annotations, () => true)]);
  const read = [...keys].flatMap((key) => {
    const value = annotations[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  const finished = phase === "Succeeded" || phase === "Failed";
  const up = status.text("podIP") !== "";
  return { namespace, name, uid, annotations: Object.fromEntries(read), labels, finished, up };
}

/** A pool, and what its status says of who has blocks of it. */
export interface SeenPool {
  readonly pool: Pool;
  readonly owners: readonly PoolOwner[];
}

export interface SeenNode {
  readonly uid: string;
  readonly fenced: boolean;
  readonly labels: Labels;
}

export function seenNode(item: KubeItem): SeenNode {
  const fenced = fenceOf(item.metadata.annotations ?? {}, new Fields(item).at("spec")) !== undefined;
  return { uid: item.metadata.uid, fenced, labels: labelsOf(item) };
}

export function seenPool(item: KubeItem): SeenPool {
  const pool = parseStoredPool(storedOf("pool", item).record);
  if (isRefusal(pool)) throw new BerthError("STATE_CORRUPT", pool.message, { details: pool.details });
  const owners = new Fields(item)
    .at("status")
    .list("owners")
    .flatMap((row) => ownersIn(new Fields(row)));
  return { pool, owners };
}

/** Of each family that the node has blocks of. */
function ownersIn(row: Fields): readonly PoolOwner[] {
  const node = row.text("node");
  const counts = FAMILIES.map((family) => [family, row.at(family.toLowerCase()).count("blocks", 0)] as const);
  return counts.flatMap(([family, blocks]) => (blocks > 0 ? [{ node, family, blocks }] : []));
}

export function labelsOf({ metadata }: KubeItem): Labels {
  return metadata.labels ?? {};
}
