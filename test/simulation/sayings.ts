// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { admissionAnswerOf } from "../../allocator/demand/admitted-pod.ts";
import { anonymousName, requestFor, slotRequests } from "../../allocator/demand/build-request.ts";
import { ordinalRequests, readTemplate } from "../../allocator/demand/workload-allocation.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import { type KubeObject, podMetadata } from "../../allocator/manifest/kubernetes-object.ts";
import { requestsAddress } from "../../allocator/model/address-request.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import { identityOf } from "../../allocator/model/identity.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { SeededRandom } from "../support/random.ts";
import { NAMESPACE } from "./cast.ts";

/** What a pod that is in the cluster says of its claim. */
export interface Saying {
  /** namespace/name */
  readonly claim: string;
  /** Aspect of the claim -> as the pod has it; without those that it does not speak of. */
  readonly aspects: Readonly<Partial<Record<Aspect, string>>>;
}

/** What of a claim only a pod in the cluster may change, or a person. */
export type Aspect = "addresses" | "owner" | "retention" | "request";

export const ASPECTS: readonly Aspect[] = ["addresses", "owner", "retention", "request"];

const said = new WeakMap<KubeObject, { readonly saying: Saying | undefined }>(); // objects do not change

/** Undefined: it was told nothing, or asks for something that nobody understands. */
export function sayingOf(pod: KubeObject): Saying | undefined {
  const known = said.get(pod) ?? { saying: readSaying(pod) };
  said.set(pod, known);
  return known.saying;
}

function readSaying(pod: KubeObject): Saying | undefined {
  const { namespace, annotations, labels } = pod.metadata;
  const reported = admissionAnswerOf(annotations);
  const request = readRequest(annotations);
  if (reported === undefined || isRefusal(request)) return undefined;
  const origin = podMetadata(pod, namespace);
  const podIdentity = identityOf(
    reported.claim === anonymousName(reported.token) ? { ...origin, name: "" } : origin,
  );
  const claim = `${namespace}/${reported.claim}`;
  const { kind, name } = podIdentity.identity;
  const aspects = { addresses: wordsOf(reported.addresses), owner: `${kind} ${name}` };
  if (!requestsAddress(request)) return { claim, aspects };
  const facts = { name: namespace, labels: {}, annotations: {} };
  const input = {
    podIdentity,
    request,
    namespace: facts,
    podLabels: labels,
    start: 0,
    token: reported.token,
    now: 0,
  };
  const slots = podIdentity.kind === "set" && request.entries !== undefined;
  const allocations = slots ? slotRequests(input, podIdentity.workload) : [requestFor(input)];
  const own = allocations.find(
    (allocation) => !isRefusal(allocation) && allocation.key.name === reported.claim,
  );
  if (own === undefined || isRefusal(own)) return { claim, aspects };
  const { retention, request: wanted } = own;
  return {
    claim,
    aspects: { ...aspects, retention: textOf(retention), request: textOf(wanted) },
  };
}

const FACTS: NamespaceState = { name: NAMESPACE, labels: {}, annotations: {} };
const FIXED: Pick<Context, "clock" | "random"> = { clock: new ManualClock(), random: new SeededRandom() };
const templates = new WeakMap<KubeObject, readonly Saying[]>();

/** What a StatefulSet that is in the cluster says of the claims of its ordinals: all but their addresses. */
export function sayingsOfSet(set: KubeObject): readonly Saying[] {
  const known = templates.get(set) ?? readSet(set);
  templates.set(set, known);
  return known;
}

function readSet(set: KubeObject): readonly Saying[] {
  const template = readTemplate(FIXED, set, FACTS);
  if (isRefusal(template) || !requestsAddress(template.request)) return [];
  const owner = `${set.kind} ${set.metadata.name}`;
  return [...ordinalRequests(set, template)].flatMap(({ name, allocation }) => {
    if (isRefusal(allocation)) return [];
    const { retention, request } = allocation;
    const aspects = { owner, retention: textOf(retention), request: textOf(request) };
    return [{ claim: `${NAMESPACE}/${name}`, aspects }];
  });
}

/** What the write changed, as it is now. */
export function changesOf(was: Claim, is: Claim): readonly (readonly [Aspect, string])[] {
  const before = aspectsOf(was);
  const now = aspectsOf(is);
  return ASPECTS.filter((aspect) => !isDeepStrictEqual(before[aspect], now[aspect])).map((aspect) => [
    aspect,
    now[aspect],
  ]);
}

function aspectsOf({ addresses, identity, retention, request }: Claim): Readonly<Record<Aspect, string>> {
  return {
    addresses: wordsOf(addresses),
    owner: `${identity.kind} ${identity.name}`,
    retention: textOf(retention),
    request: textOf(request),
  };
}

/** The same for objects that differ in the order of their fields. */
function textOf(value: object): string {
  const isObject = (part: unknown): part is object =>
    typeof part === "object" && part !== null && !Array.isArray(part);
  return JSON.stringify(value, (_, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}

function wordsOf(addresses: readonly string[]): string {
  return addresses.toSorted().join("+");
}
