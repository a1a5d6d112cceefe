// SPDX-License-Identifier: Apache-2.0

/** A refusal is an expected answer: whoever asked can read it and do something. Code -> what it means. */
export const REFUSALS = {
  REQUEST_INVALID: "an annotation, or a field of a claim, is not valid",
  ADDRESS_OUTSIDE: "no pool contains the address",
  ADDRESS_EXCLUDED: "the address is a gateway, a network or broadcast address, or excluded from its pool",
  ADDRESS_TAKEN: "another identity holds the address",
  POOL_UNKNOWN: "there is no pool of that name",
  POOL_DISABLED: "the pool takes no new reservations",
  POOL_FORBIDDEN:
    "the pool is not open to this namespace, pod or service account, or to a network's own configuration",
  NODE_MISMATCH: "the pool is for nodes on which the pod cannot run",
  POOL_EXHAUSTED: "no pool that may serve the request has a free address",
  BLOCKS_EXHAUSTED: "the node has no block of the pool, or none with a free address",
  POOL_INVALID: "a field of the pool is not valid: a range, gateway, route or selector",
  POOL_OVERLAPS: "two pools would contain the same address",
  POOL_IN_USE: "addresses that the change would remove from the pool are reserved",
  FAMILY_UNAVAILABLE: "the request asks for an address family that no eligible pool has",
  LIST_TOO_SHORT: "the list of addresses has no entry for this ordinal",
  SET_EXHAUSTED: "every address of the Deployment's list is in use by a pod",
  LIMIT_REACHED:
    "the namespace has as many addresses of the pool as one namespace may have, or too many addresses are held for pods that were admitted and have not started",
  CLAIM_CHANGED:
    "the pod's claim has other addresses than are asked for now, and a pod is using it; or it has a MAC address that the runtime does not say",
  CLAIM_RELEASING: "the claim's addresses are being given back",
  CLAIM_MISSING: "the pod asked for a fixed address and has no claim",
  CLAIM_BUSY: "another pod has the claim, and its sandbox may still be running",
  CLAIM_REFUSED:
    "the API server refuses to store a claim for the pod: because of a ResourceQuota or an admission policy, or because its namespace does not exist or is being deleted",
  OBJECT_INVALID: "the object has the wrong kind or form",
} as const;

/** A fault is nobody's expected answer: something is broken, missing or overloaded. Code -> what it means. */
export const FAULTS = {
  STORE_UNAVAILABLE: "the store cannot be reached or does not answer",
  STORE_FULL: "the disk under the store is full",
  STORE_READ_ONLY: "the store cannot be written",
  WRITE_REFUSED:
    "the API server refuses to store the record: because of a quota or a policy, or because its namespace does not exist",
  STATE_CORRUPT: "a stored record cannot be decoded, or the file itself is damaged",
  JOURNAL_MISMATCH:
    "the node's agent was started with another journal than the one that was used since the node booted, or with an older copy of it",
  REVISION_CONFLICT: "a record was changed by others each time it was about to be written",
  NOT_READY: "the process has not loaded its records yet",
  TIMED_OUT: "something took too long",
  CONFIG_INVALID: "a flag, an environment variable or a configuration file is not valid",
  CERTIFICATE_INVALID: "a certificate or key cannot be read or used",
  INTERNAL: "a defect of Berth itself",
} as const;

export type RefusalCode = keyof typeof REFUSALS;
export type FaultCode = keyof typeof FAULTS;
/** Names of fields are fixed, so that logs, metrics and `-o json` agree. */
type Details = Readonly<Record<string, string>>;

/**
 * Why something was not done, for the person reading `kubectl describe`: lower case, no final stop; pool,
 * address, holder, and what to do next.
 */
export interface Refusal {
  readonly kind: "refused";
  readonly code: RefusalCode;
  readonly message: string;
  readonly details: Details;
  /** Absent: its words are its own. */
  readonly parts?: Parts;
}

/** Refusals whose words a refusal repeats: who may not read one of them must not read it there either. */
interface Parts {
  readonly refusals: readonly Refusal[];
  readonly joined: (refusals: readonly Refusal[]) => string;
}

export function refuse(code: RefusalCode, message: string, details: Details = {}): Refusal {
  return { kind: "refused", code, message, details };
}

/** A refusal that repeats others. */
export function refuseJoined(code: RefusalCode, parts: Parts, details: Details = {}): Refusal {
  return { ...refuse(code, parts.joined(parts.refusals), details), parts };
}

/** The refusal with other words for its parts; the same one if they are the same. */
export function rejoined(refusal: Refusal, parts: readonly Refusal[]): Refusal {
  const { code, details, parts: before } = refusal;
  if (before === undefined || before.refusals.every((part, at) => part === parts[at])) return refusal;
  return refuseJoined(code, { ...before, refusals: parts }, details);
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

const STORE_FAULTS: ReadonlySet<FaultCode> = new Set([
  "STORE_UNAVAILABLE",
  "STORE_FULL",
  "STORE_READ_ONLY",
  "TIMED_OUT",
  "NOT_READY",
]);

/** The fault is the store's own, not one record's: what comes next would meet it too. */
export function isStoreFault(error: unknown): boolean {
  return error instanceof BerthError && STORE_FAULTS.has(error.code);
}

/** What is stored cannot be read: that is there, and says nothing of what else is. */
export function isCorrupt(error: unknown): error is BerthError {
  return error instanceof BerthError && error.code === "STATE_CORRUPT";
}

/** The words of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Closes a switch over a union: the compiler proves it unreachable, and if it lied, it throws. */
export function assertNever(value: never): never {
  throw new BerthError("INTERNAL", `unexpected value ${JSON.stringify(value)}`);
}
