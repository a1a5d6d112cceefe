// SPDX-License-Identifier: Apache-2.0

import { shortDuration } from "../../allocator/base/go-duration.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, requestKeysIn } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, isBound } from "../../allocator/model/claim.ts";
import { describeContainer, importedFor } from "../../allocator/model/container-claim.ts";
import { shownAs } from "../../allocator/model/interface-macs.ts";
import { FIRST_INTERFACE, formatAddresses, placesOf } from "../../allocator/model/interfaces.ts";
import { claimPlaceOf, describeHolder, describeOwner, isOfContainer } from "../backend/container-words.ts";
import { describeNode } from "../backend/node-state.ts";
import { describePhase } from "../backend/phase.ts";
import { confirmedByKubelet } from "../backend/reported-addresses.ts";
import { reservationState } from "../listings/reservations.ts";
import { ageOf, columns, printable, timeOf } from "../terminal/output.ts";
import { blocked, type Diagnosis, ok } from "./diagnosis.ts";
import { diagnosePod, waitingFor } from "./pod-diagnosis.ts";
import { type AddressFacts, hasEnded, isBlocked, isDeleting, type PodFacts, podPhase } from "./pod-facts.ts";

/** Clocks of hosts differ by seconds. */
const SILENT_MS = 60_000;

/** Of a claim that is bound: what nobody says is not known, and not gone. */
const UNKNOWN_SANDBOX = "not known: none was reported, nor that one has ended";

type Row = readonly [label: string, text: string];

/** Why the pod stands as it does, for people; `stuck` when it does not go on by itself. */
export function explainPod(pod: KubeObject, facts: PodFacts): { text: string; stuck: boolean } {
  const { namespace, name } = pod.metadata;
  const diagnosis = diagnosePod(pod, facts);
  return written(`pod/${namespace}/${name}`, diagnosis, [...rowsOfPod(pod, facts), ...rowsOfClaim(facts)]);
}

/** The same for a claim. */
export function explainClaim(claim: Claim, facts: PodFacts): { text: string; stuck: boolean } {
  const { pod } = facts;
  const rows = [...(pod === undefined ? [] : rowsOfPod(pod, facts)), ...rowsOfClaim(facts)];
  return written(`ipclaim/${claim.namespace}/${claim.name}`, stateOfClaim(claim, facts), rows);
}

function stateOfClaim(claim: Claim, facts: PodFacts): Diagnosis {
  const { binding, status } = claim;
  const { pod } = facts;
  if (claim.releasing === true)
    return ok("is being given back; others get its addresses when they have cooled");
  if (claim.nonce === "") return blocked(`has no addresses yet: ${status.message ?? "not reserved"}`);
  if (pod !== undefined && pod.metadata.uid !== binding?.podUID && !hasEnded(pod)) {
    const {
      words,
      ofClaim = `is wanted by pod ${pod.metadata.name}, which ${words}`,
      ...rest
    } = diagnosePod(pod, facts);
    return { words: ofClaim, ...rest };
  }
  if (binding === undefined) return ok(unboundRest(claim, facts));
  if (!isBound(claim)) return ok(`is held for ${heldFor(claim, facts)}`);
  return stateOfBound(claim, binding, facts);
}

function heldFor(claim: Claim, { place }: PodFacts): string {
  const named = claim.binding?.podName || "a pod that has no name yet";
  return isOfContainer(claim, place) ? describeHolder(claim, place) : named;
}

/** A claim stays bound when its pod has ended or is gone, until it is released or another pod gets it. */
function stateOfBound(
  claim: Claim,
  { podName, node }: NonNullable<Claim["binding"]>,
  facts: PodFacts,
): Diagnosis {
  const { holder } = facts;
  if (facts.place === "etcd" && isBlocked(facts)) return stateOnHost(node, facts);
  const container = facts.place === "data" ? presentContainer(claim) : undefined;
  if (container !== undefined && holder === undefined) return stateOfContainer(claim, container, facts);
  if (holder !== undefined && !hasEnded(holder)) return ok(`is bound to pod ${podName} on ${node}`);
  const over = holder === undefined ? "is gone" : `has ended (${podPhase(holder)})`;
  if (isBlocked(facts)) {
    const words = `is still bound to pod ${podName} on ${node}, which ${over}; its sandbox was not seen to end`;
    return { words, stuck: true, next: facts.place === "data" ? [] : waitingFor(facts, podName, node) };
  }
  if (holder === undefined) {
    const kept = claim.retained === undefined ? "" : `; it ${restOf(claim, facts)}`;
    const who = describeHolder(claim, facts.place);
    return ok(`was bound to ${who} on ${node}, whose sandbox is over${kept}`);
  }
  const rest = facts.verdict.kind === "release" ? "is released soon" : restOf(claim, facts);
  return ok(`was bound to pod ${podName} on ${node}, which ${over}; it ${rest}`);
}

