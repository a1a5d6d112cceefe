// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal, messageOf, type Refusal, refuse } from "../../allocator/errors.ts";
import { type CniError, fromRefusal } from "../cni/errors.ts";
import type { Ask } from "./ask.ts";
import { type Attachment, keyOf, nameOf, neverAttached, placeId } from "./attachment.ts";
import type { AttachRequest, FoundClaim, Moored, PodRef, Unmoored } from "./mooring.ts";
import { giveUp, occupy } from "./occupy.ts";
import type { Parts } from "./parts.ts";
import { judgeTakeover } from "./takeover.ts";
import { unlessAborted, within } from "./within.ts";

/** How long a new sandbox waits for the DEL of the one that has its claim. */
const TAKEOVER_MS = 5_000;

type PodAsk = Ask & { readonly pod: PodRef };

/** Attaches what the pod's claim lends; undefined when the pod has none and asked for none. */
export async function moor(
  ask: PodAsk,
  parts: Parts,
  signal: AbortSignal,
): Promise<Attachment | CniError | undefined> {
  const found = await unlessAborted(parts.mooring.find(requestOf(ask), signal), signal);
  if (found === undefined) return giveUp(ask);
  if (isRefusal(found)) return fromRefusal(found);
  if (found.kind === "unmoored") return undefined;
  const attached = await parts.turns.run(`claim\0${found.claim}`, () =>
    moorTo(found, { ask, parts, signal }),
  );
  return isRefusal(attached) ? fromRefusal(attached) : attached;
}

function requestOf(ask: PodAsk): AttachRequest {
  return {
    pod: ask.pod,
    attachment: keyOf(ask),
    pools: ask.ipam.pools,
    addresses: ask.requested,
    annotations: ask.ipam.annotations,
  };
}

/** The claim moves to this sandbox only when no other of this node can have it any more (invariant 3c). */
async function moorTo(
  found: FoundClaim,
  taking: Taking,
): Promise<Attachment | CniError | Refusal | undefined> {
  const { ask, parts, signal } = taking;
  const superseded = await endOthers(found.claim, taking);
  if (isRefusal(superseded)) return superseded;
  if (signal.aborted) return giveUp(ask);
  const lent = await attachTo(found, taking);
  if (lent === undefined) return giveUp(ask);
  if (isRefusal(lent)) return lent;
  if (lent.kind === "unmoored") return undefined;
  try {
    const attached = await take(lent, superseded, taking);
    if (isRefusal(attached)) await giveBack(lent, ask, parts);
    return attached;
  } catch (error) {
    await giveBack(lent, ask, parts);
    throw error;
  }
}

/** Undefined when the signal aborted first. An answer that comes after that is given back. */
async function attachTo(
  found: FoundClaim,
  { ask, parts, signal }: Taking,
): Promise<Moored | Unmoored | Refusal | undefined> {
  const answer = parts.mooring.attach(found, requestOf(ask), signal);
  const first = await unlessAborted(answer, signal);
  if (first === undefined) {
    giveBackLate(answer, ask, parts).catch((error: unknown) => {
      parts.log.debug("mooring answered too late", { error: messageOf(error) });
    });
  }
  return first;
}

async function giveBackLate(
  answer: Promise<Moored | Unmoored | Refusal>,
  ask: PodAsk,
  parts: Parts,
): Promise<void> {
  const late = await answer;
  if (late.kind === "moored") await parts.turns.run(placeId(ask), () => giveBack(late, ask, parts));
}

interface Taking {
  readonly ask: PodAsk;
  readonly parts: Parts;
  readonly signal: AbortSignal;
}

