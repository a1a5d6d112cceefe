// SPDX-License-Identifier: Apache-2.0
import { BerthError, type FaultCode } from "../../base/errors.ts";
import { UNUSABLE_CERTIFICATES } from "./access.ts";
import { PREFIX } from "./entry.ts";
import { GRPC, GrpcError, OverlongMessage } from "./grpc-frames.ts";

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
type Remedy =
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

/** The answer was too long: to be asked for in parts. etcd says so itself beyond what gRPC can carry. */
export function isOverlong(error: unknown): boolean {
  if (error instanceof BerthError) return isOverlong(error.cause);
  if (error instanceof OverlongMessage) return true;
  return (
    error instanceof GrpcError &&
    error.code === GRPC.resourceExhausted &&
    /larger than max/.test(error.message)
  );
}

/** The history that was asked for is not kept any more. */
export function isCompacted(error: unknown): boolean {
  return error instanceof GrpcError && error.code === GRPC.outOfRange && /compacted/.test(error.message);
}

/** What etcd said, as a fault in words that say what to do. `place` names the endpoints. */
export function faultOf(error: GrpcError, place: string): BerthError {
  const { code, message } = error;
  const fault = (kind: FaultCode, words: string) =>
    new BerthError(kind, `etcd at ${place} ${words}`, { details: { path: place }, cause: error });
  if (/database space exceeded/.test(message)) {
    return fault(
      "STORE_FULL",
      "takes no more writes: its quota is used up (alarm NOSPACE); compact and defragment it, then: etcdctl alarm disarm",
    );
  }
  if (code === GRPC.permissionDenied) {
    return fault(
      "CONFIG_INVALID",
      `does not let this user do that (${message}); grant its role readwrite on all keys below ${PREFIX}/`,
    );
  }
  if (code === GRPC.unauthenticated || code === GRPC.invalidArgument || code === GRPC.failedPrecondition) {
    return fault("CONFIG_INVALID", refusalOf(message));
  }
  if (isOverlong(error)) {
    return fault(
      "STATE_CORRUPT",
      `has a value that is longer than any record (${message}); delete its key: berthctl check names it`,
    );
  }
  if (code === GRPC.dataLoss) return fault("STATE_CORRUPT", `is damaged (${message})`);
  if (code === GRPC.deadlineExceeded) return fault("TIMED_OUT", `did not answer in time (${message})`);
  if (code === GRPC.unavailable || OPEN.has(code)) return fault("STORE_UNAVAILABLE", silenceOf(message));
  return fault("STORE_UNAVAILABLE", `does not do it (${message})`);
}

function refusalOf(message: string): string {
  if (/user name is empty/.test(message)) {
    return `asks for a user and a password (${message}); give them with --etcd-user and --etcd-password-file`;
  }
  if (/invalid user ID or password/.test(message)) {
    return `does not know this user and password (${message}); check --etcd-user and the file of the password`;
  }
  return `refuses who asks, or what is asked (${message})`;
}

function silenceOf(message: string): string {
  // of this host's own files, which are named
  if (message.startsWith(UNUSABLE_CERTIFICATES)) return `was not asked: ${message}`;
  // a connection that was closed may have been closed for anything
  if (/certificate|alert/i.test(message) && !/connection was closed/.test(message)) {
    return `is not spoken to (${message}); check its certificate, the authority, and this host's own certificate`;
  }
  return `cannot be reached, or has no leader (${message})`;
}
