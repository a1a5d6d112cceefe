// SPDX-License-Identifier: Apache-2.0
import {
  BerthError,
  type FaultCode,
  messageOf,
  type Refusal,
  type RefusalCode,
} from "../../allocator/base/errors.ts";

/**
 * Error codes of an answer (SPEC section 5, "Error"). 3 is missing on purpose: it tells the runtime that no DEL is
 * needed. 8 and 999 are the reference library's; from 100 on they are ours.
 */
export const CNI_CODES = {
  INCOMPATIBLE_VERSION: 1,
  INVALID_ENVIRONMENT: 4,
  IO_FAILURE: 5,
  DECODING_FAILURE: 6,
  INVALID_CONFIG: 7,
  INVALID_NETNS: 8,
  TRY_AGAIN_LATER: 11,
  NOT_AVAILABLE: 50,
  LIMITED_CONNECTIVITY: 51,
  SANDBOX_DELETED: 150,
  NOT_ATTACHED: 151,
  ATTACHMENT_DIFFERS: 152,
  INTERNAL: 999,
} as const;
export type CniCode = keyof typeof CNI_CODES;

/** Why a call failed, as the runtime shows it in the Pod's events: `msg`, then `; details` if there are any. */
export interface CniError {
  readonly kind: "cni-error";
  readonly code: number;
  readonly msg: string;
  readonly details: string;
}

/** Codes of ours are documented by their refusal; 11 where trying again may help. */
const REFUSAL_CODES: Readonly<Record<RefusalCode, number>> = {
  REQUEST_INVALID: 100,
  ADDRESS_OUTSIDE: 101,
  ADDRESS_EXCLUDED: 102,
  ADDRESS_TAKEN: 103,
  POOL_UNKNOWN: 104,
  POOL_DISABLED: 105,
  POOL_FORBIDDEN: 106,
  POOL_EXHAUSTED: 107,
  POOL_INVALID: 108,
  POOL_OVERLAPS: 109,
  POOL_IN_USE: 110,
  FAMILY_UNAVAILABLE: 111,
  LIST_TOO_SHORT: 112,
  SET_EXHAUSTED: 113,
  LIMIT_REACHED: 114,
  CLAIM_CHANGED: 115,
  CLAIM_MISSING: 116,
  OBJECT_INVALID: 117,
  CLAIM_REFUSED: 118,
  NODE_MISMATCH: 119,
  BLOCKS_EXHAUSTED: CNI_CODES.TRY_AGAIN_LATER,
  CLAIM_RELEASING: CNI_CODES.TRY_AGAIN_LATER,
  CLAIM_BUSY: CNI_CODES.TRY_AGAIN_LATER,
};

const FAULT_CODES: Readonly<Record<FaultCode, number>> = {
  NOT_READY: CNI_CODES.TRY_AGAIN_LATER,
  TIMED_OUT: CNI_CODES.TRY_AGAIN_LATER,
  STORE_UNAVAILABLE: CNI_CODES.TRY_AGAIN_LATER,
  REVISION_CONFLICT: CNI_CODES.TRY_AGAIN_LATER,
  STORE_FULL: CNI_CODES.IO_FAILURE,
  STORE_READ_ONLY: CNI_CODES.IO_FAILURE,
  WRITE_REFUSED: CNI_CODES.IO_FAILURE,
  STATE_CORRUPT: CNI_CODES.IO_FAILURE,
  JOURNAL_MISMATCH: CNI_CODES.NOT_AVAILABLE,
  CONFIG_INVALID: CNI_CODES.INTERNAL,
  CERTIFICATE_INVALID: CNI_CODES.INTERNAL,
  INTERNAL: CNI_CODES.INTERNAL,
};

export function cniError(code: CniCode, msg: string, details = ""): CniError {
  return { kind: "cni-error", code: CNI_CODES[code], msg, details };
}

export function isCniError(value: unknown): value is CniError {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "cni-error";
}

/** The refusal's words; `details` carries its code. */
export function fromRefusal(refusal: Refusal): CniError {
  const code = REFUSAL_CODES[refusal.code];
  return { kind: "cni-error", code, msg: refusal.message, details: refusal.code };
}

/** Anything thrown: BerthError by its code, the rest as 999. `msg` is never empty. */
export function fromThrown(error: unknown): CniError {
  const known = error instanceof BerthError ? error.code : "INTERNAL";
  return {
    kind: "cni-error",
    code: FAULT_CODES[known],
    msg: messageOf(error) || "something failed without a reason",
    details: known,
  };
}

/** What goes to stdout. `cniVersion` is required by the SPEC, though the reference leaves it out. */
export function errorAnswer(cniVersion: string, error: CniError): string {
  const { code, msg, details } = error;
  return `${JSON.stringify({ cniVersion, code, msg, ...(details === "" ? {} : { details }) }, null, 4)}\n`;
}