async function take(
  lent: Moored,
  superseded: readonly Attachment[],
  { ask, parts, signal }: Taking,
): Promise<Attachment | Refusal> {
  if (lent.addresses.length === 0) {
    throw new BerthError(
      "INTERNAL",
      `claim ${lent.claim} of pod ${ask.pod.namespace}/${ask.pod.name} lends no address`,
    );
  }
  const taken = findTaken(lent, ask, { parts, superseded });
  if (taken !== undefined) return taken;
  if (signal.aborted) return busy(lent.claim, "the ADD was cancelled or took too long; try again");
  return occupy(ask, parts, {
    source: lent.claim === undefined ? "ranges" : "claim",
    ...(lent.claim === undefined ? {} : { claim: lent.claim }),
    result: {
      addresses: lent.addresses,
      routes: lent.routes.length > 0 ? lent.routes : ask.ipam.routes,
      dns: Object.keys(lent.dns).length > 0 ? lent.dns : ask.dns,
    },
    superseded,
  });
}

/** Other attachments that the claim is to be taken from, once there is nothing that speaks against it. */
async function endOthers(
  claim: string,
  { ask, parts, signal }: Taking,
): Promise<readonly Attachment[] | Refusal> {
  const { attachments } = parts;
  const superseded: Attachment[] = [];
  for (const other of attachments.ofClaim(claim)) {
    const verdict = judgeTakeover(other, ask, await mayBeUp(other, parts));
    if (verdict === "refuse") {
      return busy(
        claim,
        `it serves ${other.interface} of this container; an interface has a claim of its own`,
      );
    }
    if (verdict === "late") return busy(claim, `a newer sandbox of the pod, ${other.containerID}, has it`);
    if (verdict === "wait") await waitForDetachment(other, parts, signal);
    const current = attachments.get(other);
    if (current?.state !== "attached") continue;
    if (verdict === "wait") {
      return busy(
        claim,
        `container ${other.containerID} of another pod still uses it; it is free after that one's DEL`,
      );
    }
    superseded.push(current);
  }
  return superseded;
}

async function waitForDetachment(other: Attachment, parts: Parts, signal: AbortSignal): Promise<void> {
  const limit = { ms: TAKEOVER_MS, clock: parts.clock, signals: [signal] };
  await within(limit, (either) => parts.attachments.untilDetached(other, either));
}

/** What cannot be seen counts as up: two sandboxes with one address are worse than one that waits. */
async function mayBeUp({ netns, netnsSeen }: Attachment, { host }: Parts): Promise<boolean> {
  return netnsSeen && (await host.look(netns)) !== "gone";
}

/** An address that the claim lends and something else on this node has: pool and host-local ranges overlap. */
function findTaken(
  lent: Moored,
  ask: Ask,
  { parts, superseded }: { parts: Parts; superseded: readonly Attachment[] },
): Refusal | undefined {
  const space = parts.attachments.space(ask.scope);
  const ours = new Set(superseded.map(placeId));
  for (const { address } of lent.addresses) {
    const holder = space.holderOf(address);
    if (holder === undefined || ours.has(holder)) continue;
    const words = `${address} is in use on this node: ${nameOf(holder)} has it in network ${ask.scope.network}; delete that one, or keep pools and ipam.ranges apart`;
    return refuse("ADDRESS_TAKEN", words, { address });
  }
  return undefined;
}

function busy(claim: string | undefined, words: string): Refusal {
  return refuse("CLAIM_BUSY", `claim ${claim}: ${words}`, { claim: claim ?? "" });
}

/**
 * The mooring counts this sandbox as attached and it is not: said through the journal, as after a DEL. It is no DEL,
 * so the same ADD may come again.
 */
async function giveBack({ claim }: Moored, ask: PodAsk, parts: Parts): Promise<void> {
  const { attachments, clock, bootId, notices, log } = parts;
  const known = attachments.get(ask);
  if (claim === undefined || known?.state === "attached") return;
  const deadlineNs = known?.deadlineNs ?? 0n;
  const tombstone = { ...neverAttached(ask, { now: clock.now(), deadlineNs, bootId }), claim, pod: ask.pod };
  try {
    await attachments.commit({ put: [{ ...tombstone, source: "claim", noticePending: true }] });
    notices.kick();
  } catch (error) {
    log.error("claim was not given back", { claim, containerID: ask.containerID, error });
  }
}
