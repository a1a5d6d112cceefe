// SPDX-License-Identifier: Apache-2.0

import type { Refusal } from "../../allocator/base/errors.ts";
import { cooldownOf } from "../../allocator/cache/cooldown.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import {
  decideRetention,
  type OwnerState,
  observeOwner,
  type RetentionDecision,
  waitsUntil,
} from "../../allocator/lifecycle/retention.ts";
import { allowedTtlMs } from "../../allocator/lifecycle/retention-limits.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { conditionOf, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { doesWithout, matchesRef, type OwnReader } from "../../allocator/manifest/pod-claim.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { bareNamespace, type NamespaceState } from "../../allocator/model/cluster-state.ts";
import { parseAddresses } from "../../allocator/model/interfaces.ts";
import { withoutNodeNow } from "../../allocator/planning/node-fit.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import type { Objects } from "../backend/backend.ts";
import { type Backend, partialCache } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { fencedBy } from "../backend/node-state.ts";
import { whyNotBound } from "./changed-requests.ts";
import { type DynamicFacts, dynamicFactsOf } from "./dynamic-pod.ts";
import { nodesNow } from "./nodes-now.ts";
import { ownReaderOf } from "./own-requests.ts";

/** An address of a claim, and what is reserved there. */
export interface AddressFacts {
  readonly address: Address;
  readonly reservation: Stored<"reservation"> | "hidden" | undefined;
  /** Of the reservation. */
  readonly pool: Pool | undefined;
  /** How long it cools once it is given back, in milliseconds; absent: this user may not read that. */
  readonly cooldownMs?: number;
}

/** What is known, at one moment, of a pod and of the claim that serves it. */
export interface PodFacts {
  readonly place: Backend["place"];
  /** Milliseconds since 1970. */
  readonly now: number;
  /** namespace/name of the claim; empty when the pod has none and none waits for it. */
  readonly key: string;
  readonly claim: Stored<"claim"> | undefined;
  readonly addresses: readonly AddressFacts[];
  /** The pod that has the claim or wants it. */
  readonly pod: KubeObject | undefined;
  /** With what of its annotations is for Berth; without annotations and labels, if this user may not read it. */
  readonly space: NamespaceState;
  /** The pod that the claim is bound to or held for, if it exists still. */
  readonly holder: KubeObject | undefined;
  /** The node that the claim is bound to; undefined when it is bound to none, and when the node is gone. */
  readonly node: KubeObject | "hidden" | undefined;
  readonly fenced: boolean;
  /** When the host that the claim is bound to was last heard of, by its own clock; known in etcd alone. */
  readonly heardAt?: number;
  /** Of a pod without a claim. */
  readonly dynamic?: DynamicFacts;
  /** Of a pod that is not scheduled, where no node is one of those that its addresses are for: that, in words. */
  readonly nodeless?: string;
  /** Of a pod whose claim is gone: addresses that it was admitted with -> the claim that has each now. */
  readonly lost?: ReadonlyMap<Address, string>;
  /** Of a pod that no review has seen: why the binder does not bind it to the claim of its name, which is not what it asks for. */
  readonly otherwise?: Refusal;
  /** Of a pod that was reviewed: why the binder does not bind it to its claim, which is not what it asks for since. */
  readonly changed?: Refusal;
  /** Whether what the claim is for is there and wants it; absent: it could not be seen. */
  readonly owner?: OwnerState["owner"];
  /** What the garbage collector would do with the claim now. */
  readonly verdict: RetentionDecision;
  /** When the claim of a pod that is not there is released, if none comes. */
  readonly waitsUntil?: number;
}

type Key = { readonly namespace: string; readonly name: string };

/** Reads what concerns the pod; undefined when there is no such pod. */
export async function factsOfPod(
  backend: Backend,
  { namespace, name }: Key,
  now: number,
): Promise<PodFacts | undefined> {
  const pod = await backend.world.object("Pod", namespace, name);
  if (pod === undefined) return undefined;
  const assigned = pod.metadata.annotations[ASSIGNED_CLAIM] ?? "";
  const found = await backend.store.get("claim", `${namespace}/${assigned === "" ? name : assigned}`);
  const own = await ownReaderOf(backend);
  const claim = found !== undefined && isFor(pod, found, own) ? found : undefined;
  const key = assigned === "" ? (claim?.key ?? "") : `${namespace}/${assigned}`;
  const facts = await around(backend, { key, claim, pod, namespace, own }, now);
  if (key === "") return { ...facts, dynamic: await dynamicOf(backend, pod) };
  return claim === undefined ? { ...facts, lost: await lostBy(backend, pod) } : facts;
}

