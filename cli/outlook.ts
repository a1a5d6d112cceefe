// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../allocator/address.ts";
import { isAtRest } from "../allocator/bind.ts";
import { claimKey, isReserved } from "../allocator/claim.ts";
import { readClaimRequest } from "../allocator/claim-request.ts";
import type { Context } from "../allocator/context.ts";
import { readRequest, withDefaults } from "../allocator/dialects.ts";
import { isRefusal, type Refusal, refuse } from "../allocator/errors.ts";
import { type PodStanding, standingOf } from "../allocator/identity.ts";
import { type Applicant, intentForClaim, intentOf, slotIntents } from "../allocator/intent.ts";
import type { Inventory, NamespaceFacts } from "../allocator/inventory.ts";
import { type KubeObject, originOf, workloadFacts } from "../allocator/kube-object.ts";
import { previewSlot } from "../allocator/lend.ts";
import type { Mirror } from "../allocator/mirror.ts";
import { parsePool } from "../allocator/pool.ts";
import type { PoolSpec } from "../allocator/pool-spec.ts";
import { type Preview, preview } from "../allocator/preview.ts";
import { q } from "../allocator/refusals.ts";
import { asksForAddress, type Request } from "../allocator/request.ts";
import type { Intent } from "../allocator/reserve.ts";

/** What one identity would get, or why nothing. `nothing`: it asks for nothing, and no claim waits for it. */
export interface Outlook {
  /** pod/shop/mysql-0, or a slot of a Deployment's set. */
  readonly subject: string;
  readonly outcome: Preview | Refusal | { readonly kind: "nothing"; readonly why: string };
  /** What the addresses were chosen by. */
  readonly request: Request;
}

/** More ordinals than this are not looked at one by one; the webhook reserves no more in advance either. */
const MOST_ORDINALS = 1_000;

/**
 * Foretells what admission would answer to a file's objects, one after the other: what one of them would get is
 * taken for the next. Nothing is written; `context.view` is the forecaster's own.
 */
export class Forecast {
  readonly #context: Context & { readonly view: Mirror };
  readonly #inventory: Inventory;
  readonly #namespaces = new Map<string, KubeObject>(); // name -> Namespace of the same file
  readonly #planned = new Map<Address, string>(); // address -> claim that would get it

  constructor(context: Context & { readonly view: Mirror }, inventory: Inventory) {
    this.#context = context;
    this.#inventory = inventory;
  }

