// SPDX-License-Identifier: Apache-2.0
import type { WorkloadState } from "../model/cluster-state.ts";
import type { Fields } from "./fields.ts";

/** apps/v1 DeploymentStrategy, OpenKruise's CloneSetUpdateStrategy. */
export function rollingOf({
  kind,
  spec,
}: {
  readonly kind: string;
  readonly spec: Fields;
}): Pick<WorkloadState, "rolling"> {
  const clones = kind === "CloneSet";
  const recreates = !clones && spec.at("strategy").text("type") === "Recreate";
  const said = clones ? spec.at("updateStrategy") : spec.at("strategy").at("rollingUpdate");
  const [maxSurge, maxUnavailable] = [recreates ? 0 : said.get("maxSurge"), said.get("maxUnavailable")];
  if (maxSurge === undefined && maxUnavailable === undefined) return {};
  const unavailable = maxUnavailable === undefined ? {} : { maxUnavailable };
  return { rolling: maxSurge === undefined ? unavailable : { maxSurge, ...unavailable } };
}