async function lostBy({ store }: Backend, { metadata }: KubeObject): Promise<ReadonlyMap<Address, string>> {
  const lost = new Map<Address, string>(); // address -> claim
  const records = new AllowedRecords(store);
  for (const address of parseAddresses((metadata.annotations[ASSIGNED_ADDRESSES] ?? "").split(","))
    .addresses) {
    const reservation = await records.get("reservation", address);
    if (reservation === undefined || reservation.record.releasedAt !== undefined) continue;
    lost.set(address, claimKey(reservation.record.claim));
  }
  return lost;
}

async function dynamicOf(backend: Backend, pod: KubeObject): Promise<DynamicFacts> {
  const { world } = backend;
  const name = pod.spec.text("nodeName");
  const namespace = await ifAllowed(() => world.namespace(pod.metadata.namespace), undefined);
  const node = name === "" ? undefined : await ifAllowed(() => world.object("Node", "", name), undefined);
  const hostname = backend.node === "" ? {} : { "kubernetes.io/hostname": backend.node };
  return await dynamicFactsOf(backend, pod, {
    namespaceLabels: namespace?.labels ?? {},
    nodeLabels: node?.metadata.labels ?? hostname,
  });
}

/** Reads what concerns the claim; undefined when there is none. */
export async function factsOfClaim(
  backend: Backend,
  { namespace, name }: Key,
  now: number,
): Promise<PodFacts | undefined> {
  const claim = await backend.store.get("claim", `${namespace}/${name}`);
  if (claim === undefined) return undefined;
  const podName = claim.record.binding?.podName || name;
  const found = await backend.world.object("Pod", namespace, podName);
  const own = await ownReaderOf(backend);
  const pod = found !== undefined && isFor(found, claim, own) ? found : undefined;
  return await around(backend, { key: claim.key, claim, pod, namespace, own }, now);
}

/**
 * Whether the pod has the claim or was admitted with it; one that was admitted with none has that of its name by the
 * rule of the binder and of the embedded agent.
 */
function isFor({ metadata, json }: KubeObject, { key, record }: Stored<"claim">, own: OwnReader): boolean {
  const { namespace, uid, annotations } = metadata;
  if (uid !== "" && record.binding?.podUID === uid) return true;
  const assigned = annotations[ASSIGNED_CLAIM] ?? "";
  if (assigned !== "") return key === `${namespace}/${assigned}`;
  const isUp = json.at("status").text("podIP") !== "";
  return matchesRef({ key, token: "" }, record) && !doesWithout(annotations, record, isUp, own);
}

interface Subject extends Pick<PodFacts, "key" | "claim" | "pod"> {
  readonly namespace: string;
  readonly own: OwnReader;
}

async function around(
  backend: Backend,
  { key, claim, pod, namespace, own }: Subject,
  now: number,
): Promise<PodFacts> {
  const { world, place } = backend;
  const { binding, addresses = [] } = claim?.record ?? {};
  const hosts = binding === undefined ? undefined : await backend.hosts?.();
  const host = hosts?.find(({ name }) => name === binding?.node);
  const records = new AllowedRecords(backend.store);
  const view = await partialCache(records, addresses);
  const holder = await holderOf(world, claim, pod);
  const node = await nodeOf(world, binding?.node ?? "");
  const addressFacts = addresses.map((address) => {
    const reservation = view.reservation(address);
    if (reservation === undefined && records.hides("reservation"))
      return { address, reservation: "hidden" as const, pool: view.poolOf(address) };
    const isKnown = reservation !== undefined && !records.hides("pool");
    return {
      ...{ address, reservation, pool: reservation && view.pool(reservation.record.pool) },
      ...(isKnown && { cooldownMs: cooldownOf(view, reservation.record) }),
    };
  });
  const pools = addressFacts.flatMap((each) => each.pool ?? []);
  const future =
    claim === undefined
      ? { verdict: { kind: "keep" as const } }
      : await futureOf(world, { claim, pools, own }, now);
  const unfit = await whyNotBound(backend, { claim: claim?.record, pod, own, view, now });
  const nodeless = pod === undefined ? undefined : await nodelessOf(backend, pod, pools);
  const space = (await ifAllowed(() => world.namespace(namespace), undefined)) ?? bareNamespace(namespace);
  return {
    place,
    now,
    key,
    claim,
    addresses: addressFacts,
    pod,
    space: own(pod?.metadata.annotations ?? {}, space).namespace,
    holder,
    node,
    fenced: await isFenced(world, place, { name: binding?.node ?? "", node }),
    ...(host === undefined ? {} : { heardAt: host.record.seen }),
    ...(nodeless === undefined ? {} : { nodeless }),
    ...unfit,
    ...future,
  };
}

