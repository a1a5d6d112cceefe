// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { type Labels, noopLogger } from "../../allocator/base/ports.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type DryRunResult, describeKept } from "../../allocator/demand/allocation-dry-run.ts";
import {
  type AllocationInput,
  requestFor,
  requestForClaim,
  slotRequests,
} from "../../allocator/demand/build-request.ts";
import { ownAnnotations } from "../../allocator/demand/foreign-pools.ts";
import {
  isExempt,
  MIRROR_POD_ANNOTATION,
  readPod,
  resolvePod,
} from "../../allocator/demand/pod-allocation.ts";
import { macObjection, withMacsSaid, withUnfit } from "../../allocator/demand/said-macs.ts";
import { dryRunSlot } from "../../allocator/demand/slots.ts";
import {
  ordinalRequests,
  ownerOf,
  podTemplate,
  readTemplate,
  type Template,
  templateAnnotations,
  templateLabels,
} from "../../allocator/demand/workload-allocation.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import { readClaimRequest } from "../../allocator/manifest/claim-spec.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { strangeMac } from "../../allocator/manifest/mac-annotations.ts";
import { type Request, requestsAddress } from "../../allocator/model/address-request.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import type { ClusterState, NamespaceState } from "../../allocator/model/cluster-state.ts";
import type { PodIdentity } from "../../allocator/model/identity.ts";
import { parsePool } from "../../allocator/pool/pool.ts";
import type { PoolSpec } from "../../allocator/pool/pool-spec.ts";
import { withSettledSize } from "../../allocator/pool/settled-size.ts";
import type { Backend } from "../backend/backend.ts";
import { claimPlaceOf } from "../backend/container-words.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import type { DryRunner } from "./dry-runner.ts";
import { foretellDynamic } from "./dynamic-pod.ts";
import { judgedAsList, laterOrRefused } from "./edited-list.ts";
import { PlannedAddresses } from "./planned-addresses.ts";

/** The view is the dry run's own. */
type DryRunContext = Context & Pick<ClusterState, "nodes"> & { readonly view: RecordCache };

/**
 * Says what admission would answer to a file's objects, one after the other: what one of them would get is
 * taken for the next. Nothing is written; `context.view` is the dry run's own.
 */
export class ManifestDryRun {
  readonly #context: DryRunContext;
  readonly #inventory: ClusterState;
  readonly #namespaces = new Map<string, KubeObject>(); // name -> Namespace of the same file
  #carriesPools = false;
  readonly #planned: PlannedAddresses;

  constructor(context: DryRunContext, inventory: ClusterState) {
    this.#context = context;
    this.#inventory = inventory;
    this.#planned = new PlannedAddresses(context);
  }

  /** Pools were in it that are not stored so. */
  get carriesPools(): boolean {
    return this.#carriesPools;
  }

  /** What is stored, and what came of the dry run since. */
  get view(): RecordCache {
    return this.#context.view;
  }

  /** On what is stored now. */
  static async on(
    { store, world, place }: Pick<Backend, "store" | "place"> & { readonly world: ClusterState },
    { nodes, clock, random, dialects }: Pick<DryRunContext, "nodes" | "clock" | "random" | "dialects">,
  ): Promise<ManifestDryRun> {
    const view = await loadCache(store, { ...claimPlaceOf(place), podIsGone: world.podIsGone });
    const context = { store, view, nodes, clock, random, log: noopLogger, serial: new KeyedMutex() };
    return new ManifestDryRun({ ...context, ...(dialects === undefined ? {} : { dialects }) }, world);
  }

