// SPDX-License-Identifier: Apache-2.0

import { cooldownOf } from "../../allocator/cache/cooldown.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { macOfAddress } from "../../allocator/ip/mac.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { describeIdentity } from "../../allocator/model/identity.ts";
import { linkedTo } from "../../allocator/model/interface-macs.ts";
import { addressesOn, FIRST_INTERFACE, namesOf, placesOf } from "../../allocator/model/interfaces.ts";
import { describeOccupant } from "../../allocator/model/occupant.ts";
import { phaseOf } from "../../allocator/model/phase.ts";
import { isBackedByClaim } from "../../allocator/model/reservation.ts";
import { useOf } from "../../allocator/planning/block-words.ts";
import { isBeside } from "../../allocator/planning/refusal-messages.ts";
import { classify } from "../../allocator/pool/pool.ts";
import { type AttachmentUse, unreportedInterfaces } from "../backend/attachment-report.ts";
import { describePhase } from "../backend/phase.ts";
import { UnreadRecords } from "../backend/unread-records.ts";
import { columns, printable, timeOf } from "../terminal/output.ts";

/**
 * - `held`: reserved for a claim. `beside`: kept for a pod that was admitted with the claim, which does not have it. `orphaned`: reserved, and the claim is gone; the garbage collector frees it.
 * - `cooling`: given back; for now only the same identity may have it.
 * - `in-node-cidr`: of a CIDR that is a node's as a whole. `for-nodes`: the pool is for such CIDRs, and no node has this one.
 * - `in-block`: a node has it for pods that need no fixed address. `block-cooling`: that node has given the block back.
 * - `block-returned`: that node has given back this address of it, for such pods of any node, and none has it yet.
 * - `free`: for anyone. `reserved`: free, and given by explicit request only.
 * - `unread`: what is stored of it cannot be read. It is taken, for nobody creates what is there.
 * - `in-use`: a node, this host, a Service or another CNI's pod has it, and not from Berth.
 * - `gateway`: of a pool, whether in its ranges or beside them. `excluded`: in a pool that never gives it. `outside`: in no pool.
 */
type State =
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
  readonly state: State;
  readonly pool?: string;
  /** namespace/name */
  readonly claim?: string;
  readonly identity?: string;
  readonly phase?: string;
  /** What could not be read of it, and why: its reservation, or the claim. */
  readonly unread?: string;
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

interface Sandbox {
  /** Empty where the pod's status tells of it. */
  readonly containerID: string;
  readonly interface: string;
  /** Empty where only the claim tells of the sandbox. */
  readonly network: string;
  /** namespace/name; empty when the runtime did not say. */
  readonly pod: string;
  readonly since: string;
}

/** Compares what pools, records and sandboxes know of the address. */
export function addressReportOf(
  view: RecordReader,
  uses: readonly AttachmentUse[],
  address: Address,
  unread = new UnreadRecords(),
): AddressReport {
  const pool = view.poolOf(address) ?? view.pools().find(({ gateways }) => gateways.has(address));
  const mac = macOfAddress(address);
  const sandboxes = uses
    .filter(({ result }) => result.addresses.some((entry) => entry.address === address))
    .map(sandboxOf);
  return {
    address,
    ...(mac === undefined ? {} : { mac }),
    ...(pool === undefined ? {} : { pool: pool.name }),
    ...(unreadOf(view, address, unread) ?? holderOf(view, address)),
    ...(sandboxes.length === 0 ? unreportedOf(view, address) : {}),
    sandboxes,
  };
}

/** Of a claim of which no sandbox was reported, or one with another interface than that of the address. */
function unreportedOf(view: RecordReader, address: Address): Pick<AddressReport, "unreported"> {
  const reservation = view.reservation(address)?.record;
  const claim = reservation && view.claim(claimKey(reservation.claim))?.record;
  if (reservation === undefined || claim === undefined || !isBackedByClaim(claim, reservation)) return {};
  const name = namesOf(placesOf(claim) ?? {}).find((one) => addressesOn(claim, one)?.includes(address));
  if (name === undefined)
    return isDetached(claim)
      ? {}
      : { unreported: claim.interface ?? claim.binding?.interface ?? FIRST_INTERFACE };
  const link = linkedTo(name) ?? name;
  return unreportedInterfaces(claim).includes(link) ? { unreported: link } : {};
}

