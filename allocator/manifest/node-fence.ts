// SPDX-License-Identifier: Apache-2.0
import type { Labels } from "../base/ports.ts";
import { Fields } from "./kubernetes-object.ts";

/** KEP-2268: somebody vouches that the node is down and that nothing runs on it. */
export const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";
/** On a Node: an operator vouches for the same, where the taint would do too much. */
export const FENCED = "berth.dev/fenced";

/** What a Node object says of being fenced: which of the two; undefined: neither. */
export function fenceOf(
  annotations: Labels,
  spec: Fields,
): typeof FENCED | typeof OUT_OF_SERVICE | undefined {
  if (annotations[FENCED] === "true") return FENCED;
  const tainted = spec.list("taints").some((taint) => new Fields(taint).text("key") === OUT_OF_SERVICE);
  return tainted ? OUT_OF_SERVICE : undefined;
}