  /**
   * Objects in the order in which `apply` sends them; pools and namespaces count for what comes after them. `isThere`: the object is stored
   * like that, and admission lets it through.
   */
  async of(object: KubeObject, isThere = false): Promise<readonly DryRunner[]> {
    switch (object.kind) {
      case "Namespace":
        this.#namespaces.set(object.metadata.name, object);
        return [];
      case "IPPool":
        return this.#ofPool(object);
      case "IPClaim":
        return [await this.#ofClaim(object)];
      case "Pod":
        return [await this.#ofPod(object)];
      default:
        return await this.#ofWorkload(object, isThere);
    }
  }

  #ofPool(object: KubeObject): DryRunner[] {
    const { name } = object.metadata;
    const { view } = this.#context;
    const before = view.poolRecord(name)?.record.spec;
    const pool = parsePool({ name, spec: withSettledSize(object.spec.value, before && { ...before }) });
    if (isRefusal(pool)) return [{ subject: `ippool/${name}`, outcome: pool, request: {} }];
    const spec: PoolSpec = pool.spec;
    this.#carriesPools ||= !isDeepStrictEqual(before, spec);
    const stored = { key: name, record: { name, spec }, uid: "", revision: "", createdAt: this.#now() };
    view.apply("pool", { type: "put", stored });
    return [];
  }

  async #ofClaim(object: KubeObject): Promise<DryRunner> {
    const { namespace, name } = object.metadata;
    const subject = `ipclaim/${namespace}/${name}`;
    const claim = readClaimRequest(object);
    if (isRefusal(claim)) return { subject, outcome: claim, request: {} };
    const podIdentity = { kind: "named", claim: name, identity: claim.identity } as const;
    const input = this.#input(podIdentity, {}, await this.#namespace(namespace));
    const outcome = await this.#planned.predict(requestForClaim(input, claim));
    const { addresses, interfaces, pools, interfacePools } = claim.request;
    const entries = { ...(addresses && { entries: [addresses] }), ...(interfaces && { interfaces }) };
    const asked = { ...entries, ...(pools && { pools }), ...(interfacePools && { interfacePools }) };
    return { subject, outcome, request: asked };
  }

  async #ofPod(pod: KubeObject): Promise<DryRunner> {
    const { namespace: name } = pod.metadata;
    const subject = `pod/${name}/${pod.metadata.name || `${pod.metadata.generateName}*`}`;
    if (isExempt(pod)) return nothing(subject, exemptWords(pod) ?? (await this.#dynamic(pod.metadata)));
    const { own, space, left } = this.#own(pod.metadata.annotations, await this.#namespace(name));
    if (left !== undefined) return nothing(subject, left);
    const itself = { ...pod, metadata: { ...pod.metadata, annotations: own } };
    const seen = {
      workload: this.#inventory.workload.bind(this.#inventory),
      nodes: this.#context.nodes,
    };
    const input = await readPod(this.#context, seen, itself, space);
    if (isRefusal(input)) return { subject, outcome: input, request: {} };
    const { request } = input;
    const resolved = await resolvePod(this.#context, input);
    if (resolved === undefined) {
      return nothing(subject, await this.#dynamic(pod.metadata));
    }
    if (isRefusal(resolved)) return { subject, outcome: resolved, request };
    const { annotations } = pod.metadata;
    const strange = strangeMac(annotations, request.interfaces);
    if (strange !== undefined) return { subject, outcome: strange, request };
    const fit = withMacsSaid(annotations, resolved);
    if (isRefusal(fit)) return { subject, outcome: fit, request };
    const { kind, requests } = fit;
    const objection = (would: DryRunResult) => macObjection(annotations, would);
    if (kind === "own")
      return { subject, outcome: await this.#planned.predict(requests[0], objection), request };
    const slot = await dryRunSlot(this.#context, this.#inventory, requests);
    return { subject, outcome: isRefusal(slot) ? slot : (objection(slot) ?? slot), request };
  }

  async #ofWorkload(object: KubeObject, isThere: boolean): Promise<readonly DryRunner[]> {
    const { namespace } = object.metadata;
    const subject = `${object.kind.toLowerCase()}/${namespace}/${object.metadata.name}`;
    const { own, space, left } = this.#own(templateAnnotations(object), await this.#namespace(namespace));
    if (left !== undefined) return [nothing(subject, left)];
    const template = readTemplate(this.#context, object, space, own);
    if (isRefusal(template)) return [{ subject, outcome: template, request: {} }];
    const { request } = template;
    const isOnHost = podTemplate(object).at("spec").flag("hostNetwork");
    if (isOnHost) return [nothing(subject, ON_HOST)];
    if (template.exempt || !requestsAddress(request)) {
      const [labels, annotations] = [templateLabels(object), templateAnnotations(object)];
      return [nothing(`${subject}, each pod`, await this.#dynamic({ namespace, labels, annotations }))];
    }
    const annotations = templateAnnotations(object);
    const strange = strangeMac(annotations, request.interfaces);
    if (strange !== undefined) return [{ subject: `${subject}, each pod`, outcome: strange, request }];
    if (object.kind !== "StatefulSet") return await this.#ofSet(object, subject, template);
    const objection = (would: DryRunResult) => macObjection(annotations, would);
    const results: DryRunner[] = [];
    const ordinals = [...ordinalRequests(object, template)];
    const claims = keysOf(ordinals.flatMap(({ allocation }) => (isRefusal(allocation) ? [] : allocation)));
    for (const { name, allocation } of ordinals) {
      const outcome = isRefusal(allocation)
        ? allocation
        : await this.#foretell(allocation, claims, objection);
      const kept = "keeps" in outcome ? describeKept(name, outcome) : undefined;
      const subject = `pod/${namespace}/${name}`;
      results.push({ subject, outcome, request, ...(kept === undefined ? {} : { kept }) });
    }
    const list = { object, subject, isThere, ordinals, results };
    return await judgedAsList(this.#context, this.#inventory, list);
  }

  /** What of the annotations is for Berth, as admission judges it; `left`: all that they ask is another system's. */
  #own(annotations: Labels, namespace: NamespaceState) {
    const { view, dialects } = this.#context;
    const own = ownAnnotations(view, annotations, namespace, dialects);
    const asked = readRequest(own.annotations, own.namespace, "macs");
    const [left] = isRefusal(asked) || requestsAddress(asked) ? [] : own.left;
    return { own: own.annotations, space: own.namespace, left };
  }

  async #ofSet(
    object: KubeObject,
    subject: string,
    { inputOf, request }: Template,
  ): Promise<readonly DryRunner[]> {
    const identity = ownerOf(object);
    const one = inputOf({ kind: "set", workload: identity.name, identity });
    if (request.entries === undefined) return [await this.#ofApplicant(`${subject}, each pod`, one)];
    const results: DryRunner[] = [];
    const slots = withUnfit(templateAnnotations(object), slotRequests(one, identity.name));
    const [unfit] = slots.every((slot) => slot.unfit !== undefined) ? slots : [];
    if (unfit?.unfit !== undefined)
      return [{ subject: `${subject}, each pod`, outcome: unfit.unfit, request }];
    for (const [slot, allocation] of slots.entries()) {
      const outcome =
        allocation.unfit === undefined
          ? await this.#foretell(allocation, keysOf(slots))
          : forNone(allocation.unfit);
      results.push({ subject: `${subject}, slot ${slot}`, outcome, request });
    }
    return results;
  }

  async #ofApplicant(subject: string, input: AllocationInput): Promise<DryRunner> {
    const allocation = requestFor(input);
    const outcome = isRefusal(allocation) ? allocation : await this.#planned.predict(allocation);
    return { subject, outcome, request: input.request };
  }

  /** For one pod of a workload, whose allocations are of the claims `own`. */
  async #foretell(
    allocation: AllocationRequest,
    own: ReadonlySet<string>,
    objection?: (would: DryRunResult) => Refusal | undefined,
  ): Promise<DryRunner["outcome"]> {
    const would = await this.#planned.predict(allocation, objection);
    return isRefusal(would) ? await laterOrRefused(this.#context, allocation, would, own) : would;
  }

  #input(podIdentity: PodIdentity, request: Request, namespace: NamespaceState): AllocationInput {
    const token = this.#context.random.token();
    return { podIdentity, request, namespace, podLabels: {}, start: 0, token, now: this.#now() };
  }

  async #namespace(name: string): Promise<NamespaceState> {
    const given = this.#namespaces.get(name)?.metadata;
    const known = given ?? (await this.#inventory.namespace(name));
    const labels = { ...known?.labels, "kubernetes.io/metadata.name": name };
    return { name, labels, annotations: known?.annotations ?? {} };
  }

  /** What a pod gets that asks for nothing, or whose namespace is none of admission's. */
  async #dynamic(pod: Parameters<typeof foretellDynamic>[1]): Promise<string> {
    const { labels } = await this.#namespace(pod.namespace);
    return foretellDynamic(this.#context.view, pod, labels);
  }

  #now(): number {
    return this.#context.clock.now();
  }
}

function keysOf(allocations: readonly AllocationRequest[]): ReadonlySet<string> {
  return new Set(allocations.map(({ key }) => claimKey(key)));
}

const ON_HOST = "it is on its host's network";

/** Why a pod has no network of its own, or nobody but kubelet makes it; undefined: it is served as one that asks for nothing. */
function exemptWords({ spec, metadata }: KubeObject): string | undefined {
  if (spec.flag("hostNetwork")) return ON_HOST;
  const isMirror = Object.hasOwn(metadata.annotations, MIRROR_POD_ANNOTATION);
  return isMirror ? "Berth keeps away from mirror pods" : undefined;
}

/** Of an entry that no pod of its set can have. Others may have theirs, so that nobody is refused for it. */
function forNone({ message }: Refusal): DryRunner["outcome"] {
  return { kind: "nothing", why: `for none of its pods: ${message}` };
}

function nothing(subject: string, why: string): DryRunner {
  return { subject, outcome: { kind: "nothing", why }, request: {} };
}
