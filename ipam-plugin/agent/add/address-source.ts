// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import { hasBlocks } from "../../../allocator/pool/pool-choice.ts";
import type { NetworkKey } from "../../cni/config.ts";
import { type CniError, cniError, fromRefusal, isCniError } from "../../cni/errors.ts";
import { staticAddresses } from "../../cni/static.ts";
import { macOfPool } from "../claims/claim-result.ts";
import { within } from "../claims/deadline.ts";
import { withLeases } from "../journal/address-set.ts";
import type { Attachment, Source } from "../journal/attachment.ts";
import type { AttachmentCache } from "../journal/attachment-cache.ts";
import type { AgentServices } from "../services/services.ts";
import type { AddRequest } from "./add-request.ts";
import { KNOWN_MS, poolsFor } from "./chosen-pools.ts";
import { cancelledError, commitAttachment } from "./commit.ts";
import { withDropIn, withFamilies } from "./drop-in-pools.ts";
import { familiesOf, fieldsOf, notAnnotated, singlesOf } from "./drop-in-refusals.ts";
import { assignFromBlocks } from "./from-blocks.ts";
import { assignFromClaim, requestedMac } from "./from-claim.ts";
import { pickAddresses } from "./from-ranges.ts";
import { assignFromShared, isShared } from "./from-shared.ts";
import { requestedOfPool, staticOfPool, withoutPools, withPoolWords } from "./pool-addresses.ts";

const WITHOUT_CLAIM: ReadonlySet<Source> = new Set(["block", "ranges", "static"]);

/**
 * A network that is kept in etcd gets its addresses from there and nowhere else. Otherwise claims come first: a pod that has one must
 * never get another address. Then what the configuration itself has; a pod that was served from there stays there.
 */
export async function assignAddresses(
  given: AddRequest,
  services: AgentServices,
  signal: AbortSignal,
): Promise<Attachment | CniError> {
  const addRequest = withDropIn(given, services);
  if (isRefusal(addRequest)) return fromRefusal(addRequest);
  if (isShared(addRequest.ipam, services)) return await assignFromShared(addRequest, services, signal);
  const { pod } = addRequest.args;
  if (pod !== undefined && !wasServedWithoutClaim(addRequest, services.attachments)) {
    const fromClaim = await assignFromClaim({ ...addRequest, pod }, services, signal);
    if (fromClaim !== undefined) return fromClaim;
  }
  if (signal.aborted) return cancelledError(addRequest);
  const strange =
    addRequest.mac === undefined ? undefined : macOfPool(requestedMac(addRequest.mac, services.pools()));
  if (strange !== undefined) return fromRefusal(strange);
  const { dropIn, pools } = addRequest.ipam;
  if (dropIn?.annotation !== undefined) return fromRefusal(notAnnotated(dropIn, pools));
  const fromBlocks = await assignFromChosen(addRequest, services, signal);
  if (fromBlocks !== undefined) return fromBlocks;
  await untilPoolsAreKnown(services, signal);
  if (signal.aborted) return cancelledError(addRequest);
  return addRequest.ipam.rangeSets.length > 0
    ? assignFromRanges(addRequest, services)
    : assignStatic(addRequest, services);
}

/** What the network's own ranges and addresses share with a pool is the pool's to give: as long as none is known that may be any. */
async function untilPoolsAreKnown(
  { knowsPools, blockFollower, clock }: AgentServices,
  signal: AbortSignal,
): Promise<void> {
  if (!knowsPools())
    await within({ ms: KNOWN_MS, clock, signals: [signal] }, async (late) => {
      while (!late.aborted && !knowsPools()) await blockFollower.heard(late);
    });
  if (knowsPools() || signal.aborted) return;
  const words =
    "which pools there are is not known on this node, and they may have addresses of this network: the API server has not told of them yet; try again";
  throw new BerthError("NOT_READY", words);
}

/** Undefined: no pool serves the pod out of blocks. A network with addresses of its own that names no pool uses none. */
async function assignFromChosen(
  addRequest: AddRequest,
  services: AgentServices,
  signal: AbortSignal,
): Promise<Attachment | CniError | undefined> {
  const { pools, rangeSets, addresses } = addRequest.ipam;
  if (pools.length === 0 && rangeSets.length + addresses.length > 0) return undefined;
  const choice = await poolsFor(addRequest, services, signal);
  if (signal.aborted) return cancelledError(addRequest);
  if (choice === undefined || isCniError(choice)) return choice;
  const served = isRefusal(choice) ? choice : withFamilies(choice, addRequest.ipam.dropIn);
  if (isRefusal(served)) return fromRefusal(served);
  // pools without blocks are for claims
  return served.pools.some(hasBlocks)
    ? assignFromBlocks(addRequest, services, { choice: served, signal })
    : undefined;
}

