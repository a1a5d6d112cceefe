// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type CniError, cniError, fromRefusal } from "../../cni/errors.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";
import { type Attachment, keyOf } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { cancelledError } from "./commit.ts";
import { assignFromClaim, findClaim, takingOf } from "./from-claim.ts";

type Shared = Pick<AgentServices, "sharedNetworks">;

/** Its addresses are kept in etcd: its configuration says so, or names pools where the agent has no others. */
export function isShared({ etcd, pools, dropIn }: IpamConfig, { sharedNetworks }: Shared): boolean {
  // kube-ipam's is served of pools where the agent has no etcd
  if (etcd !== undefined) return dropIn === undefined || sharedNetworks !== undefined;
  return sharedNetworks?.hasOwn === true && pools.length > 0;
}

/** For a network that is kept in etcd, on a host whose agent was started without one. */
export function noEtcd(): CniError {
  const words =
    "ipam.etcdConfig: the agent of this host serves no networks in etcd; start it with: berthctl up --etcd URL (in a cluster set agent.etcdSecret of the chart), or take etcdConfig out";
  return cniError("INVALID_CONFIG", words);
}

/** From the pools of the network, as a claim of the container, whatever the runtime says of pods. */
export async function assignFromShared(
  addRequest: AddRequest,
  services: AgentServices,
  signal: AbortSignal,
): Promise<Attachment | CniError> {
  const { sharedNetworks } = services;
  if (sharedNetworks === undefined) return noEtcd();
  const promised = sharedNetworks.hasOwn ? undefined : await findPromised(addRequest, services, signal);
  if (promised !== undefined) return promised;
  const shared = await sharedNetworks.poolsOf(addRequest.scope.network, addRequest.ipam);
  if (isRefusal(shared)) return fromRefusal(shared);
  const pod = await sharedNetworks.holderOf(keyOf(addRequest), addRequest.args, shared);
  if (signal.aborted) return cancelledError(addRequest);
  const { etcd, pools } = shared;
  // no review has read the annotations that a runtime sends
  const ipam = { ...addRequest.ipam, pools, annotations: undefined };
  const place = etcd === undefined ? {} : { etcd };
  const of = { ...addRequest, ...place, pod, args: { ...addRequest.args, pod }, ipam };
  const given = await assignFromClaim(of, services, signal);
  if (given !== undefined) return given;
  const words = `the claim of ${pod.namespace}/${pod.name} serves another interface of this container; give network ${addRequest.scope.network} addresses of its own`;
  return cniError("INVALID_CONFIG", words);
}

/** In a cluster: an address that the pod got at admission is of a pool in the API server, and not of this network. */
async function findPromised(
  addRequest: AddRequest,
  services: AgentServices,
  signal: AbortSignal,
): Promise<CniError | undefined> {
  const { network } = addRequest.scope;
  services.rangeOverlaps.look(network, addRequest.ipam.rangeSets, [...services.pools()]);
  const { pod } = addRequest.args;
  if (pod === undefined) return undefined;
  const place = { ...addRequest, pod, ipam: { ...addRequest.ipam, pools: [] } };
  const found = await findClaim(takingOf(place, services, signal));
  if (found === undefined) return cancelledError(addRequest);
  if (isRefusal(found)) return fromRefusal(found);
  if (found.kind === "unclaimed") return undefined;
  const words = `claim ${found.claim} has an address for this pod, and network ${network} takes its addresses from etcd; take the annotation off the pod, or name the network that the claim is for in the pool's spec.networks`;
  return cniError("INVALID_CONFIG", words);
}
