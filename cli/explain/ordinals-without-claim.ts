// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { dryRun } from "../../allocator/demand/allocation-dry-run.ts";
import { ownAnnotations } from "../../allocator/demand/foreign-pools.ts";
import {
  MAX_PRERESERVED_ORDINALS,
  ordinalRequests,
  readTemplate,
  templateAnnotations,
} from "../../allocator/demand/workload-allocation.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import { type Claim, claimKey, type Identity } from "../../allocator/model/claim.ts";
import { type ClusterState, namespaceOf } from "../../allocator/model/cluster-state.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { describeIdentity } from "../../allocator/model/identity.ts";
import { isSameGroup } from "../../allocator/model/workload-kinds.ts";
import type { Store } from "../../allocator/store/store.ts";
import { type Backend, type Objects, partialCache } from "../backend/backend.ts";
import { type EmbeddedBackend, loadCache } from "../backend/embedded-backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { nodesNow } from "./nodes-now.ts";

/** One ordinal that its StatefulSet wants, and what there is instead of its claim. */
interface MissingClaim {
  /** namespace/name */
  readonly key: string;
  readonly identity: Identity;
  /** Of another identity, or made by hand. */
  readonly claim: Claim | undefined;
  /** What is to be reserved for it, or why it can have none, by its template alone. */
  readonly allocation: AllocationRequest | Refusal;
  readonly place: Backend["place"];
}

interface WhereReserved {
  readonly store: Store;
  readonly place: Backend["place"];
  readonly clock: Clock;
}

type Claims = (key: string) => Promise<Claim | undefined>;

/** What is made at once is made by then. */
const GRACE_MS = 1_000;
/** Ordinals that are named, where there may be hundreds. */
const MAX_TOLD = 3;
const UNTOLD = { random: { token: () => "", fraction: () => 0 } };

/**
 * Ordinals that a StatefulSet wants and that have no claim, or whose name has one of another identity, or one made by hand with which
 * their pods are refused: their addresses are kept for nobody. Looked at twice, the second time one by one. Undefined: this user may not list StatefulSets.
 */
export async function ordinalsWithoutClaim(
  claims: readonly { readonly key: string; readonly record: Claim }[],
  backend: Backend,
  clock: Clock,
): Promise<readonly Finding[] | undefined> {
  const known = new Map(claims.map(({ key, record }) => [key, record]));
  return await ifAllowed(async () => {
    const sets = await backend.world.objects("StatefulSet");
    const { world, place } = backend;
    const view = place === "cluster" && sets.length > 0 ? await partialCache(backend.store, []) : undefined;
    const claim = async (key: string) => known.get(key);
    const seen = { world, place, clock, claim, ...(view && { view }) };
    const where = { store: backend.store, place, clock };
    const suspects = await withoutFitting(await missingClaimsOf(sets, seen), where);
    if (suspects.length === 0) return [];
    await clock.sleep(GRACE_MS);
    const names = new Set(suspects.map(({ key }) => key));
    const now: Claims = async (key) =>
      names.has(key) ? (await backend.store.get("claim", key))?.record : known.get(key);
    const nodes = await nodesNow(backend);
    const again = await missingClaimsOf(await stillThere(sets, suspects, backend.world), {
      ...seen,
      claim: now,
      nodes: () => nodes,
    });
    const lacks = again.filter(({ key }) => names.has(key));
    return await findingsOf(await withoutFitting(lacks, where), where);
  });
}

/** The same of one StatefulSet on one host, in words; each says what to do. */
export async function ordinalsLacking(
  set: KubeObject,
  { store, admitted }: Pick<EmbeddedBackend, "store" | "admitted">,
  clock: Clock,
): Promise<readonly string[]> {
  const claim: Claims = async (key) => (await store.get("claim", key))?.record;
  const where = { store, place: "data", clock } as const;
  const found = await lacksOfSet(set, { world: admitted, clock, place: "data", claim });
  const lacks = await withoutFitting(found, where);
  const first = await findingsOf(lacks.slice(0, MAX_TOLD), where);
  const told = first.map(({ message }) => message);
  return lacks.length <= MAX_TOLD
    ? told
    : [...told, `${lacks.length - MAX_TOLD} more ordinals have no claim; see: berthctl check`];
}

async function stillThere(
  sets: readonly KubeObject[],
  suspects: readonly MissingClaim[],
  world: Objects,
): Promise<readonly KubeObject[]> {
  const names = new Set(suspects.map(({ key, identity }) => `${key.split("/", 1)[0]}/${identity.name}`));
  const now: KubeObject[] = [];
  for (const { kind, apiVersion, metadata } of sets) {
    const { namespace, name } = metadata;
    if (!names.has(`${namespace}/${name}`)) continue;
    const object = await world.object(kind, namespace, name);
    if (object !== undefined && object.apiVersion === apiVersion) now.push(object);
  }
  return now;
}

interface SearchContext {
  readonly world: Objects;
  readonly clock: Clock;
  readonly claim: Claims;
  readonly place: Backend["place"];
  /** All pools, where what names none of them may be left to another system: nobody else knows what the chart says of it. */
  readonly view?: RecordReader;
  readonly nodes?: ClusterState["nodes"];
}

