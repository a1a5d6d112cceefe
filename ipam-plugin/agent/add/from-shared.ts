// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type CniError, cniError, fromRefusal } from "../../cni/errors.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";
import { type Attachment, keyOf } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { cancelledError } from "./commit.ts";
import { assignFromClaim } from "./from-claim.ts";

type Shared = Pick<AgentServices, "sharedNetworks">;

/** Its addresses are kept in etcd: its configuration says so, or names pools where the agent has no others. */
export function isShared({ etcd, pools }: IpamConfig, { sharedNetworks }: Shared): boolean {
  return etcd !== undefined || (sharedNetworks !== undefined && pools.length > 0);
}

/** For a network that is kept in etcd, on a host whose agent was started without one. */
export function noEtcd(): CniError {
  const words =
    "ipam.etcdConfig: the agent of this host was started without etcd; start it with: berthctl up --etcd URL, or take etcdConfig out";
  return cniError("INVALID_CONFIG", words);
}

/** From the pools of the network, as a claim of the container, whatever the runtime says of pods. */
export async function assignFromShared(
  ask: AddRequest,
  services: AgentServices,
  signal: AbortSignal,
): Promise<Attachment | CniError> {
  const { sharedNetworks } = services;
  if (sharedNetworks === undefined) return noEtcd();
  const pools = await sharedNetworks.poolsOf(ask.scope.network, ask.ipam);
  if (isRefusal(pools)) return fromRefusal(pools);
  const pod = await sharedNetworks.holderOf(keyOf(ask), ask.args.pod, pools);
  if (signal.aborted) return cancelledError(ask);
  // no review has read the annotations that a runtime sends
  const ipam = { ...ask.ipam, pools, annotations: undefined };
  const given = await assignFromClaim({ ...ask, pod, args: { ...ask.args, pod }, ipam }, services, signal);
  if (given !== undefined) return given;
  const words = `the claim of ${pod.namespace}/${pod.name} serves another interface of this container; give network ${ask.scope.network} addresses of its own`;
  return cniError("INVALID_CONFIG", words);
}
