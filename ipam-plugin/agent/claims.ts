// SPDX-License-Identifier: Apache-2.0
import { type BindFacts, bind, PROMISE_MS } from "../../allocator/bind.ts";
import { type Claim, type ClaimAttachment, claimKey } from "../../allocator/claim.ts";
import { type Context, MAX_ROUNDS } from "../../allocator/context.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
  EXEMPT_NAMESPACE,
  readRequest,
  withDefaults,
} from "../../allocator/dialects.ts";
import { BerthError, isRefusal, type Refusal, refuse } from "../../allocator/errors.ts";
import { intentOf } from "../../allocator/intent.ts";
import type { Inventory } from "../../allocator/inventory.ts";
import { type Pool, rangeOf } from "../../allocator/pool.ts";
import type { Labels } from "../../allocator/ports.ts";
import { asksForAddress } from "../../allocator/request.ts";
import { reserve } from "../../allocator/reserve.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type {
  AttachRequest,
  FoundClaim,
  Moored,
  MooredAddress,
  Mooring,
  PodRef,
  SandboxNotice,
  Unmoored,
} from "./mooring.ts";

export interface ClaimsOptions {
  readonly context: Context;
  readonly inventory: Inventory;
  /** This node's name. */
  readonly node: string;
  /** A sandbox is gone: the claim may have lost what it was kept for. */
  readonly suspect: (claim: Claim) => void;
  /** Resolves once the context's view has every record; until then nothing new is chosen. Absent: it has. */
  readonly whole?: Promise<void>;
}

const UNMOORED: Unmoored = { kind: "unmoored" };

/**
 * The claims side of the agent where allocator and agent share a process: finds the pod's claim, binds it to this
 * node through the same rule as the cluster's binder, and reports what became of the sandbox.
 */
export class Claims implements Mooring {
  readonly #options: ClaimsOptions;
  /** Claims that an ADD of this process is about, until `resumed` has seen to those that none is about. */
  #asked: Set<string> | undefined = new Set();

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  async find(request: AttachRequest, _signal: AbortSignal): Promise<FoundClaim | Unmoored | Refusal> {
    const { context, inventory } = this.#options;
    const { namespace, name } = request.pod;
    const pod = await inventory.pod(namespace, name);
    const annotations = pod?.annotations ?? request.annotations ?? {};
    const named = annotations[ASSIGNED_CLAIM];
    const token = annotations[ASSIGNED_TOKEN] ?? "";
    const assigned = annotations[ASSIGNED_ADDRESSES]?.split(",");
    const said = assigned === undefined ? {} : { assigned };
    if (named !== undefined && token !== "") {
      const claim = await context.store.get("claim", claimKey({ namespace, name: named }));
      if (claim?.record.binding?.token === token) return this.#foundFor(claim, { token, ...said }, request);
    }
    const own = await context.store.get("claim", claimKey(request.pod));
    if (own !== undefined && isByName(own.record))
      return this.#foundFor(own, { token: "", ...said }, request);
    return await this.#make(request, annotations);
  }