async function missingClaimsOf(sets: readonly KubeObject[], context: SearchContext): Promise<MissingClaim[]> {
  const lacks: MissingClaim[] = [];
  for (const set of sets) lacks.push(...(await lacksOfSet(set, context)));
  return lacks;
}

async function lacksOfSet(
  set: KubeObject,
  { world, clock, claim, place, view, nodes }: SearchContext,
): Promise<MissingClaim[]> {
  const { kind, apiVersion, metadata } = set;
  const { namespace } = metadata;
  const space = await namespaceOf(world, namespace);
  const own = view && ownAnnotations(view, templateAnnotations(set), space, OWN_OF_EACH);
  const context = { clock, ...UNTOLD, ...(nodes && { nodes }) };
  const template = readTemplate(context, set, own?.namespace ?? space, own?.annotations);
  if (isRefusal(template) || template.exempt || !requestsAddress(template.request)) return [];
  // on one host nothing is reserved ahead for so many
  if (place === "data" && template.workload.replicas > MAX_PRERESERVED_ORDINALS) return [];
  const lacks: MissingClaim[] = [];
  for (const { name, ordinal, allocation } of ordinalRequests(set, template)) {
    const key = claimKey({ namespace, name });
    const there = await claim(key);
    const identity = { kind, apiVersion, name: metadata.name, ordinal };
    if (there !== undefined && isIts(there, identity)) continue;
    lacks.push({ key, identity, claim: there, allocation, place });
  }
  return lacks;
}

/** What is being given back, or made by hand and not reserved yet, is found as such. */
function isIts({ handMade, nonce, releasing, identity }: Claim, wanted: Identity): boolean {
  if (releasing === true) return true;
  if (handMade === true) return nonce === "";
  const { kind, apiVersion, name, ordinal } = identity;
  const isSame = kind === wanted.kind && name === wanted.name && ordinal === wanted.ordinal;
  return isSame && isSameGroup(apiVersion, wanted.apiVersion);
}

/** What a person wrote is for whoever has the name, if that asks for what it has. */
async function withoutFitting(
  lacks: readonly MissingClaim[],
  where: WhereReserved,
): Promise<readonly MissingClaim[]> {
  const made = lacks.filter(({ claim }) => claim?.handMade === true);
  const refusals = await refusalNow(askedBy(made), where);
  const fitting = made.filter(({ allocation }) => !isRefusal(allocation) && !refusals.has(allocation));
  return lacks.filter((one) => !fitting.includes(one));
}

function askedBy(lacks: readonly MissingClaim[]): readonly AllocationRequest[] {
  return lacks.flatMap(({ allocation }) => (isRefusal(allocation) ? [] : allocation));
}

async function findingsOf(lacks: readonly MissingClaim[], where: WhereReserved): Promise<Finding[]> {
  const judged = lacks.filter(({ claim }) => claim === undefined || claim.handMade === true);
  const refusals = await refusalNow(askedBy(judged), where);
  return lacks.map((one) =>
    found(one, isRefusal(one.allocation) ? one.allocation : refusals.get(one.allocation)),
  );
}

/**
 * Why each can have nothing now, by the decision of whoever reserves it; those that nothing is against are not in it. Reads all
 * records, unless nothing is asked.
 */
async function refusalNow(
  allocations: readonly AllocationRequest[],
  { store, place, clock }: WhereReserved,
): Promise<ReadonlyMap<AllocationRequest, Refusal>> {
  const refusals = new Map<AllocationRequest, Refusal>();
  if (allocations.length === 0) return refusals;
  const view = await loadCache(store);
  // in a cluster the webhook asks the API server which pools a service account may use, and who looks may not
  const usable = place === "cluster" ? { usable: new Set(view.pools().map(({ name }) => name)) } : {};
  for (const allocation of allocations) {
    const constraints = { ...allocation.constraints, ...usable };
    const would = await dryRun({ store, view, clock }, { ...allocation, constraints });
    if (isRefusal(would)) refusals.set(allocation, would);
  }
  return refusals;
}

function found({ key, identity, claim, place }: MissingClaim, refusal: Refusal | undefined): Finding {
  const who = describeIdentity(identity);
  if (claim === undefined) {
    const [namespace = ""] = key.split("/", 1);
    const why = refusal === undefined ? "" : ` (${refusal.message})`;
    const next =
      place === "data"
        ? "see: berthctl explain -f FILE, with the StatefulSet in FILE"
        : `see: kubectl -n ${namespace} describe ${identity.kind.toLowerCase()} ${identity.name}, or the log of Berth's webhook`;
    const message = `${who} has no claim ${key}${why}: no address is kept for its pod, which asks when it is created; ${next}`;
    return { severity: "pending", kind: "missing", subject: key, message };
  }
  if (claim.handMade === true && refusal !== undefined) {
    const message = `${who} has no claim, and its pod is refused when it is created: ${refusal.message}`;
    return { severity: "pending", kind: "of-another", subject: key, message };
  }
  const has = `claim ${key} (${claim.addresses.join(", ")}) belongs to ${describeIdentity(claim.identity)}`;
  const { binding } = claim;
  const pod = binding === undefined || binding.podName === "" ? "" : ` when pod ${binding.podName} is gone`;
  const message = `${who} has no claim: ${has}; it passes to the StatefulSet${pod}, or give it back: berthctl release ${key}`;
  return { severity: "pending", kind: "of-another", subject: key, message };
}
