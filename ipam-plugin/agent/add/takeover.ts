// SPDX-License-Identifier: Apache-2.0
// Who else on this node has a claim, or its addresses, that a new sandbox is to have.

import { type Refusal, refuse } from "../../../allocator/base/errors.ts";
import type { ClaimAttachment } from "../../../allocator/model/claim.ts";
import { placeOf } from "../claims/claim-place.ts";
import type { ClaimMatch, ClaimResult, PodRef } from "../claims/claim-source.ts";
import { within } from "../claims/deadline.ts";
import {
  type Attachment,
  type AttachmentId,
  attachmentKey,
  lookForNetns,
  nameOf,
  networkOf,
} from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";

/** How long a new sandbox waits for the DEL of the one that has its claim. */
const TAKEOVER_MS = 5_000;

type NewSandbox = AttachmentId & { readonly pod: PodRef; readonly startNs: bigint };

/** Other attachments that the claim is to be taken from, once there is nothing that speaks against it. */
export async function supersedeOthers(
  { claim, interfaces }: ClaimMatch,
  next: NewSandbox,
  services: AgentServices,
  signal: AbortSignal,
): Promise<readonly Attachment[] | Refusal> {
  const { attachments } = services;
  const superseded: Attachment[] = [];
  const unknown = await unknownSandbox(claim, services, (sandbox) => isAnothers(sandbox, next));
  if (unknown !== undefined) return stillUsed(claim, unknown);
  for (const other of attachments.ofClaim(claim)) {
    const verdict = judgeTakeover(other, next, await mayBeUp(other, services), interfaces);
    if (verdict === "beside") continue;
    if (verdict === "refuse") {
      return busy(
        claim,
        `it serves ${other.interface} of this container, and names no address for another interface of it`,
      );
    }
    if (verdict === "late") return busy(claim, `a newer sandbox of the pod, ${other.containerID}, has it`);
    if (verdict === "wait") await waitForDetachment(other, services, signal);
    const current = attachments.get(other);
    if (current?.state !== "attached") continue;
    if (verdict === "wait") {
      return stillUsed(claim, other);
    }
    superseded.push(current);
  }
  return superseded;
}

async function waitForDetachment(
  other: Attachment,
  services: AgentServices,
  signal: AbortSignal,
): Promise<void> {
  const limit = { ms: TAKEOVER_MS, clock: services.clock, signals: [signal] };
  await within(limit, (either) => services.attachments.untilDetached(other, either));
}

/** A sandbox that cannot be checked counts as up: two sandboxes with one address are worse than one that waits. */
async function mayBeUp(other: Attachment, { host }: AgentServices): Promise<boolean> {
  return other.netnsSeen === false || (await lookForNetns(other, host)) !== "gone";
}

/** Of the same pod, the kubelet has stopped it before it asks again. */
function isAnothers({ containerID, podUID }: ClaimAttachment, { pod, ...next }: NewSandbox): boolean {
  return containerID !== next.containerID && (pod.uid === "" || podUID !== pod.uid);
}

function stillUsed(claim: string, { containerID }: { readonly containerID: string }): Refusal {
  return busy(
    claim,
    `container ${containerID} of another pod still uses it; it is free after that one's DEL`,
  );
}

export function busy(claim: string | undefined, words: string): Refusal {
  return refuse("CLAIM_BUSY", `claim ${claim}: ${words}`, { claim: claim ?? "" });
}

/** What becomes of another attachment that uses the claim which a new sandbox was just given. */
type Takeover = "supersede" | "beside" | "wait" | "refuse" | "late";

/**
 * | the other attachment                               |           |
 * |----------------------------------------------------|-----------|
 * | another interface of the same container            | refuse    | both would be up with one address
 * | the same, and the claim names both interfaces       | beside    | each has addresses of its own
 * | the same interface of it, under another network    | supersede | it is the same link
 * | another sandbox of the same pod                    | supersede | the kubelet has stopped it before it asks again
 * | a newer sandbox of the same pod                    | late      | this one's ADD has outlived it
 * | another pod, its sandbox may be up, or cannot be seen | wait   | for its DEL, which is on its way or never comes
 * | another pod, its sandbox is gone                   | supersede | its DEL is late or lost
 */
export function judgeTakeover(
  other: Attachment,
  next: NewSandbox,
  otherMayBeUp: boolean,
  named: readonly string[] = [],
): Takeover {
  if (other.containerID === next.containerID) {
    if (other.interface === next.interface) return "supersede";
    return named.includes(other.interface) && named.includes(next.interface) ? "beside" : "refuse";
  }
  // A runtime that does not say the UID (or says none) leaves it to the sandbox.
  if (next.pod.uid !== "" && other.pod?.uid === next.pod.uid)
    return other.startNs > next.startNs ? "late" : "supersede";
  return otherMayBeUp ? "wait" : "supersede";
}

/**
 * A sandbox that is up on this node by the word of its claim or of the runtime, and that the journal knows nothing of: another journal
 * has served in this boot. It uses the claim until its network namespace is seen to be gone; undefined: there is none.
 */
export async function unknownSandbox(
  claim: string,
  {
    attachments,
    claimSource,
    host,
    bootId,
  }: Pick<AgentServices, "attachments" | "claimSource" | "host" | "bootId">,
  counts: (sandbox: ClaimAttachment) => boolean = () => true,
): Promise<ClaimAttachment | undefined> {
  for (const sandbox of await claimSource.lastSandboxes(claim)) {
    const { netns, bootID } = sandbox;
    if (netns === undefined || bootID !== bootId || attachments.knows(sandbox) || !counts(sandbox)) continue;
    if ((await host.look(netns)) !== "gone") return sandbox;
  }
  return undefined;
}

/**
 * An address of the claim that something else on this node has: pool and host-local ranges of the network overlap,
 * or a sandbox of any network still has it from a claim that is not its pod's any more.
 */
export function findTaken(
  bound: ClaimResult,
  { scope }: AttachmentId,
  { services, superseded }: { services: AgentServices; superseded: readonly Attachment[] },
): Refusal | undefined {
  const space = services.attachments.space(scope);
  const ours = new Set(superseded.map(attachmentKey));
  for (const { address } of bound.addresses) {
    const others = services.attachments.placesOf(address).filter((id) => !isApart(id, bound, services));
    const holder = [space.holderOf(address), ...others].find((id) => id !== undefined && !ours.has(id));
    if (holder === undefined) continue;
    const words = `${address} is in use on this node: ${nameOf(holder)} has it in network ${networkOf(holder)}; delete that one, or keep pools and ipam.ranges apart`;
    return refuse("ADDRESS_TAKEN", words, { address });
  }
  return undefined;
}

/** Networks in different etcds are on different wires: an address is one only within an etcd. */
function isApart(id: string, { claim = "" }: ClaimResult, services: AgentServices): boolean {
  const other = services.attachments.at(id)?.claim;
  const [here, there] = [placeOf(claim).etcd, other === undefined ? undefined : placeOf(other).etcd];
  const inEtcds = services.sharedNetworks?.hasOwn === true || (here !== undefined && there !== undefined);
  return other !== undefined && inEtcds && here !== there;
}