/** The one that has the claim, and was not seen to end. */
export function presentContainer({ binding, status: { attachment } }: Claim): string | undefined {
  const isOwn = attachment?.detached === false && attachment.podUID === binding?.podUID;
  return isOwn && attachment.containerID !== "" ? attachment.containerID : undefined;
}

/** Nobody needs to apply pods to a data folder: that one is not there says nothing of its container. */
function stateOfContainer({ binding, identity }: Claim, container: string, { owner }: PodFacts): Diagnosis {
  const use = `in use by container ${container} (pod ${binding?.podName ?? ""}) on ${binding?.node ?? ""}`;
  if (owner !== "deleted" || identity.kind === "Pod") return ok(`is ${use}`);
  return blocked(`is still ${use}, and its owner is deleted; it is free after that container's DEL`);
}

/** In etcd nobody knows of pods. A host that is alive writes every 10 s: one that is silent may be gone. */
function stateOnHost(node: string, { heardAt, now }: PodFacts): Diagnosis {
  const age = heardAt === undefined ? undefined : now - heardAt;
  if (heardAt !== undefined && age !== undefined && age <= SILENT_MS)
    return ok(`is in use on host ${node}, heard of ${ageOf(Math.min(heardAt, now), now)} ago`);
  const last = heardAt === undefined ? "" : ` and was last heard of at ${timeOf(heardAt)}, by its own clock`;
  return {
    words: `is in use on host ${node}, which has not said that its container ended${last}`,
    stuck: false,
    next: [`if ${node} is gone for good: berthctl fence ${node} --etcd URL`],
  };
}

function unboundRest(claim: Claim, facts: PodFacts): string {
  const imported = importedFor(claim, claimPlaceOf(facts.place));
  return imported === undefined
    ? restOf(claim, facts)
    : `is kept for ${describeContainer(imported)}, to which cni-ipam-etcd gave its address; it goes back when any host is told that this container has ended`;
}

function restOf({ retained, retention }: Claim, { addresses, verdict }: PodFacts): string {
  if (retained === undefined) return "keeps its addresses; nobody has them now";
  const was = `its owner was ${PAST[retained.because]} at ${timeOf(retained.since)}`;
  if (verdict.kind === "unretain") return `keeps its addresses; ${was}, and needs them again`;
  const pools = addresses.flatMap(({ pool }) => pool ?? []);
  const ttlMs = allowedTtlMs(retention, pools);
  const limiting = pools.find((pool) => pool.retention.ttlMs === ttlMs && ttlMs !== retention.ttlMs);
  const most = limiting === undefined ? "" : `, the most that pool ${JSON.stringify(limiting.name)} allows`;
  const unknown = addresses.some(({ reservation }) => reservation === "hidden")
    ? ", if its pool allows it"
    : "";
  const until =
    ttlMs === null
      ? "until it is released"
      : `until ${timeOf(retained.since + ttlMs)} (${shortDuration(ttlMs)}${most}${unknown})`;
  return `keeps its addresses ${until}; ${was}`;
}

/** The annotations that ask for something, as they were written; empty: it asks for nothing. */
function requestedBy({ metadata }: KubeObject): string {
  return requestedIn(metadata.annotations);
}

function requestedIn(annotations: Labels): string {
  const keys = requestKeysIn(annotations);
  return keys.map((key) => `${key}=${annotations[key]}`).join(" ");
}

function rowsOfPod(pod: KubeObject, { space }: PodFacts): readonly Row[] {
  const { annotations } = pod.metadata;
  const [node, phase, uid] = [pod.spec.text("nodeName"), podPhase(pod), pod.metadata.uid];
  const unscheduled = phase === "" ? "" : "not scheduled"; // on the embedded stack nobody schedules
  const services = [
    node === "" ? unscheduled : `on ${node}`,
    phase,
    isDeleting(pod) ? "being deleted" : "",
    uid === "" ? "" : `uid ${uid}`,
  ].filter((part) => part !== "");
  const asks = requestedBy(pod);
  const claim = annotations[ASSIGNED_CLAIM];
  // a pod that asks for nothing itself has a claim by what its namespace asks for
  const ofNamespace = asks === "" && claim !== undefined ? requestedIn(space.annotations) : "";
  const got = annotations[ASSIGNED_ADDRESSES]?.split(",").map(shownAs).join(", ") ?? "its addresses";
  return [
    ...(services.length === 0 ? [] : [["pod", services.join(", ")] as const]),
    ...(asks === "" ? [] : [["asks for", asks] as const]),
    ...(ofNamespace === "" ? [] : [["namespace asks", ofNamespace] as const]),
    ...(claim === undefined ? [] : [["admitted with", `claim ${claim}, ${got}`] as const]),
  ];
}

