// SPDX-License-Identifier: Apache-2.0
import { conditionOf, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { FENCED, fenceOf } from "../../allocator/manifest/node-fence.ts";

/** What stands for invariant 3b on the Node object, in words; undefined: it is not fenced. */
export function fencedBy(node: KubeObject): string | undefined {
  const by = fenceOf(node.metadata.annotations, node.spec);
  return by && `${by === FENCED ? "annotation" : "taint"} ${by}`;
}

/** Whether the kubelet says that the node is well, and since when it says so. */
export function readinessOf(node: KubeObject): { readonly ready: boolean; readonly since: string } {
  const ready = conditionOf(node, "Ready");
  return { ready: ready?.text("status") === "True", since: ready?.text("lastTransitionTime") ?? "" };
}

/** A node that a claim is bound to: how it is, and whether its sandboxes are known to be over. */
export function describeNode(name: string, node: KubeObject | "hidden" | undefined): string {
  if (node === "hidden") return `${name}, which may not be read with the rights of this user`;
  if (node === undefined) return `${name} is not in the cluster any more`;
  const { ready, since } = readinessOf(node);
  const state = ready ? "Ready" : `not Ready${since === "" ? "" : ` since ${since}`}`;
  const by = fencedBy(node);
  return `${name} is ${state} and ${by === undefined ? "not fenced" : `fenced by ${by}`}`;
}
