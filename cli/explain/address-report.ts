// SPDX-License-Identifier: Apache-2.0

import { cooldownOf } from "../../allocator/cache/cooldown.ts";
import { poolsContaining, type RecordReader } from "../../allocator/cache/reader.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { macOfAddress } from "../../allocator/ip/mac.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { linkedTo } from "../../allocator/model/interface-macs.ts";
import { addressesOn, FIRST_INTERFACE, namesOf, placesOf } from "../../allocator/model/interfaces.ts";
import { describeOccupant } from "../../allocator/model/occupant.ts";
import { phaseOf } from "../../allocator/model/phase.ts";
import { isBackedByClaim } from "../../allocator/model/reservation.ts";
import { useOf } from "../../allocator/planning/block-words.ts";
import { isBeside } from "../../allocator/planning/refusal-messages.ts";
import { classify } from "../../allocator/pool/pool.ts";
import type { Kind } from "../../allocator/store/store.ts";
import { type AttachmentUse, unreportedInterfaces } from "../backend/attachment-report.ts";
import type { Backend } from "../backend/backend.ts";
import { describeOwner, isOfContainer, shortIdOf } from "../backend/container-words.ts";
import { describePhase } from "../backend/phase.ts";
import { UnreadRecords } from "../backend/unread-records.ts";
import { timeOf } from "../terminal/output.ts";

/**
 * - `held`: reserved for a claim. `beside`: kept for a pod that was admitted with the claim, which does not have it. `orphaned`: reserved, and the claim is gone; the garbage collector frees it.
 * - `cooling`: given back; for now only the same identity may have it.
 * - `in-node-cidr`: of a CIDR that is a node's as a whole. `for-nodes`: the pool is for such CIDRs, and no node has this one.
 * - `in-block`: a node has it for pods that need no fixed address. `block-cooling`: that node has given the block back.
 * - `block-returned`: that node has given back this address of it, for such pods of any node, and none has it yet.
 * - `free`: nobody has it, whoever its pool is for. `reserved`: free, and given by explicit request only.
 * - `unread`: what is stored of it cannot be read. It is taken, for nobody creates what is there.
 * - `unseen`: this user may not read whose it is.
 * - `in-use`: a node, this host, a Service or another CNI's pod has it, and not from Berth.
 * - `gateway`: of a pool, whether in its ranges or beside them. `excluded`: in a pool that never gives it. `outside`: in no pool.
 */
export type AddressState =
  | "held"
  | "beside"
  | "orphaned"
  | "cooling"
  | "in-block"
  | "in-node-cidr"
  | "for-nodes"
  | "block-cooling"
  | "in-use"
  | "unread"
  | "unseen"
  | "block-returned"
  | "free"
  | "reserved"
  | "gateway"
  | "excluded"
  | "outside";

/** Everything that is known of one address; this is what `who -o json` prints. Times are RFC 3339. */
export interface AddressReport {
  readonly address: Address;
  /** The MAC address that it stands for. */
  readonly mac?: string;
  readonly state: AddressState;
  readonly pool?: string;
  /** namespace/name */
  readonly claim?: string;
  readonly identity?: string;
  readonly phase?: string;
  /** What could not be read of it, and why: its reservation, or the claim. */
  readonly unread?: string;
  /** Kinds that would tell more, and that this user may not read; absent: none. */
  readonly hidden?: readonly Kind[];
  /** Of hosts that share an etcd: the short id of the container that has it; empty: nothing says it. */
  readonly container?: string;
  /** Who has it, and not from Berth. */
  readonly inUseBy?: string;
  /** The CIDR of the node's block that it is in. */
  readonly block?: string;
  readonly pod?: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Of an address in a node's block, in a cluster: whether a pod says that it has it; absent, the pods may not be listed. */
  readonly used?: boolean;
  readonly node?: string;
  /** When the pod got the claim. */
  readonly since?: string;
  readonly coolingUntil?: string;
  /** Of a claim whose pod was admitted and is on no node: so long it waits for the pod. */
  readonly heldUntil?: string;
  /** Of a retained claim; absent there, it is kept until somebody releases it. */
  readonly retainedUntil?: string;
  readonly retainedSince?: string;
  /** The interface that has it by its claim, of which nothing says that the pod's sandbox has it. */
  readonly unreported?: string;
  readonly sandboxes: readonly Sandbox[];
}

export interface Sandbox {
  /** Empty where the pod's status tells of it. */
  readonly containerID: string;
  readonly interface: string;
  /** Empty where only the claim tells of the sandbox. */
  readonly network: string;
  /** namespace/name; empty when the runtime did not say, as of a container of hosts that share an etcd. */
  readonly pod: string;
  readonly since: string;
}

