// SPDX-License-Identifier: Apache-2.0
import { type Binding, type Claim, claimKey, isBound } from "./claim.ts";
import { type Context, MAX_ROUNDS } from "./context.ts";
import { BerthError, isRefusal, type Refusal, refuse } from "./errors.ts";
import { rely } from "./reap.ts";
import type { Stored } from "./store/store.ts";

/** The pod that wants its claim. `node` is empty while it is not scheduled; `token` as its annotation says. */
export interface Bindee {
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly token: string;
  readonly interface?: string;
  /** The sandbox that is going up; absent while there is none. */
  readonly containerID?: string;
  /** The addresses that it was admitted with; absent when it does not say. */
  readonly assigned?: readonly string[];
}

/** What decides whether a binding may move away from the pod that has it. */
export interface BindFacts {
  /** The node of the present binding will never run its pods again. */
  readonly fenced: boolean;
  /** The pod of the present promise is known to be gone, or never came in its time. */
  readonly promiseOver: boolean;
}

/** A promise made at admission to a pod that does not exist yet holds this long. */
export const PROMISE_MS = 120_000;

export type BindPlan =
  | { readonly kind: "bound" }
  | { readonly kind: "bind"; readonly binding: Binding }
  | Refusal;

/**
 * Whether the claim may be lent to the pod (invariant 3).
 *
 * | lent to now            | wanted by   | answer                                                            |
 * |------------------------|-------------|-------------------------------------------------------------------|
 * | nobody                 | anyone      | bind                                                              |
 * | a promise, same token  | its pod     | bind                                                              |
 * | a promise, other token | another pod | only when the promise is over                                     |
 * | pod A on X             | A on X      | bound already                                                     |
 * | pod A on X             | B on X      | bind: X's agent takes A's sandbox down before it sets B's up (c)  |
 * | pod A on X             | B on Y      | only when X's agent said that A is detached (a), or X is fenced (b) |
 */
export function planBind(claim: Claim, pod: Bindee, facts: BindFacts, now: number): BindPlan {
  const key = claimKey(claim);
  if (claim.releasing === true) {
    return refuse(
      "CLAIM_RELEASING",
      `the addresses of claim ${key} are being given back; try again in a moment`,
      {
        claim: key,
      },
    );
  }
  if (claim.nonce === "") {
    return refuse(
      "CLAIM_MISSING",
      `claim ${key} has no addresses yet: ${claim.status.message ?? "not reserved"}`,
      {
        claim: key,
      },
    );
  }
  if (pod.assigned !== undefined && !isSame(pod.assigned, claim.addresses)) {
    return movedOn(claim, pod.name, pod.assigned);
  }
  const binding = bindingOf(pod, now);
  const current = claim.binding;
  if (current === undefined) return { kind: "bind", binding };
  if (samePod(current, pod) && current.node === pod.node) return { kind: "bound" };
  if (current.node === "") return ofPromise(claim, current, pod, facts) ?? { kind: "bind", binding };
  if (current.node === pod.node || facts.fenced || detached(claim)) return { kind: "bind", binding };
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} is still lent to pod ${current.podName} on node ${current.node}, whose sandbox was not seen to end; ` +
      `it moves when that node's agent reports, the node is deleted, or it is tainted out-of-service`,
    { claim: key, pod: current.podName, node: current.node },
  );
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((address) => others.includes(address));
}

/** Another pod of the name was admitted since, with another request: this one must not start with its addresses. */
function movedOn(claim: Claim, pod: string, assigned: readonly string[]): Refusal {
  const key = claimKey(claim);
  return refuse(
    "CLAIM_CHANGED",
    `claim ${key} holds ${claim.addresses.join(", ")} now, and pod ${pod} was admitted with ${assigned.join(", ")}; delete the pod and create it again`,
    { claim: key, pod, address: assigned.join(",") },
  );
}

function bindingOf(pod: Bindee, since: number): Binding {
  const where = pod.interface === undefined ? {} : { interface: pod.interface };
  return { token: pod.token, podName: pod.name, podUID: pod.uid, node: pod.node, ...where, since };
}

function ofPromise(claim: Claim, promise: Binding, pod: Bindee, facts: BindFacts): Refusal | undefined {
  const its = promise.token === pod.token && (promise.podUID === "" || samePod(promise, pod));
  if (its || promise.token === "" || facts.promiseOver) return undefined;
  const key = claimKey(claim);
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} is promised to another pod of its set; it is free again when that pod is gone`,
    {
      claim: key,
      pod: promise.podName,
    },
  );
}

function samePod(binding: Binding, pod: Bindee): boolean {
  return binding.podName === pod.name && (binding.podUID === pod.uid || pod.uid === "");
}

/** The agent of its node saw the sandbox of the present binding end. */
function detached(claim: Claim): boolean {
  const { attachment } = claim.status;
  return attachment?.detached === true && attachment.podUID === claim.binding?.podUID;
}

/** Nobody's sandbox can have the claim's addresses: its request may change, and it may be released. */
export function isAtRest(claim: Claim): boolean {
  return !isBound(claim) || detached(claim);
}

/**
 * Lends the claim to the pod. Reads the authority, makes sure that every reservation may be relied on, then
 * compares and sets. Throws REVISION_CONFLICT when the claim keeps changing.
 */
export async function bind(
  context: Context,
  key: string,
  pod: Bindee,
  facts: (claim: Claim) => Promise<BindFacts>,
): Promise<Stored<"claim"> | Refusal> {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const seen = await context.store.get("claim", key);
    if (seen === undefined) return missing(key);
    const plan = planBind(seen.record, pod, await facts(seen.record), context.clock.now());
    if (isRefusal(plan)) return plan;
    for (const address of seen.record.addresses) {
      if (!(await rely(context.store, address, seen.record.nonce))) return missing(key);
    }
    const lent = plan.kind === "bound" ? seen : await lend(context, seen, plan.binding);
    const standing = lent && (await standUp(context, lent, pod));
    if (standing !== undefined) return standing;
  }
  throw new BerthError("REVISION_CONFLICT", `claim ${key} kept changing while it was bound`, {
    details: { claim: key },
  });
}

async function lend(
  context: Context,
  seen: Stored<"claim">,
  binding: Binding,
): Promise<Stored<"claim"> | undefined> {
  const { retained: _, ...rest } = seen.record;
  const result = await context.store.replace("claim", seen, { ...rest, binding });
  return result.kind === "replaced" ? result.stored : undefined;
}

/**
 * The same pod again, whose last sandbox was seen to end: until the next one is reported the claim looks at rest, and
 * might be changed or released under it. Undefined: somebody changed the claim.
 */
async function standUp(
  context: Context,
  seen: Stored<"claim">,
  { containerID, interface: name }: Bindee,
): Promise<Stored<"claim"> | undefined> {
  const { attachment } = seen.record.status;
  if (containerID === undefined || attachment === undefined || !detached(seen.record)) return seen;
  const since = context.clock.now();
  const next = {
    ...attachment,
    containerID,
    interface: name ?? attachment.interface,
    since,
    detached: false,
  };
  const result = await context.store.report(seen, { phase: "Attached", attachment: next });
  return result.kind === "replaced" ? result.stored : undefined;
}

function missing(key: string): Refusal {
  return refuse(
    "CLAIM_MISSING",
    `there is no claim ${key} with addresses; create the pod anew so that they are reserved`,
    {
      claim: key,
    },
  );
}
