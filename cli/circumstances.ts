// SPDX-License-Identifier: Apache-2.0
import { isAtRest } from "../allocator/bind.ts";
import { ASSIGNED_CLAIM } from "../allocator/dialects.ts";
import { BerthError } from "../allocator/errors.ts";
import { Fields, type KubeObject } from "../allocator/kube-object.ts";
import type { Pool } from "../allocator/pool.ts";
import { gatherFacts, judge, type Verdict } from "../allocator/retention.ts";
import type { Stored } from "../allocator/store/store.ts";
import { fencedBy } from "./node.ts";
import type { World } from "./registry.ts";
import { glimpse, type Registry } from "./registry.ts";

/** An address of a claim, and what is reserved there. */
export interface AddressCase {
  readonly address: string;
  readonly reservation: Stored<"reservation"> | undefined;
  /** Of the reservation. */
  readonly pool: Pool | undefined;
}

/** What is known, at one moment, of a pod and of the claim that serves it. */
export interface Circumstances {
  readonly place: Registry["place"];
  /** Milliseconds since 1970. */
  readonly now: number;
  /** namespace/name of the claim; empty when the pod has none and none waits for it. */
  readonly key: string;
  readonly claim: Stored<"claim"> | undefined;
  readonly addresses: readonly AddressCase[];
  /** The pod that has the claim or wants it. */
  readonly pod: KubeObject | undefined;
  readonly namespaceAnnotations: Readonly<Record<string, string>>;
  /** The pod that the claim is lent or promised to, if it exists still. */
  readonly holder: KubeObject | undefined;
  /** The node that the claim is lent to; undefined when it is lent to none, and when the node is gone. */
  readonly node: KubeObject | "hidden" | undefined;
  readonly fenced: boolean;
  /** What the reaper would do with the claim now. */
  readonly verdict: Verdict;
}

type Key = { readonly namespace: string; readonly name: string };

/** Reads what concerns the pod; undefined when there is no such pod. */
export async function circumstancesOfPod(
  registry: Registry,
  { namespace, name }: Key,
  now: number,
): Promise<Circumstances | undefined> {
  const pod = await registry.world.object("Pod", namespace, name);
  if (pod === undefined) return undefined;
  const assigned = pod.metadata.annotations[ASSIGNED_CLAIM] ?? "";
  const claim = await registry.store.get("claim", `${namespace}/${assigned === "" ? name : assigned}`);
  const key = assigned === "" ? (claim?.key ?? "") : `${namespace}/${assigned}`;
  return await around(registry, { key, claim, pod, namespace }, now);
}

/** Reads what concerns the claim; undefined when there is none. */
export async function circumstancesOfClaim(
  registry: Registry,
  { namespace, name }: Key,
  now: number,
): Promise<Circumstances | undefined> {
  const claim = await registry.store.get("claim", `${namespace}/${name}`);
  if (claim === undefined) return undefined;
  const podName = claim.record.binding?.podName || name;
  const pod = await registry.world.object("Pod", namespace, podName);
  return await around(registry, { key: claim.key, claim, pod, namespace }, now);
}

interface Subject extends Pick<Circumstances, "key" | "claim" | "pod"> {
  readonly namespace: string;
}

async function around(
  { store, world, place }: Registry,
  { key, claim, pod, namespace }: Subject,
  now: number,
): Promise<Circumstances> {
  const { binding, addresses = [] } = claim?.record ?? {};
  const view = await glimpse(store, addresses);
  const holder = await holderOf(world, claim, pod);
  const node = await nodeOf(world, binding?.node ?? "");
  const verdict = claim === undefined ? { kind: "keep" as const } : await verdictOf(world, claim, now);
  return {
    place,
    now,
    key,
    claim,
    addresses: addresses.map((address) => {
      const reservation = view.reservation(address);
      return { address, reservation, pool: reservation && view.pool(reservation.record.pool) };
    }),
    pod,
    namespaceAnnotations: (await ifAllowed(() => world.namespace(namespace), undefined))?.annotations ?? {},
    holder,
    node,
    fenced: typeof node === "object" && fencedBy(node) !== undefined,
    verdict,
  };
}

async function nodeOf(world: World, name: string): Promise<KubeObject | "hidden" | undefined> {
  if (name === "") return undefined;
  return await ifAllowed(() => world.object("Node", "", name), "hidden");
}

/** Whoever may read pods and claims of his namespace need not have the right to look around in the cluster. */
async function ifAllowed<T, E>(read: () => Promise<T>, otherwise: E): Promise<T | E> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof BerthError && error.code === "STORE_READ_ONLY") return otherwise;
    throw error;
  }
}

async function holderOf(
  world: World,
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

async function verdictOf(world: World, claim: Stored<"claim">, now: number): Promise<Verdict> {
  const facts = await ifAllowed(() => gatherFacts(claim.record, world), undefined);
  return facts === undefined ? { kind: "keep" } : judge(claim.record, facts, claim.createdAt, now);
}

/** Pending, Running, Succeeded or Failed; empty on the embedded stack, where nobody runs pods. */
export function podPhase({ json }: KubeObject): string {
  return json.at("status").text("phase");
}

export function isDeleting({ json }: KubeObject): boolean {
  return json.at("metadata").text("deletionTimestamp") !== "";
}

/** Why the scheduler has not found a node, in its own words. */
export function unschedulable({ json }: KubeObject): string {
  const conditions = json.at("status").list("conditions");
  const scheduled = conditions
    .map((condition) => new Fields(condition))
    .find((condition) => condition.text("type") === "PodScheduled");
  return scheduled?.text("status") === "False" ? scheduled.text("message") : "";
}

/** The sandbox of the present binding was not seen to end, and no other proof stands for that. */
export function isHeldBack({ claim, fenced }: Circumstances): boolean {
  return claim !== undefined && !isAtRest(claim.record) && !fenced;
}