  /** Another interface of the pod may have the claim already; this one is then served like that of a pod without any. */
  #foundFor(
    { key, record }: Stored<"claim">,
    said: Pick<FoundClaim, "token" | "assigned">,
    { pod, attachment }: AttachRequest,
  ): FoundClaim | Unmoored {
    const { binding } = record;
    const lentToIt =
      binding?.node === this.#options.node && binding.podName === pod.name && binding.podUID === pod.uid;
    const only = record.interface ?? (lentToIt ? binding.interface : undefined);
    return only === undefined || only === attachment.interface
      ? { kind: "found", claim: key, ...said }
      : UNMOORED;
  }

  async attach(
    found: FoundClaim,
    request: AttachRequest,
    _signal: AbortSignal,
  ): Promise<Moored | Unmoored | Refusal> {
    this.#asked?.add(found.claim);
    const bound = await this.#bind(found, request);
    if (isRefusal(bound)) return bound;
    const { record } = bound;
    if ((record.interface ?? record.binding?.interface) !== request.attachment.interface) return UNMOORED;
    const others = request.addresses.filter((address) => !record.addresses.includes(address));
    if (others.length > 0) return contradicts(record, others);
    const notice = { claim: found.claim, pod: request.pod, attachment: request.attachment };
    // Before it is answered: the end of an older sandbox must not make the claim look free while this one has it.
    if ((await this.#report(notice, "attached")) === undefined) return missing(request.pod);
    return mooredOf(this.#options.context, record);
  }

  async detached(notice: SandboxNotice): Promise<void> {
    const seen = await this.#report(notice, "detached");
    if (seen !== undefined) this.#options.suspect(seen.record);
  }

  /** A sandbox was given the claim's addresses, or has had them since before this process began. */
  async attached(notice: SandboxNotice): Promise<void> {
    await this.#report(notice, "attached");
  }

  /** Bound to this node and attached nowhere on it: as after a DEL, or the claim would be kept for nobody, for ever. */
  async resumed(claims: ReadonlySet<string>): Promise<void> {
    const { context, node, whole } = this.#options;
    await whole;
    for (const { key, record } of [...context.view.claims()]) {
      const { namespace, binding, status } = record;
      if (binding?.node !== node || claims.has(key) || this.#asked?.has(key) === true) continue;
      const pod = { namespace, name: binding.podName, uid: binding.podUID };
      const { containerID = "", interface: name = binding.interface ?? "" } = status.attachment ?? {};
      await this.detached({ claim: key, pod, attachment: { network: "", containerID, interface: name } });
    }
    this.#asked = undefined;
  }

  /** No claim: a pod that asked for one is refused, one that did not is given an address of the configured pools. */
  async #make(request: AttachRequest, annotations: Labels): Promise<FoundClaim | Unmoored | Refusal> {
    const { context, inventory } = this.#options;
    const { namespace: name } = request.pod;
    const namespace = (await inventory.namespace(name)) ?? { name, labels: {}, annotations: {} };
    const asked = name === EXEMPT_NAMESPACE ? {} : readRequest(withDefaults(annotations, namespace));
    if (isRefusal(asked)) return asked;
    if (asksForAddress(asked) || annotations[ASSIGNED_CLAIM] !== undefined) return missing(request.pod);
    if (request.pools.length === 0) return UNMOORED;
    const entry = request.addresses.length === 0 ? {} : { entries: [request.addresses] };
    const identity = { kind: "Pod", apiVersion: "v1", name: request.pod.name };
    const intent = intentOf({
      standing: { kind: "named", claim: request.pod.name, identity },
      request: { pools: request.pools, ...entry },
      namespace,
      podLabels: {},
      start: 0,
      token: "",
      now: context.clock.now(),
    });
    if (isRefusal(intent)) return intent;
    await this.#options.whole;
    const got = await reserve(context, intent);
    return isRefusal(got) ? got : { kind: "found", claim: got.claim.key, token: "" };
  }

  async #bind(
    { claim, token, assigned }: FoundClaim,
    request: AttachRequest,
  ): Promise<Stored<"claim"> | Refusal> {
    const { context, node } = this.#options;
    const { name, uid } = request.pod;
    const { interface: attachTo, containerID } = request.attachment;
    const said = assigned === undefined ? {} : { assigned };
    const bindee = { name, uid, node, token, interface: attachTo, containerID, ...said };
    return await bind(context, claim, bindee, (lent) => this.#factsOf(lent));
  }

  async #factsOf({ namespace, binding }: Claim): Promise<BindFacts> {
    const { inventory, context } = this.#options;
    if (binding === undefined) return { fenced: false, promiseOver: true };
    if (binding.node !== "") return { fenced: await inventory.fenced(binding.node), promiseOver: false };
    const pod = binding.podName === "" ? undefined : await inventory.pod(namespace, binding.podName);
    return {
      fenced: false,
      promiseOver: pod === undefined && context.clock.now() - binding.since >= PROMISE_MS,
    };
  }

  /** The claim as it stands once the news is in it; undefined when it is not this pod's any more, or says more already. */
  async #report(notice: SandboxNotice, news: News): Promise<Stored<"claim"> | undefined> {
    const { claim: key, attachment } = notice;
    const { context, node } = this.#options;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const seen = await context.store.get("claim", key);
      if (seen === undefined) return undefined;
      const bearing = judgeNews(seen.record, notice, news);
      if (bearing !== "new") return bearing === "known" ? seen : undefined;
      const next: ClaimAttachment = {
        node,
        containerID: attachment.containerID,
        interface: attachment.interface,
        podUID: seen.record.binding?.podUID ?? "",
        since: context.clock.now(),
        detached: news === "detached",
      };
      const phase = next.detached ? "Detached" : "Attached";
      const result = await context.store.report(seen, { phase, attachment: next });
      if (result.kind === "replaced") return result.stored;
    }
    throw new BerthError("REVISION_CONFLICT", `the status of claim ${key} kept changing`, {
      details: { claim: key },
    });
  }
}