function rowsOfClaim(facts: PodFacts): readonly Row[] {
  const { claim, addresses, place, holder } = facts;
  if (claim === undefined) return [];
  const { record } = claim;
  const { binding, status } = record;
  const verdict = describeVerdict(facts);
  return [
    ["claim", `${claim.key}, ${describePhase(record)}, for ${describeOwner(record, place)}`],
    ...addresses.map((each) => ["address", describeAddress(each, record)] as const),
    ...(binding === undefined ? [] : [["bound to", describeBinding(record, binding, place)] as const]),
    ...(isBound(record) || status.attachment ? [["sandbox", describeSandbox(record, holder)] as const] : []),
    ...(binding?.node && place === "cluster"
      ? [["node", describeNode(binding.node, facts.node)] as const]
      : []),
    ...(status.message === undefined ? [] : [["message", status.message] as const]),
    ...(verdict === "" ? [] : [["next", verdict] as const]),
  ];
}

function describeAddress({ address, reservation, cooldownMs }: AddressFacts, claim: Claim): string {
  const shown = formatAddresses([address], placesOf(claim)).map(shownAs).join();
  if (reservation === "hidden") return shown;
  if (reservation === undefined) return `${shown}, not reserved`;
  const { record } = reservation;
  return `${shown}, pool ${record.pool}, ${reservationState(record, cooldownMs)}`;
}

function describeBinding(
  claim: Claim,
  { podUID, node, since }: NonNullable<Claim["binding"]>,
  place: PodFacts["place"],
): string {
  const pod = describeHolder(claim, place);
  const uid = podUID === "" ? "" : ` (uid ${podUID})`;
  return `${pod}${uid}${node === "" ? ", held for it" : ` on ${node}`} since ${timeOf(since)}`;
}

/** A report about an earlier pod's sandbox says nothing of the present one. */
function describeSandbox(claim: Claim, holder: KubeObject | undefined): string {
  const { status, binding } = claim;
  const { attachment } = status;
  const isOfFormer = attachment?.detached === true && attachment.podUID !== binding?.podUID;
  if (attachment === undefined || isOfFormer) {
    const reported = holder?.metadata.uid === binding?.podUID ? kubeletsOf(claim, holder) : "";
    if (reported !== "") return reported;
  }
  if (attachment === undefined) return isDetached(claim) ? "none was reported" : UNKNOWN_SANDBOX;
  const { containerID, interface: name, node, since, detached, podUID } = attachment;
  const whose = binding !== undefined && podUID !== binding.podUID ? `, of pod uid ${podUID}` : "";
  const state = detached ? "has ended" : "not seen to end";
  if (containerID === "") return `none is known any more, on ${node} since ${timeOf(since)}`;
  return `${containerID} ${name} on ${node} since ${timeOf(since)}${whose}, ${state}`;
}

function kubeletsOf(claim: Claim, pod: KubeObject | undefined): string {
  const own = pod === undefined || hasEnded(pod) ? [] : confirmedByKubelet(claim, pod);
  return own.length === 0 ? "" : `${FIRST_INTERFACE} has ${own.join(" and ")}, by the pod's status`;
}

/** What Berth does with a claim next, and when; empty: nothing. */
export function describeVerdict({ verdict, waitsUntil }: Pick<PodFacts, "verdict" | "waitsUntil">): string {
  if (verdict.kind === "keep" && waitsUntil !== undefined)
    return `Berth releases the claim within a minute after ${timeOf(waitsUntil)}, unless its pod comes`;
  switch (verdict.kind) {
    case "release":
      return `Berth releases the claim at its next pass: ${REASONS[verdict.reason]}`;
    case "retain":
      return `Berth keeps the addresses from its next pass on, by retention: ${REASONS[verdict.because]}`;
    case "unretain":
      return "Berth ends its retention within a minute, or when its pod comes: its owner needs it again";
    case "release-hold":
      return "Berth ends the hold at its next pass: its pod never came, or is gone";
    default:
      return "";
  }
}

const PAST = { deleted: "deleted", scaled: "scaled down" } as const;

const REASONS = {
  deleted: "its owner is deleted",
  scaled: "its owner is scaled down",
  expired: "its time is over",
  "never-came": "its pod never came",
} as const;

function written(
  subject: string,
  diagnosis: Diagnosis,
  rows: readonly Row[],
): { text: string; stuck: boolean } {
  const lines = columns(rows.map(([label, text]) => [`  ${label}`, printable(text)]));
  const next = diagnosis.next.map((advice) => `-> ${printable(advice)}\n`).join("");
  const text = `${printable(`${subject} ${diagnosis.words}`)}\n${lines}${next}`;
  return { text, stuck: diagnosis.stuck };
}