/** What was read for a report, and what could not be. */
interface Seen {
  readonly view: RecordReader;
  readonly place: Backend["place"];
  readonly unread?: UnreadRecords;
  /** Kinds of which this user may not read what was asked for. */
  readonly hidden?: ReadonlySet<Kind>;
}

/** Compares what pools, records and sandboxes know of the address. */
export function addressReportOf(seen: Seen, uses: readonly AttachmentUse[], address: Address): AddressReport {
  const { view, place, hidden = new Set() } = seen;
  const mac = macOfAddress(address);
  const pool = poolNameOf(view, address);
  const sandboxes = uses
    .filter(({ result }) => result.addresses.some((entry) => entry.address === address))
    .map((use) => sandboxOf(use, isContainer(view, use, place)));
  return {
    address,
    ...(mac === undefined ? {} : { mac }),
    ...(pool === undefined ? {} : { pool }),
    ...(unreadOf(seen, address) ?? holderOf(seen, address)),
    ...(sandboxes.length === 0 ? unreportedOf(view, address) : {}),
    ...(hidden.size === 0 ? {} : { hidden: [...hidden] }),
    sandboxes,
  };
}

/** Whoever may not read pools may still read of a reservation where it is from. */
function poolNameOf(view: RecordReader, address: Address): string | undefined {
  const pool = view.poolOf(address) ?? view.pools().find(({ gateways }) => gateways.has(address));
  return pool?.name ?? view.reservation(address)?.record.pool;
}

function isContainer(view: RecordReader, { claim = "" }: AttachmentUse, place: Seen["place"]): boolean {
  const record = view.claim(claim)?.record;
  return record !== undefined && isOfContainer(record, place);
}

/** The claim that has the address: by its reservation, or, to who may not read that, by its own list. */
function claimWith(view: RecordReader, address: Address): Claim | undefined {
  const reservation = view.reservation(address)?.record;
  if (reservation === undefined)
    return [...view.claims()].map(({ record }) => record).find((claim) => isListed(claim, address));
  const claim = view.claim(claimKey(reservation.claim))?.record;
  return claim !== undefined && isBackedByClaim(claim, reservation) ? claim : undefined;
}

function isListed({ addresses, releasing, nonce }: Claim, address: Address): boolean {
  return addresses.includes(address) && releasing !== true && nonce !== "";
}

/** Of a claim of which no sandbox was reported, or one with another interface than that of the address. */
function unreportedOf(view: RecordReader, address: Address): Pick<AddressReport, "unreported"> {
  const claim = claimWith(view, address);
  if (claim === undefined) return {};
  const name = namesOf(placesOf(claim) ?? {}).find((one) => addressesOn(claim, one)?.includes(address));
  if (name === undefined)
    return isDetached(claim)
      ? {}
      : { unreported: claim.interface ?? claim.binding?.interface ?? FIRST_INTERFACE };
  const link = linkedTo(name) ?? name;
  return unreportedInterfaces(claim).includes(link) ? { unreported: link } : {};
}

/** Undefined: everything could be read. */
function unreadOf({ view, unread = new UnreadRecords() }: Seen, address: Address): Holder | undefined {
  const why = unread.why("reservation", address);
  if (why !== undefined) return { state: "unread", unread: why };
  const reservation = view.reservation(address)?.record;
  const claim = reservation && claimKey(reservation.claim);
  const unreadClaim = claim === undefined ? undefined : unread.why("claim", claim);
  if (unreadClaim !== undefined) return { state: "unread", ...(claim && { claim }), unread: unreadClaim };
  const [block] = unread.all().filter(({ kind }) => kind === "block");
  return block && { state: "unread", unread: block.why };
}

type Holder = Pick<AddressReport, "state"> & Partial<AddressReport>;

function holderOf(seen: Seen, address: Address): Holder {
  const { view, place, hidden } = seen;
  const reservation = view.reservation(address)?.record;
  if (reservation === undefined) {
    const own = hidden?.has("reservation") === true ? claimWith(view, address) : undefined;
    return own === undefined ? (ownerOf(view, address) ?? unheldAsSeen(seen, address)) : heldBy(seen, own);
  }
  const key = claimKey(reservation.claim);
  if (reservation.releasedAt !== undefined) {
    // without the pools nobody knows for how long it cools
    if (hidden?.has("pool") === true) return { state: "cooling", claim: key };
    const cooldownMs = cooldownOf(view, reservation);
    return { state: "cooling", claim: key, coolingUntil: timeOf(reservation.releasedAt + cooldownMs) };
  }
  const claim = view.claim(key)?.record;
  if (claim === undefined && hidden?.has("claim") === true) return { state: "held", claim: key };
  if (claim === undefined || claim.nonce !== reservation.nonce) return { state: "orphaned", claim: key };
  if (isBeside(claim, reservation))
    return { state: "beside", claim: key, identity: describeOwner(claim, place) };
  return heldBy(seen, claim);
}

