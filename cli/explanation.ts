// SPDX-License-Identifier: Apache-2.0
import { type Claim, isBound } from "../allocator/claim.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../allocator/dialects.ts";
import { formatDuration } from "../allocator/duration.ts";
import { describeIdentity } from "../allocator/identity.ts";
import type { KubeObject } from "../allocator/kube-object.ts";
import type { Verdict } from "../allocator/retention.ts";
import { type AddressCase, type Circumstances, isDeleting, isHeldBack, podPhase } from "./circumstances.ts";
import { standOf } from "./listings/reservations.ts";
import { describeNode } from "./node.ts";
import { columns, printable, timeOf } from "./output.ts";
import { describePhase } from "./phase.ts";
import { askedBy, fine, type Standing, standingOfPod, stuck, waitingFor } from "./standing.ts";

type Row = readonly [label: string, text: string];

/** Why the pod stands as it does, for people; `stuck` when it does not go on by itself. */
export function explainPod(pod: KubeObject, facts: Circumstances): { text: string; stuck: boolean } {
  const { namespace, name } = pod.metadata;
  const standing = standingOfPod(pod, facts);
  return written(`pod/${namespace}/${name}`, standing, [...rowsOfPod(pod), ...rowsOfClaim(facts)]);
}

/** The same for a claim. */
export function explainClaim(claim: Claim, facts: Circumstances): { text: string; stuck: boolean } {
  const { pod } = facts;
  const rows = [...(pod === undefined ? [] : rowsOfPod(pod)), ...rowsOfClaim(facts)];
  return written(`ipclaim/${claim.namespace}/${claim.name}`, standingOfClaim(claim, facts), rows);
}

function standingOfClaim(claim: Claim, facts: Circumstances): Standing {
  const { binding, status } = claim;
  const { pod } = facts;
  if (claim.releasing === true)
    return fine("is being given back; others get its addresses when they have cooled");
  if (claim.nonce === "") return stuck(`has no addresses yet: ${status.message ?? "not reserved"}`);
  if (pod !== undefined && pod.metadata.uid !== binding?.podUID) {
    const { words, ...rest } = standingOfPod(pod, facts);
    return { words: `is wanted by pod ${pod.metadata.name}, which ${words}`, ...rest };
  }
  if (binding === undefined) return fine(restOf(claim));
  if (!isBound(claim)) return fine(`is promised to ${binding.podName || "a pod that has no name yet"}`);
  const { podName, node } = binding;
  if (facts.holder !== undefined) return fine(`is lent to pod ${podName} on ${node}`);
  if (!isHeldBack(facts)) return fine(`was lent to pod ${podName} on ${node}, whose sandbox is over`);
  const words = `is still lent to pod ${podName} on ${node}, which is gone; its sandbox was not seen to end`;
  return { words, stuck: true, next: facts.place === "data" ? [] : waitingFor(facts, podName, node) };
}

function restOf({ retained, retention }: Claim): string {
  if (retained === undefined) return "keeps its addresses; nobody has them now";
  const until = retention.ttlMs === null ? "until it is released" : `for ${formatDuration(retention.ttlMs)}`;
  return `keeps its addresses ${until}; its owner is ${retained.because} since ${timeOf(retained.since)}`;
}

function rowsOfPod(pod: KubeObject): readonly Row[] {
  const { annotations } = pod.metadata;
  const [node, phase, uid] = [pod.spec.text("nodeName"), podPhase(pod), pod.metadata.uid];
  const unscheduled = phase === "" ? "" : "not scheduled"; // on the embedded stack nobody schedules
  const parts = [
    node === "" ? unscheduled : `on ${node}`,
    phase,
    isDeleting(pod) ? "being deleted" : "",
    uid === "" ? "" : `uid ${uid}`,
  ].filter((part) => part !== "");
  const asks = askedBy(pod);
  const claim = annotations[ASSIGNED_CLAIM];
  const got = annotations[ASSIGNED_ADDRESSES]?.replaceAll(",", ", ") ?? "its addresses";
  return [
    ...(parts.length === 0 ? [] : [["pod", parts.join(", ")] as const]),
    ...(asks === "" ? [] : [["asks for", asks] as const]),
    ...(claim === undefined ? [] : [["admitted with", `claim ${claim}, ${got}`] as const]),
  ];
}

function rowsOfClaim(facts: Circumstances): readonly Row[] {
  const { claim, addresses, place } = facts;
  if (claim === undefined) return [];
  const { record } = claim;
  const { binding, identity, status } = record;
  const verdict = describeVerdict(facts.verdict);
  return [
    ["claim", `${claim.key}, ${describePhase(record)}, for ${describeIdentity(identity)}`],
    ...addresses.map((each) => ["address", describeAddress(each)] as const),
    ...(binding === undefined ? [] : [["lent to", describeBinding(binding)] as const]),
    ...(isBound(record) || status.attachment ? [["sandbox", describeSandbox(record)] as const] : []),
    ...(binding?.node && place === "cluster"
      ? [["node", describeNode(binding.node, facts.node)] as const]
      : []),
    ...(status.message === undefined ? [] : [["message", status.message] as const]),
    ...(verdict === "" ? [] : [["next", verdict] as const]),
  ];
}

function describeAddress({ address, reservation, pool }: AddressCase): string {
  if (reservation === undefined) return `${address}, not reserved`;
  const { record } = reservation;
  return `${address}, pool ${record.pool}, ${standOf(record, pool?.cooldownMs ?? 0)}`;
}

function describeBinding({ podName, podUID, node, since }: NonNullable<Claim["binding"]>): string {
  const pod = podName === "" ? "a pod without a name yet" : `pod ${podName}`;
  const uid = podUID === "" ? "" : ` (uid ${podUID})`;
  return `${pod}${uid}${node === "" ? ", promised" : ` on ${node}`} since ${timeOf(since)}`;
}

/** A report about an earlier pod's sandbox says nothing of the present one. */
function describeSandbox({ status, binding }: Claim): string {
  const { attachment } = status;
  if (attachment === undefined) return "none was reported";
  const { containerID, interface: name, node, since, detached, podUID } = attachment;
  const whose = binding !== undefined && podUID !== binding.podUID ? `, of pod uid ${podUID}` : "";
  const state = detached ? "has ended" : "not seen to end";
  return `${containerID} ${name} on ${node} since ${timeOf(since)}${whose}, ${state}`;
}

function describeVerdict(verdict: Verdict): string {
  switch (verdict.kind) {
    case "release":
      return `Berth releases the claim at its next pass: ${REASONS[verdict.reason]}`;
    case "retain":
      return `Berth keeps the addresses from its next pass on, by retention: ${REASONS[verdict.because]}`;
    case "unpromise":
      return "Berth takes the promise back at its next pass: its pod never came, or is gone";
    default:
      return "";
  }
}

const REASONS = {
  deleted: "its owner is deleted",
  scaled: "its owner is scaled down",
  expired: "its time is over",
  "never-came": "its pod never came",
} as const;

function written(
  subject: string,
  standing: Standing,
  rows: readonly Row[],
): { text: string; stuck: boolean } {
  const lines = columns(rows.map(([label, text]) => [`  ${label}`, printable(text)]));
  const next = standing.next.map((advice) => `-> ${printable(advice)}\n`).join("");
  const text = `${printable(`${subject} ${standing.words}`)}\n${lines}${next}`;
  return { text, stuck: standing.stuck };
}
