// SPDX-License-Identifier: Apache-2.0
// Addresses of pools that others have: nodes, other CNIs' pods, Services, this host (ADR 0026).

import { counted } from "../../allocator/base/counted.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import { pending } from "../../allocator/gc/finding.ts";
import { type Address, type Cidr, parseAddress } from "../../allocator/ip/address.ts";
import { fullInterval, intersection } from "../../allocator/ip/ip-range.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, nodeAddresses } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { isOfPool } from "../../allocator/model/occupant.ts";
import { listedOccupied, type Occupied, occupiedIn } from "../../allocator/planning/occupied.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import type { Backend } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { fencedBy } from "../backend/node-state.ts";
import type { AddressReport } from "./address-report.ts";
import { type SurveyedPod, surveyPods } from "./pod-survey.ts";

/** What is known around the records. */
interface Surroundings {
  readonly occupied: readonly Occupied[];
  /** Of these, what pods on fenced nodes have: it may have been Berth's, and was taken back. */
  readonly onFenced: ReadonlySet<Address>;
  /** Networks of Services. */
  readonly networks: readonly Cidr[];
  /** This user may not read all of it. */
  readonly isPart: boolean;
}

type Source = Pick<Backend, "world" | "place" | "services" | "hostOccupants">;

const NAMED = 10;

/** Everything that has an address and not from Berth, as far as this user may read it. */
export async function surroundingsOf(backend: Source, isOurs: IsOurs): Promise<Surroundings> {
  const survey = backend.place === "cluster" ? await surveyPods(backend.world) : undefined;
  return await surroundingsWith(survey?.pods, backend, isOurs);
}

/** The same where the pods are read already; undefined: this user may not list them. */
export async function surroundingsWith(
  pods: readonly SurveyedPod[] | undefined,
  backend: Source,
  isOurs: IsOurs,
): Promise<Surroundings> {
  if (backend.place !== "cluster") {
    const occupied = backend.hostOccupants?.() ?? [];
    return { occupied, onFenced: new Set(), networks: [], isPart: false };
  }
  const nodes = await listed(backend, "Node");
  const services = await backend.services?.();
  const occupied = [
    ...(nodes ?? []).flatMap(ofNode),
    ...(pods ?? []).flatMap((pod) => ofPod(pod, isOurs)),
    ...(services?.occupied ?? []),
  ];
  const isPart = nodes === undefined || pods === undefined || services?.isPart === true;
  const fenced = new Set((nodes ?? []).filter(fencedBy).map(({ metadata }) => metadata.name));
  const onFenced = (pods ?? []).filter(({ state }) => fenced.has(state.node)).flatMap((pod) => pod.addresses);
  return { occupied, onFenced: new Set(onFenced), networks: services?.networks ?? [], isPart };
}

/** Whether Berth gave the address to the pod. */
type IsOurs = (
  pod: { readonly namespace: string; readonly name: string; readonly node: string },
  address: Address,
) => boolean;

async function listed({ world }: Source, kind: string): Promise<readonly KubeObject[] | undefined> {
  return await ifAllowed(() => world.objects(kind));
}

function ofNode({ json, metadata: { name } }: KubeObject): Occupied[] {
  const addresses = nodeAddresses(json.at("status")).flatMap((text) => parseAddress(text) ?? []);
  return addresses.map((address) => [address, { kind: "node", namespace: "", name }]);
}

function ofPod({ state, addresses }: SurveyedPod, isOurs: IsOurs): Occupied[] {
  const { annotations, namespace, name, node } = state;
  if ((annotations[ASSIGNED_CLAIM] ?? "") !== "") return [];
  const others = addresses.filter((address) => !isOurs({ namespace, name, node }, address));
  return others.map((address) => [address, { kind: "pod", namespace, name }]);
}

