// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../base/errors.ts";
import { GRPC, GrpcError } from "./grpc-frames.ts";

const CANCELLED = 1;
const UNKNOWN = 2;

/** Codes after which a call that was sent may have been carried out. etcd answers so when it lost its leader, too. */
const OPEN: ReadonlySet<number> = new Set([
  CANCELLED,
  UNKNOWN,
  GRPC.deadlineExceeded,
  GRPC.internal,
  GRPC.unavailable,
]);

/** What can be done about a failed call. */
export type Remedy =
  /** Nothing: it is refused, and has not been done. */
  | "none"
  /** Ask again, at another member: it has not been done. */
  | "again"
  /** Find out whether it was done. */
  | "judge"
  /** Prove again who asks: it has not been done. */
  | "authenticate";

export function remedyFor({ code, message, sent }: GrpcError): Remedy {
  if (code === GRPC.unauthenticated) return "authenticate";
  if (code === GRPC.invalidArgument && /auth store is old|user name is empty/.test(message)) {
    return "authenticate";
  }
  if (code === GRPC.resourceExhausted && /too many requests/.test(message)) return "again";
  if (OPEN.has(code)) return sent ? "judge" : "again";
  return "none";
}

/** The history that was asked for is not kept any more. */
export function isCompacted(error: unknown): boolean {
  return error instanceof GrpcError && error.code === GRPC.outOfRange && /compacted/.test(error.message);
}

/** What etcd said, as a fault in words. `place` names the endpoints. */
export function faultOf(error: GrpcError, place: string): BerthError {
  const { code, message } = error;
  const fault = (kind: ConstructorParameters<typeof BerthError>[0], words: string) =>
    new BerthError(kind, words, { details: { path: place }, cause: error });
  if (/database space exceeded/.test(message)) {
    return fault(
      "STORE_FULL",
      `etcd at ${place} takes no more writes: its quota is used up (alarm NOSPACE); compact and defragment it, then: etcdctl alarm disarm`,
    );
  }
  if (code === GRPC.permissionDenied) {
    return fault("CONFIG_INVALID", `etcd at ${place} does not let this user do that (${message})`);
  }
  if (code === GRPC.unauthenticated || code === GRPC.invalidArgument || code === GRPC.failedPrecondition) {
    return fault("CONFIG_INVALID", `etcd at ${place} refuses who asks, or what is asked (${message})`);
  }
  if (code === GRPC.dataLoss) return fault("STATE_CORRUPT", `etcd at ${place} is damaged (${message})`);
  if (code === GRPC.deadlineExceeded) {
    return fault("TIMED_OUT", `etcd at ${place} did not answer in time (${message})`);
  }
  if (code === GRPC.unavailable || OPEN.has(code)) {
    return fault("STORE_UNAVAILABLE", `etcd at ${place} cannot be reached, or has no leader (${message})`);
  }
  return fault("STORE_UNAVAILABLE", `etcd at ${place} does not do it (${message})`);
}
