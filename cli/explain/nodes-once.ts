// SPDX-License-Identifier: Apache-2.0
// Several findings of `check` are about nodes, of which there may be 5,000: they are listed once, and none of them is kept whole.

import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { type Fields, type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Objects } from "../backend/backend.ts";

/** What is read of nodes: blocks, fences, addresses, readiness. */
const SPEC = ["podCIDRs", "taints"];
const STATUS = ["addresses", "conditions"];

/** The same objects, but that all nodes are as they were when they were asked for first. */
export function nodesOnce(world: Objects): Objects {
  let listed: Promise<readonly KubeObject[]> | undefined;
  const nodes = () => {
    listed ??= partsOfNodes(world);
    return listed;
  };
  return {
    object: (kind, namespace, name) => world.object(kind, namespace, name),
    objects: (kind, namespace) => (kind === "Node" ? nodes() : world.objects(kind, namespace)),
    async *each(kind, namespace) {
      yield* kind === "Node" ? await nodes() : world.each(kind, namespace);
    },
    pod: (namespace, name) => world.pod(namespace, name),
    workload: (ref) => world.workload(ref),
    namespace: (name) => world.namespace(name),
    fenced: (node) => world.fenced(node),
  };
}

async function partsOfNodes(world: Objects): Promise<readonly KubeObject[]> {
  const parts: KubeObject[] = [];
  for await (const node of world.each("Node")) parts.push(partsOf(node));
  return parts;
}

function partsOf({ apiVersion, kind, json, spec }: KubeObject): KubeObject {
  const metadata = json.at("metadata").value;
  const status = only(json.at("status"), STATUS);
  const parts = readObject({ apiVersion, kind, metadata, spec: only(spec, SPEC), status });
  if (!isRefusal(parts)) return parts;
  throw new BerthError("INTERNAL", parts.message);
}

function only(of: Fields, keys: readonly string[]): object {
  return Object.fromEntries(keys.map((key) => [key, of.get(key)]));
}