/** Undefined: everything could be read. */
function unreadOf(view: RecordReader, address: Address, unread: UnreadRecords): Holder | undefined {
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

function holderOf(view: RecordReader, address: Address): Holder {
  const reservation = view.reservation(address)?.record;
  if (reservation === undefined) return ownerOf(view, address) ?? unheld(view, address);
  const key = claimKey(reservation.claim);
  if (reservation.releasedAt !== undefined) {
    const cooldownMs = cooldownOf(view, reservation);
    return { state: "cooling", claim: key, coolingUntil: timeOf(reservation.releasedAt + cooldownMs) };
  }
  const claim = view.claim(key)?.record;
  if (claim === undefined || claim.nonce !== reservation.nonce) return { state: "orphaned", claim: key };
  const { binding, identity, namespace } = claim;
  if (isBeside(claim, reservation))
    return { state: "beside", claim: key, identity: describeIdentity(identity) };
  return {
    state: "held",
    claim: key,
    identity: describeIdentity(identity),
    phase: describePhase(claim),
    ...(binding === undefined || binding.podName === ""
      ? {}
      : { pod: { namespace, name: binding.podName, uid: binding.podUID }, since: timeOf(binding.since) }),
    ...(binding === undefined || binding.node === "" ? {} : { node: binding.node }),
    ...retentionOf(view, claim),
    ...(phaseOf(claim) === "Held" ? { heldUntil: heldUntil(claim) } : {}),
  };
}

/** Longer, if the pod is admitted anew. */
function heldUntil({ admittedAt = 0, binding }: Claim): string {
  return timeOf(Math.max(admittedAt, binding?.since ?? 0) + HOLD_TIMEOUT_MS);
}

/** The shortest of what the claim asks for and its pools allow. */
function retentionOf(view: RecordReader, { retained, retention, addresses }: Claim): Partial<AddressReport> {
  if (retained === undefined) return {};
  const ttlMs = allowedTtlMs(
    retention,
    addresses.flatMap((one) => view.poolOf(one) ?? []),
  );
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

function sandboxOf({ containerID, scope, pod, attachedAt, interface: name }: AttachmentUse): Sandbox {
  return {
    containerID,
    interface: name,
    network: scope.network,
    pod: pod === undefined ? "" : `${pod.namespace}/${pod.name}`,
    since: timeOf(attachedAt),
  };
}

const SENTENCES: { readonly [S in State]: string } = {
  held: "is held",
  beside:
    "is kept for a pod that was admitted, beside a claim that does not have it; if the pod does not come it is free again within 120 s",
  orphaned: "is reserved for a claim that is gone; it is free again within 120 s",
  cooling: "was given back and is cooling down",
  "in-block": "is in a block of a node, which gives it to pods that need no fixed address",
  "in-node-cidr":
    "is in the CIDR of a node, whose own network gives it to pods: Berth has no record of which",
  "for-nodes": "is of a pool for CIDRs of nodes, and no node has the CIDR that it is in",
  "block-cooling": "is in a block that a node has given back, which is cooling down",
  "in-use": "is in use, and not from Berth",
  unread: "is taken: what is stored of it cannot be read",
  "block-returned":
    "is in a block of a node, which has given this address back for pods of any node that need no fixed one",
  free: "is free",
  reserved: "is free, and given by explicit request only",
  gateway: "is the gateway of its pool: no pod gets it",
  excluded: "is excluded from its pool: no pod gets it",
  outside: "is in no pool",
};

/** For people: a sentence, then what is known, a line each. */
export function describeAddress(report: AddressReport): string {
  const { address, mac, state, pool, claim, identity, phase, block, pod, node, since, coolingUntil } = report;
  const known: readonly (readonly [string, string | undefined])[] = [
    ["kept as", mac && address],
    ["pool", pool],
    ["in use by", report.inUseBy],
    ["unread", report.unread],
    ["claim", claim],
    ["identity", identity],
    ["phase", phase],
    [
      "interface",
      report.unreported &&
        `${report.unreported}; it is not reported whether the pod has it: see ip address in the pod`,
    ],
    ["block", block],
    ["pod", pod === undefined && report.used === false ? "none says that it has it" : podWords(pod)],
    ["node", node],
    ["since", since],
    ["cooling until", coolingUntil],
    ["held until", report.heldUntil && `${report.heldUntil}, unless its pod comes`],
    ["retained until", report.retainedSince && (report.retainedUntil ?? "it is released")],
    ...report.sandboxes.map((sandbox) => ["sandbox", describeSandbox(sandbox)] as const),
  ];
  const lines = known.flatMap(([what, value]) =>
    value === undefined ? [] : [[`  ${what}`, printable(value)]],
  );
  const name = mac === undefined ? address : `MAC address ${mac}`;
  const isLed = state === "gateway" && pool !== undefined;
  const words = isLed ? `is the gateway of pool "${pool}": no pod gets it` : SENTENCES[state];
  return `${name} ${words}\n${columns(lines)}`;
}

function podWords(pod: AddressReport["pod"]): string | undefined {
  return pod && `${pod.namespace}/${pod.name}${pod.uid === "" ? "" : ` (uid ${pod.uid})`}`;
}

function describeSandbox({ containerID, interface: name, network, pod, since }: Sandbox): string {
  const whose = pod === "" ? "" : `, pod ${pod}`;
  const where = network === "" ? "" : `, network ${network}`;
  const what = containerID === "" ? `by the pod's status, ${name}` : `${containerID} ${name}`;
  return `${what}${where}${whose}, since ${since}`;
}