async function assignFromRanges(
  addRequest: AddRequest,
  services: AgentServices,
): Promise<Attachment | CniError> {
  const { scope, ipam, requested, dns } = addRequest;
  const parts = services.rangeOverlaps.look(scope.network, ipam.rangeSets, [...services.pools()]);
  const ofPool = requestedOfPool(scope.network, requested, parts);
  if (ofPool !== undefined) return fromRefusal(ofPool);
  const pickBeside = (leases: ReadonlyMap<Address, string>) => {
    const space = withLeases(services.attachments.space(scope), leases);
    return pickAddresses(withoutPools(space, parts), ipam.rangeSets, requested);
  };
  let leases = await services.hostLocalLeases.written(scope);
  // from a pick to the commit nothing waits: two ADDs cannot choose the same
  let pick = pickBeside(leases);
  if (isRefusal(pick) && leases.size > 0) {
    // which of host-local's containers are gone costs files to be read: only where there is nothing else
    leases = await services.hostLocalLeases.live(scope);
    pick = pickBeside(leases);
  }
  if (isRefusal(pick)) {
    const refusal = withPoolWords(pick, scope.network, parts);
    return fromRefusal(leases.size === 0 ? refusal : withLeaseWords(refusal, leases.size, scope));
  }
  const positions = pick.addresses.map(({ address }, rangeSet) => ({ scope, rangeSet, address }));
  const result = { addresses: pick.addresses, routes: ipam.routes, dns };
  return commitAttachment(addRequest, services, { source: "ranges", result, positions });
}

/** A network that was switched from host-local to Berth under running pods may have few addresses left: the refusal says where they are. */
function withLeaseWords(refusal: Refusal, count: number, { dataDir, network }: NetworkKey): Refusal {
  const words = `host-local holds ${count} for containers that may be up, by its files in ${dataDir}/${network}; they are free when those end, or the node boots`;
  return { ...refusal, message: `${refusal.message}; ${words}` };
}

async function assignStatic(addRequest: AddRequest, services: AgentServices): Promise<Attachment | CniError> {
  const addresses = staticAddresses(addRequest.ipam, addRequest.version, addRequest.args);
  if (isCniError(addresses)) return addresses;
  if (addresses.length === 0) return nothingConfigured(addRequest, services);
  const named = addresses.map(({ address }) => address);
  const ofPool = staticOfPool(addRequest.scope.network, named, services.pools());
  if (ofPool !== undefined) return fromRefusal(ofPool);
  const result = { addresses, routes: addRequest.ipam.routes, dns: addRequest.dns };
  return commitAttachment(addRequest, services, { source: "static", result });
}

/** The static plugin would print a success without addresses here, and every main plugin then fails without a reason. */
function nothingConfigured(addRequest: AddRequest, services: AgentServices): CniError {
  const { scope, ipam, args, containerID, interface: name } = addRequest;
  const first = services.attachments
    .attached()
    .find((one) => one.containerID === containerID && one.claim !== undefined && one.interface !== name);
  if (first !== undefined) {
    // a network of another plugin has no such keys
    const own = ipam.dropIn ? "" : `, or give network ${scope.network} ipam.ranges or ipam.addresses`;
    const has = first.result.addresses.map(({ address }) => address).join(", ");
    const words = `claim ${first.claim} serves ${first.interface} with ${has}, and no address was asked for ${name}: write one into berth.dev/ips of the pod, as ADDRESS@${name}${own}`;
    return cniError("INVALID_CONFIG", words);
  }
  if (!services.blockFollower.makesBlocks) return noBlocks(addRequest, services);
  if (ipam.pools.length > 0) {
    // With pools, only a further interface of a pod whose claim serves another one gets here.
    const words =
      args.pod === undefined
        ? `${fieldsOf(ipam.dropIn, ipam.pools)} needs K8S_POD_NAMESPACE and K8S_POD_NAME in CNI_ARGS; the runtime does not send both`
        : `the claim of pod ${args.pod.namespace}/${args.pod.name} serves another interface of it; give network ${scope.network} ipam.ranges for this one`;
    return cniError("INVALID_CONFIG", words);
  }
  return cniError("INVALID_CONFIG", nothingOf(scope));
}

const ONE_AT_A_TIME = "a pool with blockSize (32 and 128: one address at a time)";

function nothingOf({ network }: NetworkKey): string {
  return `no IP ranges specified: network ${network} needs ipam.pools, ipam.ranges or ipam.addresses; or make ${ONE_AT_A_TIME} that selects the pod or says default: true`;
}

/** In a cluster a pool without blocks gives such a pod nothing: the refusal says what to make instead. */
function noBlocks({ scope, ipam }: AddRequest, { blockFollower }: AgentServices): CniError {
  if (ipam.pools.length === 0) return cniError("INVALID_CONFIG", nothingOf(scope));
  const why = (name: string) => {
    const pool = blockFollower.pool(name);
    if (pool === undefined) return "is not there";
    return blockFollower.hasBlocks(name) === true
      ? "is closed to it"
      : `was made without blockSize: ${singlesOf(familiesOf([pool], undefined))}`;
  };
  const names = ipam.pools.map((name) => `"${name}" ${why(name)}`);
  const words = `the pod asks for no address, and no pool of network ${scope.network} serves such pods: ${names.join(", ")}; name ${ONE_AT_A_TIME} in ipam.pools, annotate the pod with berth.dev/pools, or give the network ipam.ranges`;
  return cniError("INVALID_CONFIG", words);
}

/**
 * Whether an earlier sandbox of the pod had an address of a block or of the configuration itself at this interface: the pod keeps that
 * source for its life. A claim of its name that was made meanwhile, or bound too late, is for the next pod.
 */
function wasServedWithoutClaim(
  { args: { pod }, scope, interface: name }: AddRequest,
  attachments: Pick<AttachmentCache, "ofPod">,
): boolean {
  if (pod === undefined || pod.uid === "") return false;
  return attachments
    .ofPod(pod.uid)
    .some(
      (known) =>
        WITHOUT_CLAIM.has(known.source) &&
        known.interface === name &&
        known.scope.network === scope.network &&
        known.scope.dataDir === scope.dataDir,
    );
}
