// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../allocator/address.ts";
import { claimKey } from "../allocator/claim.ts";
import { readClaimRequest } from "../allocator/claim-request.ts";
import type { Context } from "../allocator/context.ts";
import { isRefusal, type Refusal, refuse } from "../allocator/errors.ts";
import type { PodStanding } from "../allocator/identity.ts";
import { type Applicant, intentForClaim, intentOf, slotIntents } from "../allocator/intent.ts";
import type { Inventory, NamespaceFacts } from "../allocator/inventory.ts";
import type { KubeObject } from "../allocator/kube-object.ts";
import { previewSlot } from "../allocator/lend.ts";
import type { Mirror } from "../allocator/mirror.ts";
import { parsePool } from "../allocator/pool.ts";
import type { PoolSpec } from "../allocator/pool-spec.ts";
import { type Preview, preview } from "../allocator/preview.ts";
import { q } from "../allocator/refusals.ts";
import { asksForAddress, type Request } from "../allocator/request.ts";
import type { Intent } from "../allocator/reserve.ts";
import { ordinalIntents, ownerOf, readTemplate, type Template } from "../allocator/template.ts";
import { applicantOf, isExempt, wishOf } from "../allocator/wish.ts";

/** What one identity would get, or why nothing. `nothing`: it asks for nothing, and no claim waits for it. */
export interface Outlook {
  /** pod/shop/mysql-0, or a slot of a Deployment's set. */
  readonly subject: string;
  readonly outcome: Preview | Refusal | { readonly kind: "nothing"; readonly why: string };
  /** What the addresses were chosen by. */
  readonly request: Request;
}

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
    const { namespace: name } = pod.metadata;
    const subject = `pod/${name}/${pod.metadata.name || `${pod.metadata.generateName}*`}`;
    if (isExempt(pod))
      return nothing(
        subject,
        pod.spec.flag("hostNetwork")
          ? "it is on its host's network"
          : "Berth keeps away from mirror pods and kube-system",
      );
    const applicant = await applicantOf(this.#context, this.#inventory, pod, await this.#namespace(name));
    if (isRefusal(applicant)) return { subject, outcome: applicant, request: {} };
    const { request } = applicant;
    const wish = await wishOf(this.#context, applicant);
    if (wish === undefined) {
      return nothing(subject, "it asks for no fixed address; the network's configuration gives it any");
    }
    if (isRefusal(wish)) return { subject, outcome: wish, request };
    if (wish.kind === "one") return { subject, outcome: await this.#foresee(wish.intent), request };
    return { subject, outcome: await previewSlot(this.#context, this.#inventory, wish.slots), request };
  }

  async #ofWorkload(object: KubeObject): Promise<readonly Outlook[]> {
    const { namespace } = object.metadata;
    const subject = `${object.kind.toLowerCase()}/${namespace}/${object.metadata.name}`;
    const template = readTemplate(this.#context, object, await this.#namespace(namespace));
    if (isRefusal(template)) return [{ subject, outcome: template, request: {} }];
    const { request } = template;
    if (!asksForAddress(request)) return [nothing(subject, "its template asks for no fixed address")];
    if (template.exempt)
      return [nothing(subject, "its host's network or its namespace keeps Berth away from it")];
    if (object.kind !== "StatefulSet") return await this.#ofSet(object, subject, template);
    const outlooks: Outlook[] = [];
    for (const { name, intent } of ordinalIntents(object, template)) {
      const outcome = isRefusal(intent) ? intent : await this.#foresee(intent);
      outlooks.push({ subject: `pod/${namespace}/${name}`, outcome, request });
    }
    return outlooks;
  }

  async #ofSet(
    object: KubeObject,
    subject: string,
    { applicant, request }: Template,
  ): Promise<readonly Outlook[]> {
    const identity = ownerOf(object);
    const one = applicant({ kind: "set", workload: identity.name, identity });
    if (request.entries === undefined) return [await this.#ofApplicant(`${subject}, each pod`, one)];
    const outlooks: Outlook[] = [];
    for (const [slot, intent] of slotIntents(one, identity.name).entries()) {
      outlooks.push({ subject: `${subject}, slot ${slot}`, outcome: await this.#foresee(intent), request });
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
    const refusal = this.#disputed(key, would);
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

  #now(): number {
    return this.#context.clock.now();
  }
}

function nothing(subject: string, why: string): Outlook {
  return { subject, outcome: { kind: "nothing", why }, request: {} };
}