function heldBy({ view, place }: Seen, claim: Claim): Holder {
  const { binding, namespace } = claim;
  const container = shortIdOf(claim, place);
  return {
    state: "held",
    claim: claimKey(claim),
    identity: describeOwner(claim, place),
    phase: describePhase(claim),
    ...(binding === undefined || binding.podName === "" ? {} : { since: timeOf(binding.since) }),
    ...(binding === undefined || binding.podName === "" || container !== undefined
      ? {}
      : { pod: { namespace, name: binding.podName, uid: binding.podUID } }),
    ...(container === undefined ? {} : { container }),
    ...(binding === undefined || binding.node === "" ? {} : { node: binding.node }),
    ...retentionOf(view, claim),
    ...(phaseOf(claim) === "Held" ? { heldUntil: heldUntil(claim) } : {}),
  };
}

/** Of these the pool alone says that they are so. */
const BY_POOL: ReadonlySet<AddressState> = new Set(["gateway", "excluded", "outside"]);

/** What is not seen may be there: a pod's address may be Berth's. */
function unheldAsSeen({ view, hidden = new Set() }: Seen, address: Address): Holder {
  const holder = unheld(view, address);
  if (hidden.size === 0) return holder;
  const { kind, namespace = "", name = "" } = view.occupant?.(address) ?? {};
  if (kind === "pod") return { state: "unseen", used: true, pod: { namespace, name, uid: "" } };
  const isSure = BY_POOL.has(holder.state) || holder.state === "in-use";
  return isSure && !hidden.has("pool") ? holder : { state: "unseen" };
}

/** Longer, if the pod is admitted anew. */
function heldUntil({ admittedAt = 0, binding }: Claim): string {
  return timeOf(Math.max(admittedAt, binding?.since ?? 0) + HOLD_TIMEOUT_MS);
}

/** The shortest of what the claim asks for and its pools allow. */
function retentionOf(view: RecordReader, { retained, retention, addresses }: Claim): Partial<AddressReport> {
  if (retained === undefined) return {};
  const ttlMs = allowedTtlMs(retention, poolsContaining(view, addresses));
  const retainedSince = timeOf(retained.since);
  return ttlMs === null
    ? { retainedSince }
    : { retainedSince, retainedUntil: timeOf(retained.since + ttlMs) };
}

/** Which pod of the node has it is for the node alone to know. */
function ownerOf(view: RecordReader, address: Address): Holder | undefined {
  const block = view.blockOwning?.(address);
  if (block === undefined) return undefined;
  const { cidr, node, pool, releasedAt } = block;
  const use = useOf(block, address);
  if (use === "owned")
    return { state: block.use === undefined ? "in-block" : "in-node-cidr", block: cidr, node };
  if (use === "address-given-back") return { state: "block-returned", block: cidr };
  if (releasedAt === undefined) return { state: "block-cooling", block: cidr };
  const cooldownMs = cooldownOf(view, { address, pool });
  return { state: "block-cooling", block: cidr, coolingUntil: timeOf(releasedAt + cooldownMs) };
}

function unheld(view: RecordReader, address: Address): Holder {
  const pool = view.poolOf(address);
  const kind = pool === undefined ? "outside" : classify(pool, address);
  if (pool === undefined && view.pools().some(({ gateways }) => gateways.has(address)))
    return { state: "gateway" };
  const occupant = view.occupant?.(address);
  if (occupant === undefined && pool?.spec.nodeCIDRs !== undefined) return { state: "for-nodes" };
  if (occupant !== undefined && (kind === "open" || kind === "reserved"))
    return { state: "in-use", inUseBy: describeOccupant(occupant) };
  return { state: kind === "open" ? "free" : kind };
}

function sandboxOf(
  { containerID, scope, pod, attachedAt, interface: name }: AttachmentUse,
  isContainer: boolean,
): Sandbox {
  return {
    containerID,
    interface: name,
    network: scope.network,
    pod: pod === undefined || isContainer ? "" : `${pod.namespace}/${pod.name}`,
    since: timeOf(attachedAt),
  };
}
