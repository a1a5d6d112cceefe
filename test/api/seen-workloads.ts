// SPDX-License-Identifier: Apache-2.0
import { type ControllersCluster, NAMESPACE } from "./controllers-cluster.ts";

/** Whether the replica's view has a set of that name. */
export function seesWorkload({ replica }: ControllersCluster, name: string): true | undefined {
  const key = `${NAMESPACE}/${name}`;
  return replica.watches.workloads.some(({ reflector }) => reflector.get(key) !== undefined) || undefined;
}