type News = "attached" | "detached";

/**
 * What a piece of news means for the claim. A late DEL of an older sandbox says nothing about the one that came after
 * it (invariant 8), nor does anything about a pod that the claim is not lent to.
 */
function judgeNews(
  claim: Claim,
  { pod, attachment }: SandboxNotice,
  news: News,
): "new" | "known" | "foreign" {
  const { binding, status } = claim;
  if (claim.releasing === true || binding === undefined || binding.podName !== pod.name) return "foreign";
  if (pod.uid !== "" && binding.podUID !== "" && binding.podUID !== pod.uid) return "foreign";
  const known = status.attachment;
  if (known === undefined || known.podUID !== binding.podUID) return "new";
  const same = known.containerID === attachment.containerID;
  if (news === "attached") return same && !known.detached ? "known" : "new";
  if (!same) return "foreign";
  return known.detached ? "known" : "new";
}

/** A claim that a pod may have for its name alone: no slot of a set, and promised to nobody in particular. */
function isByName({ identity, binding }: Claim): boolean {
  return identity.slot === undefined && (binding?.token ?? "") === "";
}

function mooredOf({ view }: Context, claim: Claim): Moored | Refusal {
  const addresses: MooredAddress[] = [];
  const pools = new Set<Pool>();
  for (const address of claim.addresses) {
    const pool = view.poolOf(address);
    const range = pool && rangeOf(pool, address);
    if (pool === undefined || range === undefined) {
      return refuse(
        "ADDRESS_OUTSIDE",
        `address ${address} of claim ${claimKey(claim)} is in no pool any more; put its pool back`,
        {
          address,
          claim: claimKey(claim),
        },
      );
    }
    pools.add(pool);
    const { prefixLength, gateway } = range;
    addresses.push({ address, prefixLength, ...(gateway === undefined ? {} : { gateway }) });
  }
  const families = new Set(claim.addresses.map((address) => address.includes(":")));
  const routes = [...pools].flatMap((pool) => pool.spec.routes ?? []);
  return {
    kind: "moored",
    claim: claimKey(claim),
    addresses,
    routes: routes.filter((route) => families.has(route.dst.includes(":"))),
    dns: [...pools].find((pool) => pool.spec.dns !== undefined)?.spec.dns ?? {},
  };
}

function missing(pod: PodRef): Refusal {
  const key = `${pod.namespace}/${pod.name}`;
  return refuse(
    "CLAIM_MISSING",
    `pod ${key} asks for a fixed address and has no claim: it did not pass the Berth webhook; delete it and create it again`,
    {
      claim: key,
      pod: pod.name,
    },
  );
}

function contradicts(claim: Claim, others: readonly string[]): Refusal {
  const key = claimKey(claim);
  return refuse(
    "CLAIM_CHANGED",
    `the runtime asks for ${others.join(", ")}, and claim ${key} holds ${claim.addresses.join(", ")}; remove one of the two requests`,
    {
      claim: key,
    },
  );
}
