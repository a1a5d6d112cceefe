// SPDX-License-Identifier: Apache-2.0
import { isRefusal, messageOf, type Refusal, refuse } from "../../../allocator/base/errors.ts";
import { readVersion } from "../../cni/config.ts";
import { type CniError, cniError, fromRefusal, isCniError } from "../../cni/errors.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";
import { readConfiguration } from "../add/add-request.ts";
import { servedIpam, warningsOfPools } from "../add/drop-in-pools.ts";
import { isShared, noEtcd } from "../add/from-shared.ts";
import { emptiedByPools, staticOfPool } from "../add/pool-addresses.ts";
import type { Answer } from "../rpc/connection.ts";
import { errorVersion, fail, succeed } from "../rpc/reply.ts";
import type { AgentServices, CniRequest } from "../services/services.ts";

/**
 * Whether ADD can be served. An error makes the node NotReady and in the end evicts its pods, so an exhausted range
 * is no error: other networks of the node may have plenty. Nor is a pool that does not exist in a cluster: it may be deleted or made at any
 * moment, and pods with claims are served without it; the log says so. A configuration that every ADD would refuse is an error, in the same
 * words. Code 50 comes from the CNI binary when there is no agent, and from here until the agent has loaded the claims of its pods.
 */
export async function status(request: CniRequest, services: AgentServices): Promise<Answer> {
  const { config } = request;
  const { journal, clock, notReady } = services;
  const version = readVersion(config, "STATUS");
  if (isCniError(version)) return fail(errorVersion(config.fields), version);
  const ipam = await readConfiguration(request, version, services);
  if (isCniError(ipam)) return fail(version, ipam);
  const shared = isShared(ipam, services);
  const refusal = shared
    ? await refusalOfShared(config.network, ipam, services)
    : refusalByPools(config.network, ipam, services);
  if (refusal !== undefined) return fail(version, refusal);
  const why = notReady();
  if (why !== undefined) return fail(version, cniError("NOT_AVAILABLE", why));
  if (!journal.failing) return succeed();
  try {
    // Without pods there are no writes, and without writes nobody would find out that the disk is well again.
    await journal.probe(clock.now());
    return succeed();
  } catch (error) {
    const words = `the journal cannot be written: ${messageOf(error)}`;
    return fail(version, cniError("LIMITED_CONNECTIVITY", words));
  }
}

/** Without etcd every ADD of a network that is kept there is refused. */
async function refusalOfShared(
  network: string,
  ipam: IpamConfig,
  { sharedNetworks }: AgentServices,
): Promise<CniError | undefined> {
  if (sharedNetworks === undefined) return noEtcd();
  try {
    const refusal = await sharedNetworks.refusalFor(network, ipam);
    return refusal && fromRefusal(refusal);
  } catch (error) {
    return cniError("NOT_AVAILABLE", messageOf(error));
  }
}

/**
 * Why the network's own addresses or the pools that it names would make every ADD fail, given the pools that exist. Pools are made and
 * deleted by people who know nothing of nodes, and a kubelet would evict pods for it, so only a host without a kubelet gets this as an error;
 * the log has it everywhere.
 */
function refusalByPools(network: string, given: IpamConfig, services: AgentServices): CniError | undefined {
  const { blockFollower, networkWarnings, rangeOverlaps } = services;
  const ipam = servedIpam(network, given, services);
  networkWarnings.unserved(network, isRefusal(ipam) ? ipam.message : "");
  if (isRefusal(ipam)) return blockFollower.makesBlocks ? fromRefusal(ipam) : undefined;
  const pools = [...services.pools()];
  const parts = rangeOverlaps.look(network, ipam.rangeSets, pools);
  const missing = missingPool(network, ipam, services);
  if (!blockFollower.makesBlocks) return undefined;
  const named = ipam.addresses.map(({ address }) => address);
  const refusal =
    missing ?? staticOfPool(network, named, pools) ?? emptiedByPools(network, ipam.rangeSets, parts);
  return refusal && fromRefusal(refusal);
}

function missingPool(network: string, ipam: IpamConfig, services: AgentServices): Refusal | undefined {
  const there = [...services.pools()].map(({ name }) => name);
  const [first] = warningsOfPools(network, ipam, services);
  if (first === undefined) return undefined;
  const some = there.slice(0, 10).map((name) => `"${name}"`);
  const have = some.length === 0 ? "there are no pools yet, make it first" : `name one of ${some.join(", ")}`;
  return refuse("POOL_UNKNOWN", `network ${network}: there is no pool "${first}"; ${have}`, { pool: first });
}