/** The report with the pod that has the address out of a node's block, by its own status: no record says which it is. */
export async function withPodOfBlock(report: AddressReport, backend: Source): Promise<AddressReport> {
  if (report.state !== "in-block" || backend.place !== "cluster") return report;
  const survey = await surveyPods(backend.world);
  if (survey === undefined) return report;
  const found = survey.pods.find(({ addresses }) => addresses.includes(report.address));
  if (found === undefined) return { ...report, used: false };
  const { namespace, name, uid } = found.state;
  return { ...report, used: true, pod: { namespace, name, uid } };
}

/** Tells the view who has the address, unless it is Berth's: to look costs a list of all pods. */
export async function occupyOne(view: RecordCache, backend: Source, address: Address): Promise<void> {
  const pool = view.poolOf(address);
  if (pool === undefined || view.reservation(address) !== undefined) return;
  if (view.blockOwning(address) !== undefined) return;
  const { occupied } = await surroundingsOf(backend, () => false);
  for (const [one, occupant] of occupied) if (one === address) view.occupy(one, occupant);
}

/** Tells the view of all of them: a pool that contains one may be heard of later. */
export async function occupyAll(view: RecordCache, backend: Source): Promise<void> {
  const isOurs = (_: unknown, address: Address) =>
    view.reservation(address) !== undefined || view.blockOwning(address) !== undefined;
  const { occupied } = await surroundingsOf(backend, isOurs);
  for (const [one, occupant] of occupied) if (occupant.kind !== "service") view.occupy(one, occupant);
}

/** One finding for each pool: whatever is in it is passed over, or will be wanted twice. */
export function inUseByOthers(
  pools: readonly Pool[],
  { occupied, onFenced, networks }: Surroundings,
  claimOf: (address: Address) => Pick<Claim, "namespace" | "name"> | undefined,
): Finding[] {
  return pools.flatMap((pool) => {
    const all = occupiedIn(pool, occupied).filter(([, occupant]) => isOfPool(occupant, pool));
    const twice = all.flatMap(([address, occupant]) => {
      const claim = claimOf(address);
      if (claim === undefined) return [];
      const who = listedOccupied([[address, occupant]], 1);
      const words = `${who} is claim ${claim.namespace}/${claim.name}'s too: two may have it at once; give one of them another`;
      return [pending("two-holders", address, words)];
    });
    const once = all.filter(([address]) => claimOf(address) === undefined);
    const fenced = once.filter(([address]) => onFenced.has(address));
    const others = once.filter(([address]) => !onFenced.has(address));
    return [
      ...twice,
      ...(others.length === 0 ? [] : [found(pool, others)]),
      ...(fenced.length === 0 ? [] : [onFencedNodes(pool, fenced)]),
      ...overlaps(pool, networks),
    ];
  });
}

function found({ name }: Pool, some: readonly Occupied[]): Finding {
  const many = counted(some.length, "address that is", "addresses that are");
  const words = `pool ${name} has ${many} in use, and not from Berth: ${listedOccupied(some, NAMED)}; it gives none of a pod, a node or this host as long as it sees them there; exclude what stays with others from spec.ranges`;
  return pending("in-use", name, words);
}

/** Who fenced the node has vouched that nothing runs on it. */
function onFencedNodes({ name }: Pool, some: readonly Occupied[]): Finding {
  const many = counted(some.length, "address that is", "addresses that are");
  const words = `pool ${name} has ${many} in use by pods of fenced nodes: ${listedOccupied(some, NAMED)}; what such nodes had is taken back, and none of these is given as long as Berth sees it there; delete those pods before the fence is taken away`;
  return pending("in-use", name, words);
}

function overlaps(pool: Pool, networks: Surroundings["networks"]): Finding[] {
  const hit = networks.filter(
    (cidr) =>
      pool.spec.networks === undefined &&
      pool.ranges.some((one) => one.family === cidr.family && intersection(one, fullInterval(cidr))),
  );
  return hit.map(({ text }) =>
    pending(
      "in-use",
      pool.name,
      `pool ${pool.name} has addresses of ${text}, from which the cluster's Services get theirs: what is sent to them may never reach a pod; take them out of spec.ranges`,
    ),
  );
}
