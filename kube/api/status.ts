// SPDX-License-Identifier: Apache-2.0
import { BerthError, type FaultCode } from "../../allocator/base/errors.ts";
import type { Answer } from "./connection.ts";

/** What of a meta/v1 Status is looked at; texts that are absent are empty. */
export interface Status {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  /** Name and plural of the object that it is about. */
  readonly name: string;
  readonly plural: string;
  readonly causes: readonly { readonly reason: string; readonly field: string }[];
}

/** Reads a Status; whatever is none gives one with the code alone and its text as the message. */
export function statusOf(body: unknown, code: number): Status {
  const status = fieldsOf(body);
  const details = fieldsOf(status["details"]);
  const causes = Array.isArray(details["causes"]) ? details["causes"].map(fieldsOf) : [];
  return {
    code: typeof status["code"] === "number" ? status["code"] : code,
    reason: text(status["reason"]),
    message: typeof body === "string" ? body.trim().slice(0, 200) : text(status["message"]),
    name: text(details["name"]),
    plural: text(details["kind"]),
    causes: causes.map((cause) => ({ reason: text(cause["reason"]), field: text(cause["field"]) })),
  };
}

/** The object of that name is not there. A path that the API server does not serve is 404 too, and is a fault. */
export function isAbsent(answer: Answer, name: string): boolean {
  if (answer.status !== 404) return false;
  const status = statusOf(answer.body, 404);
  return status.reason === "NotFound" && status.name === name;
}

/** Created by somebody else before. */
export function alreadyExists(answer: Answer): boolean {
  return answer.status === 409 && statusOf(answer.body, 409).reason === "AlreadyExists";
}

/** Written from a revision, or for an incarnation, that is not the current one. */
export function isConflict(answer: Answer): boolean {
  if (answer.status === 409) return true;
  const { causes } = statusOf(answer.body, answer.status);
  return answer.status === 422 && causes.length > 0 && causes.every(({ field }) => field === "metadata.uid");
}

/** The revision is too old to go on from (410), or newer than anything the API server has, after a restore of etcd. */
export function needsRelist(status: Status): boolean {
  if (status.code === 410 || status.reason === "Expired" || status.reason === "Gone") return true;
  return status.causes.some(({ reason }) => reason === "ResourceVersionTooLarge");
}

/** The fault in an answer that is none of those that the caller expects. `what`: "create ipclaims shop/mysql-0". */
export function toBerthError(answer: Answer, what: string): BerthError {
  const status = statusOf(answer.body, answer.status);
  const code = codeOf(answer.status, status);
  const advice =
    code === "WRITE_REFUSED" ? adviceOn(status) : code === "STORE_READ_ONLY" ? LOOK_AT_ROLES : "";
  const said = status.message === "" ? "" : `: ${status.message}`;
  const words = `the API server refuses to ${what} with ${answer.status}${said}${advice}`;
  return new BerthError(code, words, {
    details: { status: String(answer.status), reason: status.reason },
  });
}

const LOOK_AT_ROLES = "; check roles";

function codeOf(http: number, status: Status): FaultCode {
  if (status.message.includes("database space exceeded")) return "STORE_FULL";
  if (http === 504 || http === 408 || status.reason === "Timeout") return "TIMED_OUT";
  if (isForbidden(http, status)) return "WRITE_REFUSED";
  if (http === 403) return "STORE_READ_ONLY";
  if (http === 409) return "REVISION_CONFLICT"; // of a quota that others count at the same moment
  if ([401, 404, 410, 429].includes(http) || http >= 500) return "STORE_UNAVAILABLE";
  return "INTERNAL";
}

/** What an authorizer says of an account that lacks a role: the same for every record of the kind. */
const LACKS_ROLE = /User "[^"]*" cannot \w+ /;
/** Admission plugins answer with 403, policies with 422 too, webhooks with whatever they like. */
const DENIED = /is forbidden: |denied the request/;

/** Nothing was written, and the reason is in the object or its namespace: other records may pass. */
function isForbidden(http: number, status: Status): boolean {
  if (http === 404) return isMissingNamespace(status);
  const denied = DENIED.test(status.message) && !LACKS_ROLE.test(status.message);
  return denied && [400, 403, 409, 422].includes(http);
}

function isMissingNamespace({ reason, plural }: Status): boolean {
  return reason === "NotFound" && plural === "namespaces";
}

/** A policy or webhook has its own words. */
function adviceOn(status: Status): string {
  if (isMissingNamespace(status)) return "; create the namespace first";
  if (status.causes.some(({ reason }) => reason === "NamespaceTerminating"))
    return "; create it again when its namespace is there again";
  return status.message.includes("exceeded quota: ")
    ? "; release claims of the namespace that nobody needs, or raise the quota"
    : "";
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
