// SPDX-License-Identifier: Apache-2.0

/** A refusal is an expected answer: the asker can read it and do something. Code -> what it means. */
export const REFUSALS = {
  REQUEST_INVALID: "an annotation, or a field of a claim, cannot be read",
  ADDRESS_OUTSIDE: "no pool contains the address",
  ADDRESS_EXCLUDED: "the address is a gateway, a network or broadcast address, or excluded from its pool",
  ADDRESS_TAKEN: "another identity holds the address",
  POOL_UNKNOWN: "there is no pool of that name",
  POOL_DISABLED: "the pool takes no new reservations",
  POOL_FORBIDDEN: "the pool is not open to this namespace, pod or service account",
  POOL_EXHAUSTED: "every address of the pools that may serve the request is taken",
  POOL_INVALID: "the pool itself is wrong: a range, gateway, route or selector",
  POOL_OVERLAPS: "two pools would contain the same address",
  POOL_IN_USE: "reservations stand in what the change would remove",
  FAMILY_UNAVAILABLE: "no pool that may serve the request has an address family that it asks for",
  LIST_TOO_SHORT: "the list of addresses has no entry for this ordinal",
  SET_EXHAUSTED: "every entry of the Deployment's set of addresses is bound to a pod",
  LIMIT_REACHED:
    "the namespace has as many addresses of the pool as the pool allows one namespace, or as much is held as may be for pods that were admitted and have not come",
  CLAIM_CHANGED: "the identity holds other addresses than it asks for now",
  CLAIM_RELEASING: "the identity's addresses are being given back at this moment",
  CLAIM_MISSING: "the pod asked for a fixed address and has no claim",
  CLAIM_BUSY: "the claim is bound to another pod whose sandbox may still be alive",
  CLAIM_REFUSED:
    "the API server takes no claim for the pod: by a ResourceQuota, by an admission policy, or because its namespace does not exist or is being deleted",
  OBJECT_INVALID: "the object is not of the kind or the form that is expected here",
} as const;

/** A fault is nobody's expected answer: something is broken, missing or overloaded. Code -> what it means. */
export const FAULTS = {
  STORE_UNAVAILABLE: "the store cannot be reached or does not answer",
  STORE_FULL: "the disk under the store is full",
  STORE_READ_ONLY: "the store cannot be written",
  WRITE_REFUSED:
    "the API server refuses the record itself: by a quota, a policy, or because its namespace is not there",
  STATE_CORRUPT: "a stored record cannot be decoded, or the file itself is damaged",
  JOURNAL_MISMATCH:
    "the node's agent was started with another journal than the one that has served since the host booted",
  REVISION_CONFLICT: "a record kept changing under the writer",
  NOT_READY: "the state is not loaded yet",
  TIMED_OUT: "something did not happen in its time",
  CONFIG_INVALID: "a flag, variable or file that the administrator gave is wrong",
  CERTIFICATE_INVALID: "a certificate or key cannot be read or used",
  INTERNAL: "a defect of Berth itself",
} as const;

export type RefusalCode = keyof typeof REFUSALS;
export type FaultCode = keyof typeof FAULTS;
/** Names of fields are fixed, so that logs, metrics and `-o json` agree. */
export type Details = Readonly<Record<string, string>>;

/**
 * Why something was not done, for the person reading `kubectl describe`: lower case, no final stop; pool,
 * address, holder, and what to do next.
 */
export interface Refusal {
  readonly kind: "refused";
  readonly code: RefusalCode;
  readonly message: string;
  readonly details: Details;
}

export function refuse(code: RefusalCode, message: string, details: Details = {}): Refusal {
  return { kind: "refused", code, message, details };
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "refused";
}

/** The one error class. `code` is the interface: exit code, metric label and anchor in docs/errors.md. */
export class BerthError extends Error {
  override readonly name = "BerthError";
  readonly code: FaultCode;
  readonly details: Details;

  constructor(code: FaultCode, message: string, options: { details?: Details; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** What a write may have done before its answer was lost. */
const UNKNOWN_OUTCOME: ReadonlySet<FaultCode> = new Set(["STORE_UNAVAILABLE", "TIMED_OUT", "NOT_READY"]);

/** The store has said that the write which threw this did not happen. */
export function isDefinite(error: unknown): error is BerthError {
  return error instanceof BerthError && !UNKNOWN_OUTCOME.has(error.code);
}

/** The words of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Closes a switch over a union: the compiler proves it unreachable, and if it lied, it throws. */
export function assertNever(value: never): never {
  throw new BerthError("INTERNAL", `unexpected value ${JSON.stringify(value)}`);
}