  /** Objects in the order in which `apply` sends them; pools and namespaces count for what comes after them. */
  async of(object: KubeObject): Promise<readonly Outlook[]> {
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
        return await this.#ofWorkload(object);
    }
  }

  #ofPool(object: KubeObject): Outlook[] {
    const { name } = object.metadata;
    const pool = parsePool({ name, spec: object.spec.value });
    if (isRefusal(pool)) return [{ subject: `ippool/${name}`, outcome: pool, request: {} }];
    const spec: PoolSpec = pool.spec;
    const stored = { key: name, record: { name, spec }, uid: "", revision: "", createdAt: this.#now() };
    this.#context.view.apply("pool", { type: "put", stored });
    return [];
  }

  async #ofClaim(object: KubeObject): Promise<Outlook> {
    const { namespace, name } = object.metadata;
    const subject = `ipclaim/${namespace}/${name}`;
    const claim = readClaimRequest(object);
    if (isRefusal(claim)) return { subject, outcome: claim, request: {} };
    const standing = { kind: "named", claim: name, identity: claim.identity } as const;
    const applicant = this.#applicant(standing, {}, await this.#namespace(namespace));
    const outcome = await this.#foresee(intentForClaim(applicant, claim));
    const { addresses, pools } = claim.request;
    const asked = { ...(addresses && { entries: [addresses] }), ...(pools && { pools }) };
    return { subject, outcome, request: asked };
  }

  async #ofPod(pod: KubeObject): Promise<Outlook> {
    const { namespace: name, annotations, labels } = pod.metadata;
    const standing = standingOf(originOf(pod, name));
    const subject = `pod/${name}/${pod.metadata.name || `${pod.metadata.generateName}*`}`;
    if (pod.spec.flag("hostNetwork")) return nothing(subject, "it is on its host's network");
    const namespace = await this.#namespace(name);
    const request = readRequest(withDefaults(annotations, namespace));
    if (isRefusal(request)) return { subject, outcome: request, request: {} };
    const start = await this.#startOf(standing, name);
    const applicant = { ...this.#applicant(standing, request, namespace), podLabels: labels, start };
    if (!asksForAddress(request)) return await this.#ofWaiting(subject, applicant);
    if (standing.kind === "set" && request.entries !== undefined) {
      const slots = slotIntents(applicant, standing.workload);
      return { subject, outcome: await previewSlot(this.#context, this.#inventory, slots), request };
    }
    return await this.#ofApplicant(subject, applicant);
  }

  /** A claim of the pod's name, made by hand or kept from before, speaks for a pod that asks for nothing. */
  async #ofWaiting(subject: string, applicant: Applicant): Promise<Outlook> {
    const { standing, namespace } = applicant;
    const key = standing.kind === "named" ? `${namespace.name}/${standing.claim}` : "";
    const claim = this.#context.view.claim(key)?.record;
    if (claim === undefined || !(claim.handMade === true || isReserved(claim))) {
      return nothing(subject, "it asks for no fixed address; the network's configuration gives it any");
    }
    return { subject, outcome: await this.#foresee(intentForClaim(applicant, claim)), request: {} };
  }

  async #ofWorkload(object: KubeObject): Promise<readonly Outlook[]> {
    const { namespace: name } = object.metadata;
    const namespace = await this.#namespace(name);
    const subject = `${object.kind.toLowerCase()}/${name}/${object.metadata.name}`;
    const template = object.spec.at("template").at("metadata");
    const request = readRequest(withDefaults(template.texts("annotations"), namespace));
    if (isRefusal(request)) return [{ subject, outcome: request, request: {} }];
    if (!asksForAddress(request)) return [nothing(subject, "its template asks for no fixed address")];
    const podLabels = template.texts("labels");
    const applicant = (standing: PodStanding) => ({
      ...this.#applicant(standing, request, namespace),
      podLabels,
      start: workloadFacts(object).start,
    });
    return object.kind === "StatefulSet"
      ? await this.#ofOrdinals(object, applicant)
      : await this.#ofSet(object, subject, applicant);
  }

  async #ofOrdinals(
    object: KubeObject,
    applicant: (standing: PodStanding) => Applicant,
  ): Promise<readonly Outlook[]> {
    const { namespace, name } = object.metadata;
    const { start, replicas } = workloadFacts(object);
    const outlooks: Outlook[] = [];
    for (let ordinal = start; ordinal < start + Math.min(replicas, MOST_ORDINALS); ordinal++) {
      const identity = { kind: object.kind, apiVersion: object.apiVersion, name, ordinal };
      const standing = { kind: "named", claim: `${name}-${ordinal}`, identity } as const;
      outlooks.push(await this.#ofApplicant(`pod/${namespace}/${standing.claim}`, applicant(standing)));
    }
    return outlooks;
  }

  async #ofSet(
    object: KubeObject,
    subject: string,
    applicant: (standing: PodStanding) => Applicant,
  ): Promise<readonly Outlook[]> {
    const { name } = object.metadata;
    const identity = { kind: object.kind, apiVersion: object.apiVersion, name };
    const one = applicant({ kind: "set", workload: name, identity });
    if (one.request.entries === undefined) return [await this.#ofApplicant(`${subject}, each pod`, one)];
    const outlooks: Outlook[] = [];
    for (const [slot, intent] of slotIntents(one, name).entries()) {
      const outcome = await this.#foresee(intent);
      outlooks.push({ subject: `${subject}, slot ${slot}`, outcome, request: one.request });
    }
    return outlooks;
  }

  async #ofApplicant(subject: string, applicant: Applicant): Promise<Outlook> {
    const intent = intentOf(applicant);
    const outcome = isRefusal(intent) ? intent : await this.#foresee(intent);
    return { subject, outcome, request: applicant.request };
  }

  async #foresee(intent: Intent): Promise<Preview | Refusal> {
    const key = claimKey(intent.key);
    const would = await preview(this.#context, intent);
    if (isRefusal(would)) return would;
    const refusal = this.#stuck(key, would) ?? this.#disputed(key, would);
    if (refusal !== undefined) return refusal;
    for (const { address, pool } of would.addresses) {
      this.#planned.set(address, key);
      if (this.#context.view.reservation(address) !== undefined) continue;
      const record = { address, pool, claim: intent.key, nonce: "planned" };
      const stored = { key: address, record, uid: "", revision: "", createdAt: this.#now() };
      this.#context.view.apply("reservation", { type: "put", stored });
    }
    return would;
  }

  /** A claim that is in use keeps its addresses until its pod is gone. */
  #stuck(key: string, would: Preview): Refusal | undefined {
    const claim = this.#context.view.claim(key)?.record;
    if (claim === undefined) return undefined;
    if (claim.releasing === true) {
      return refuse(
        "CLAIM_RELEASING",
        `the addresses of claim ${key} are being given back; try again in a moment`,
        { claim: key },
      );
    }
    const kept = would.addresses.filter(({ held }) => held).length;
    const moves = kept !== would.addresses.length || kept !== claim.addresses.length;
    if (!moves || claim.addresses.length === 0 || isAtRest(claim)) return undefined;
    const wants = would.addresses.map(({ address }) => address).join(", ");
    return refuse(
      "CLAIM_CHANGED",
      `claim ${key} holds ${claim.addresses.join(", ")} and is in use by pod ${claim.binding?.podName ?? ""}; ` +
        `it would get ${wants} when that pod is deleted and created again`,
      { claim: key },
    );
  }

  /** The store knows nothing of what is only planned. */
  #disputed(key: string, would: Preview): Refusal | undefined {
    for (const { address, pool } of would.addresses) {
      const other = this.#planned.get(address);
      if (other === undefined || other === key) continue;
      return refuse(
        "ADDRESS_TAKEN",
        `address ${address} in pool ${q(pool)} is asked for twice, by ${other} and by ${key}; give one of them another`,
        { address, pool },
      );
    }
    return undefined;
  }

  #applicant(standing: PodStanding, request: Request, namespace: NamespaceFacts): Applicant {
    const token = this.#context.random.token();
    return { standing, request, namespace, podLabels: {}, start: 0, token, now: this.#now() };
  }

  async #namespace(name: string): Promise<NamespaceFacts> {
    const given = this.#namespaces.get(name)?.metadata;
    const known = given ?? (await this.#inventory.namespace(name));
    const labels = { ...known?.labels, "kubernetes.io/metadata.name": name };
    return { name, labels, annotations: known?.annotations ?? {} };
  }

  async #startOf(standing: PodStanding, namespace: string): Promise<number> {
    if (standing.kind !== "named" || standing.identity.kind !== "StatefulSet") return 0;
    const workload = await this.#inventory.workload("StatefulSet", namespace, standing.identity.name);
    return workload === undefined || workload === "unknown" ? 0 : workload.start;
  }

  #now(): number {
    return this.#context.clock.now();
  }
}

function nothing(subject: string, why: string): Outlook {
  return { subject, outcome: { kind: "nothing", why }, request: {} };
}
