// SPDX-License-Identifier: Apache-2.0
// Which claim is to be released, whether it may be, and which pods will miss it.

import { BerthError, isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { cooldownOf } from "../../allocator/cache/cooldown.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { ASSIGNED_CLAIM, readRequest } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podState, workloadState } from "../../allocator/manifest/kubernetes-object.ts";
import { FENCED } from "../../allocator/manifest/node-fence.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { type Claim, type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import { bareNamespace } from "../../allocator/model/cluster-state.ts";
import { ordinalFrom } from "../../allocator/model/ordinals.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import { notInPools } from "../../allocator/planning/outside-pools.ts";
import { isBeside, quoted } from "../../allocator/planning/refusal-messages.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { kindNamed } from "../apply/kinds.ts";
import { claimKeyOf } from "../apply/object-ref.ts";
import { reportWarning } from "../apply/report.ts";
import { parseDenial } from "../backend/admission-denial.ts";
import type { Backend, Objects } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { isForPod } from "../explain/kept-for-name.ts";
import type { Io } from "../terminal/command.ts";
import { usageError } from "../terminal/flags.ts";
import { timeOf } from "../terminal/output.ts";
import { addressUnlessName } from "./address-named.ts";

/** As it was typed, with the namespace of `-n`, and the one that a name without any is in. */
interface Meant {
  readonly operand: string;
  readonly given: string | undefined;
  readonly usual: string;
}

/** The claim that is called so, or that holds the address; `view` has what is known of that. */
export function claimMeant(
  { operand, given, usual }: Meant,
  view: RecordReader,
  now: number,
): ClaimKey | Refusal {
  const address = addressUnlessName(operand);
  if (address === undefined) return keyNamed(operand, given ?? usual);
  const holder = holderOf(view, address, now);
  return isRefusal(holder) ? holder : (heldElsewhere(address, holder, given) ?? holder);
}

/** An address has one holder, wherever that is; a namespace that is named beside it says who was meant. */
export function heldElsewhere(
  address: Address,
  holder: ClaimKey,
  given: string | undefined,
): Refusal | undefined {
  if (given === undefined || given === holder.namespace) return undefined;
  const words = `address ${address} is held by claim ${claimKey(holder)}, which is not in namespace ${given}; leave -n out if you mean that claim`;
  return refuse("CLAIM_MISSING", words, { address, claim: claimKey(holder) });
}

function keyNamed(operand: string, namespace: string): ClaimKey {
  const key = claimKeyOf(operand, namespace);
  if (!isRefusal(key)) return key;
  const advice = withoutKind(operand);
  throw usageError(advice === undefined ? key.message : `${key.message}: ${advice}`);
}

/** The claim that holds the address. */
function holderOf(view: RecordReader, address: Address, now: number): ClaimKey | Refusal {
  const reservation = view.reservation(address)?.record;
  if (reservation === undefined) {
    const pool = view.poolOf(address);
    if (pool === undefined) return notInPools(view, address);
    return refuse("CLAIM_MISSING", `address ${address} in pool ${quoted(pool.name)} is held by nobody`, {
      address,
    });
  }
  const key = claimKey(reservation.claim);
  const claim = view.claim(key)?.record;
  if (claim !== undefined && isBeside(claim, reservation)) {
    const words = `address ${address} is kept beside claim ${key}, which has ${sayMacs(claim.addresses.join(", "))}, for a pod that was admitted; it is free again within 120 s if that does not come`;
    return refuse("CLAIM_MISSING", words, { address });
  }
  if (reservation.releasedAt === undefined) return reservation.claim;
  const until = reservation.releasedAt + cooldownOf(view, reservation);
  const when = until <= now ? "is free for others from now on" : `is free for others at ${timeOf(until)}`;
  return refuse("CLAIM_MISSING", `address ${address} was given back by ${key} already and ${when}`, {
    address,
  });
}

export function noClaim(key: string): Refusal {
  const advice = withoutKind(key) ?? "see what there is with: berthctl get claims -A";
  return refuse("CLAIM_MISSING", `there is no claim ${key}; ${advice}`, { claim: key });
}

/** What to write in place of `pod/mysql-0`, which is the claim of that name in a namespace `pod` here: a pod's claim may have another name. */
function withoutKind(operand: string): string | undefined {
  const [first = "", ...name] = operand.split("/");
  const { kind } = kindNamed(first) ?? {};
  if (kind !== "Pod" && kind !== "IPClaim") return undefined;
  const claim = "name the claim without its kind, as NAMESPACE/NAME or NAME -n NAMESPACE";
  return kind === "Pod" ? `${claim}; which one a pod has: berthctl explain pod/${name.join("/")}` : claim;
}

/** What admission says to it is a refusal like our own; force does not help against it. */
export async function unlessDenied(
  backend: Backend,
  seen: Stored<"claim">,
  giveBack: () => Promise<"released" | "changed">,
): Promise<"released" | "changed" | Refusal> {
  const { key, record } = seen;
  if (record.releasing === true && backend.place === "cluster") {
    return refuse(
      "CLAIM_RELEASING",
      `claim ${key} is being given back already; see: berthctl explain claim/${key}`,
    );
  }
  try {
    return await giveBack();
  } catch (error) {
    const denial = error instanceof BerthError ? parseDenial(error.message) : undefined;
    if (denial === undefined) throw error;
    const node = record.binding?.node ?? "";
    const advice =
      node === "" || isDetached(record)
        ? ""
        : `; if you know that its sandbox is gone, vouch for its node: kubectl annotate node ${node} ${FENCED}=true`;
    return refuse("CLAIM_BUSY", `${denial}${advice}`, { claim: key });
  }
}

/** Pods that were admitted with the claim and have not ended; undefined: they may not be read. */
async function podsOf(
  { namespace, name }: Claim,
  world: Objects,
): Promise<readonly KubeObject[] | undefined> {
  const pods = await ifAllowed(() => world.objects("Pod", namespace));
  return pods?.filter((pod) => {
    const { metadata, json } = pod;
    if (metadata.namespace !== namespace || metadata.annotations[ASSIGNED_CLAIM] !== name) return false;
    return !podState(pod).ended && json.at("metadata").text("deletionTimestamp") === "";
  });
}

/** Those of them for which Berth makes the claim again when it is gone, for they ask for it; none but in a cluster. */
async function askingAnew(
  pods: readonly KubeObject[],
  namespace: string,
  { world, place }: Pick<Backend, "world" | "place">,
): Promise<readonly KubeObject[]> {
  return place === "cluster" ? await asking(pods, namespace, world) : [];
}

async function asking(
  pods: readonly KubeObject[],
  namespace: string,
  world: Objects,
): Promise<readonly KubeObject[]> {
  if (pods.length === 0) return [];
  const defaults = (await ifAllowed(() => world.namespace(namespace))) ?? bareNamespace(namespace);
  return pods.filter(({ metadata }) => {
    const request = readRequest(metadata.annotations, defaults);
    return !isRefusal(request) && requestsAddress(request);
  });
}

/** A pod is there that asks for the claim: in a cluster it is no use to release it, and on one host the pod could not start. */
export async function askedFor(claim: Claim, backend: Backend): Promise<Refusal | undefined> {
  const { world, place } = backend;
  const { namespace } = claim;
  const pods = (await podsOf(claim, world)) ?? [];
  const [pod] = await asking(pods, namespace, world);
  if (pod === undefined) return await waitedFor(claim, backend);
  const { name, owner } = pod.metadata;
  const first =
    owner === undefined
      ? `delete the pod first, or create it anew with other annotations`
      : `scale ${owner.kind} ${owner.name} down first, or change what its template asks for`;
  const key = claimKey(claim);
  const why =
    place === "cluster"
      ? `Berth would make it again at once; ${first}`
      : `it could not start without it; delete the pod first with: berthctl delete pod/${namespace}/${name}, or use --force`;
  const words = `claim ${key} (${sayMacs(claim.addresses.join(", "))}) is kept for pod ${name}, which is there and asks for it: ${why}`;
  return refuse("CLAIM_BUSY", words, { claim: key, pod: name });
}

/** One of its name that asks for it, and that no review saw, is bound to it once it is scheduled, and nobody makes it again. */
async function waitedFor(claim: Claim, backend: Backend): Promise<Refusal | undefined> {
  const { namespace, name } = claim;
  const pod = await ifAllowed(() => backend.world.object("Pod", namespace, name));
  if (pod === undefined || pod.json.at("metadata").text("deletionTimestamp") !== "") return undefined;
  if (pod.metadata.annotations[ASSIGNED_CLAIM] !== undefined) return undefined; // as above
  if (!(await isForPod(claim, pod, backend))) return undefined;
  const key = claimKey(claim);
  const words = `claim ${key} (${sayMacs(claim.addresses.join(", "))}) is kept for pod ${name}, which is there, asks for it and was not reviewed: nobody would make it again; delete the pod first, or use --force`;
  return refuse("CLAIM_BUSY", words, { claim: key, pod: name });
}

/** Pods of a claim that is gone. */
export interface PodsWithoutClaim {
  /** They cannot start. */
  readonly lost: readonly string[];
  /** Berth makes it again for them. */
  readonly asking: readonly string[];
}

export async function podsWithout(
  claim: Claim,
  backend: Pick<Backend, "world" | "place">,
): Promise<PodsWithoutClaim | undefined> {
  const pods = await podsOf(claim, backend.world);
  if (pods === undefined) return undefined;
  const asking = await askingAnew(pods, claim.namespace, backend);
  const lost = pods.filter((pod) => !asking.includes(pod));
  return {
    lost: lost.map(({ metadata }) => metadata.name),
    asking: asking.map(({ metadata }) => metadata.name),
  };
}

/** The workload that has the claim's ordinal still, and what it does next, in words; undefined: none, or it may not be read. */
export async function stillWanted(
  { identity, namespace, name }: Claim,
  { world, place }: Pick<Backend, "world" | "place">,
): Promise<string | undefined> {
  const { kind, apiVersion, ordinal } = identity;
  // under another name it is none of what the workload wants
  if (ordinal === undefined || name !== `${identity.name}-${ordinal}`) return undefined;
  const workload = await ifAllowed(() => world.object(kind, namespace, identity.name));
  if (workload === undefined || !isSameGroup(workload.apiVersion, apiVersion)) return undefined;
  if (ordinalFrom(workloadState(workload), ordinal) !== ordinal) return undefined;
  const next =
    place === "data"
      ? `nothing is kept for its pod ${name} any more, which asks anew when it is created`
      : "Berth reserves for it again at once, these addresses or others";
  return `${kind} ${namespace}/${identity.name} still has ordinal ${ordinal}: ${next}; to free the addresses for others, scale it down or change its list first`;
}

/** What becomes of the pods of a claim that is gone, and whose addresses the successor has, if one is named. */
export function warnOfPods(
  io: Pick<Io, "stderr">,
  claim: ClaimKey,
  pods: PodsWithoutClaim | undefined,
  successor?: string,
): void {
  for (const words of wordsOfPods(claim, pods, successor)) reportWarning(io, words);
}

/** The same in words. */
export function wordsOfPods(
  { namespace }: ClaimKey,
  pods: PodsWithoutClaim | undefined,
  successor?: string,
): readonly string[] {
  if (pods === undefined)
    return [
      `the pods of namespace ${namespace} may not be read: if one asks for this claim, Berth makes it again; another one that was admitted with it cannot start`,
    ];
  const { lost, asking } = pods;
  const advice =
    successor === undefined
      ? "create it anew"
      : `its addresses are ${successor}'s now: delete it, or create it anew with other addresses`;
  const again = (successor === undefined ? asking : []).map(
    (pod) =>
      `pod ${namespace}/${pod} is there and asks for it: Berth makes the claim again, with these addresses if nobody else has them; delete the pod to free them`,
  );
  const without = (successor === undefined ? lost : [...lost, ...asking]).map(
    (pod) => `pod ${namespace}/${pod} was admitted with this claim and cannot start without it; ${advice}`,
  );
  return [...again, ...without];
}