/** The pod's own spec names the nodes of its pools since its admission: what it says besides, the scheduler tells. */
async function nodelessOf(
  backend: Backend,
  pod: KubeObject,
  pools: readonly Pool[],
): Promise<string | undefined> {
  const isWaiting = pod.spec.text("nodeName") === "" && !hasEnded(pod);
  if (!isWaiting || pools.every(({ spec }) => spec.nodeSelector === undefined)) return undefined;
  const nodes = await nodesNow(backend);
  return withoutNodeNow({ known: () => nodes }, [...new Set(pools)]);
}

/** In etcd the host itself says so, and there is no Node. */
async function isFenced(
  world: Objects,
  place: Backend["place"],
  { name, node }: { readonly name: string; readonly node: KubeObject | "hidden" | undefined },
): Promise<boolean> {
  if (place === "etcd") return await world.fenced(name);
  return typeof node === "object" && fencedBy(node) !== undefined;
}

async function nodeOf(world: Objects, name: string): Promise<KubeObject | "hidden" | undefined> {
  if (name === "") return undefined;
  return await ifAllowed(() => world.object("Node", "", name), "hidden");
}

async function holderOf(
  world: Objects,
  claim: Stored<"claim"> | undefined,
  pod: KubeObject | undefined,
): Promise<KubeObject | undefined> {
  const { namespace = "", binding } = claim?.record ?? {};
  if (binding === undefined || binding.podName === "") return undefined;
  const there =
    pod?.metadata.name === binding.podName ? pod : await world.object("Pod", namespace, binding.podName);
  const same = binding.podUID === "" || there?.metadata.uid === binding.podUID;
  return same ? there : undefined;
}

/** What becomes of a claim, and when; by the decision of the garbage collector. */
export async function futureOfClaim(
  backend: Pick<Backend, "place" | "store" | "world">,
  claim: Stored<"claim">,
  now: number,
): Promise<Pick<PodFacts, "verdict" | "waitsUntil">> {
  const own = await ownReaderOf(backend);
  const view = await partialCache(new AllowedRecords(backend.store), claim.record.addresses);
  const pools = claim.record.addresses.flatMap((address) => view.poolOf(address) ?? []);
  return await futureOf(backend.world, { claim, pools, own }, now);
}

async function futureOf(
  world: Objects,
  {
    claim: { record, createdAt },
    pools,
    own,
  }: { claim: Stored<"claim">; pools: readonly Pool[]; own: OwnReader },
  now: number,
): Promise<Pick<PodFacts, "verdict" | "waitsUntil" | "owner">> {
  const facts = await ifAllowed(() => observeOwner(record, world, own), undefined);
  if (facts === undefined) return { verdict: { kind: "keep" } };
  const retention = { ...record.retention, ttlMs: allowedTtlMs(record.retention, pools) };
  const until = waitsUntil(record, facts, createdAt);
  const decided = decideRetention({ ...record, retention }, facts, createdAt, now);
  const { owner, isGuessed = false } = facts;
  // the owner could not be looked at
  const verdict = isGuessed && decided.kind === "unretain" ? ({ kind: "keep" } as const) : decided;
  return { owner, verdict, ...(until === undefined || until <= now ? {} : { waitsUntil: until }) };
}

/** Pending, Running, Succeeded or Failed; empty on the embedded stack, where nobody runs pods. */
export function podPhase({ json }: KubeObject): string {
  return json.at("status").text("phase");
}

/** It runs no container any more, and none again. */
export function hasEnded(pod: KubeObject): boolean {
  return podPhase(pod) === "Succeeded" || podPhase(pod) === "Failed";
}

export function isDeleting({ json }: KubeObject): boolean {
  return json.at("metadata").text("deletionTimestamp") !== "";
}

/** Why the scheduler has not found a node, in its own words. */
export function unschedulable(pod: KubeObject): string {
  const scheduled = conditionOf(pod, "PodScheduled");
  return scheduled?.text("status") === "False" ? scheduled.text("message") : "";
}

/** The sandbox of the present binding was not seen to end, and no other proof stands for that. */
export function isBlocked({ claim, fenced }: PodFacts): boolean {
  return claim !== undefined && !isDetached(claim.record) && !fenced;
}
