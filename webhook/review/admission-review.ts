// SPDX-License-Identifier: Apache-2.0
// AdmissionReview, admission.k8s.io/v1 (k8s.io/api/admission/v1/types.go): the part of it that Berth uses.
import { type FaultCode, isRefusal, type Refusal, type RefusalCode } from "../../allocator/base/errors.ts";
import { sayMacs } from "../../allocator/ip/mac.ts";
import type { PatchOp } from "./json-patch.ts";
import { fitLine, fitWarnings } from "./warnings.ts";

export const API_VERSION = "admission.k8s.io/v1";
const KIND = "AdmissionReview";
/** Bytes. Somebody is to read it, and a name that is quoted in it may be of any length. */
const LONGEST_MESSAGE = 2_048;
/** The API server's are UUIDs, 36 characters; more than this is not echoed. */
const LONGEST_UID = 128;

/** No name of Kubernetes is longer (RFC 1123 subdomain). */
const LONGEST_NAME = 253;

const OPERATIONS = ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** Who makes the request: for a pod of a workload the controller's service account, not the person. */
export interface UserInfo {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

/** What is asked. Texts that the API server left out are empty; `object` and `oldObject` are null when absent. */
export interface AdmissionRequest {
  /** Of this one call: neither an idempotency key nor the object's uid. */
  readonly uid: string;
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subResource: string;
  /** Empty for a pod from generateName. */
  readonly name: string;
  readonly namespace: string;
  readonly operation: Operation;
  readonly userInfo: UserInfo;
  readonly object: unknown;
  readonly oldObject: unknown;
  /** Write nothing. */
  readonly dryRun: boolean;
}

/** meta/v1 Status, as far as the API server passes it on to whoever made the request. */
interface ReviewStatus {
  readonly status: "Failure";
  /** HTTP status of the whole request. */
  readonly code: number;
  readonly reason: string;
  /** The API server writes `admission webhook "..." denied the request: ` before it. */
  readonly message: string;
  readonly details?: { readonly causes: readonly { readonly reason: string; readonly message: string }[] };
}

export interface AdmissionResponse {
  /** Must equal the request's, or the API server takes the call for failed. */
  readonly uid: string;
  readonly allowed: boolean;
  readonly patchType?: "JSONPatch";
  /** Base64 of the JSON of the operations. */
  readonly patch?: string;
  readonly warnings?: readonly string[];
  readonly status?: ReviewStatus;
}

/** One admission decision. `signal` aborts when nobody waits for the answer any more. */
export type Handler = (request: AdmissionRequest, signal: AbortSignal) => Promise<AdmissionResponse>;

/** `uid` is empty unless there is one to echo; `apiVersion` is the one to answer in. */
type ParsedReview =
  | { readonly request: AdmissionRequest }
  | { readonly invalid: string; readonly uid: string; readonly apiVersion: string };

/** Reads a decoded body; never throws, whatever JSON it is. */
export function parseReview(body: unknown): ParsedReview {
  const review = objectOf(body);
  const request = objectOf(review["request"]);
  const uid = uidOf(request["uid"]);
  const invalid = (what: string) => ({
    invalid: `the body is no ${API_VERSION} ${KIND}: ${what}`,
    uid,
    apiVersion: versionOf(review["apiVersion"]),
  });
  if (review["apiVersion"] !== API_VERSION) return invalid("apiVersion is another");
  if (review["kind"] !== KIND) return invalid("kind is another");
  if (uid === "") return invalid("request.uid is missing, empty or too long");
  const operation = OPERATIONS.find((known) => known === request["operation"]);
  if (operation === undefined) return invalid("request.operation is unknown");
  const kind = objectOf(request["kind"]);
  const resource = objectOf(request["resource"]);
  const long = ["name", "namespace"].find((key) => textOf(request[key]).length > LONGEST_NAME);
  if (long !== undefined) return invalid(`request.${long} is too long`);
  if (textOf(kind["kind"]) === "") return invalid("request.kind is missing");
  if (textOf(resource["resource"]) === "") return invalid("request.resource is missing");
  return {
    request: {
      uid,
      operation,
      kind: { group: textOf(kind["group"]), version: textOf(kind["version"]), kind: textOf(kind["kind"]) },
      resource: {
        group: textOf(resource["group"]),
        version: textOf(resource["version"]),
        resource: textOf(resource["resource"]),
      },
      subResource: textOf(request["subResource"]),
      name: textOf(request["name"]),
      namespace: textOf(request["namespace"]),
      userInfo: userOf(request["userInfo"]),
      object: request["object"] ?? null,
      oldObject: request["oldObject"] ?? null,
      dryRun: request["dryRun"] === true,
    },
  };
}

export interface AdmissionReview {
  readonly apiVersion: string;
  readonly kind: typeof KIND;
  readonly response: AdmissionResponse;
}

/** What the API server is sent. An answer of another apiVersion than its question it takes for a failed call. */
export function reviewOf(response: AdmissionResponse, apiVersion: string = API_VERSION): AdmissionReview {
  return { apiVersion, kind: KIND, response };
}

/** Lets the object through as it is. */
export function allowed(uid: string, warnings: readonly string[] = []): AdmissionResponse {
  return { uid, allowed: true, ...warningsOf(warnings) };
}

/** Lets the object through changed; the operations must have been proven (`prove`). None: as `allowed`. */
export function patched(
  uid: string,
  ops: readonly PatchOp[],
  warnings: readonly string[] = [],
): AdmissionResponse {
  if (ops.length === 0) return allowed(uid, warnings);
  const patch = Buffer.from(JSON.stringify(ops)).toString("base64");
  return { uid, allowed: true, patchType: "JSONPatch", patch, ...warningsOf(warnings) };
}

/**
 * Refuses, with the words of a `Refusal`. 403 Forbidden for all of them, as admission plugins answer: clients
 * take 409 for something to try again at once (`kubectl apply`), or, with reason AlreadyExists, for success.
 */
export function denied(
  uid: string,
  refusal: { readonly code: RefusalCode; readonly message: string },
  httpCode = 403,
): AdmissionResponse {
  const response = failure(uid, httpCode, refusal.message, refusal.code);
  REFUSED.set(response, refusal);
  return response;
}

/** What a response was made of, for who may not read all of it. */
const REFUSED = new WeakMap<AdmissionResponse, object>();

/** The refusal that a response was made of; undefined when there was none. */
export function refusalOf(response: AdmissionResponse): Refusal | undefined {
  const refusal = REFUSED.get(response);
  return isRefusal(refusal) ? refusal : undefined;
}

/** Not decided. The object is refused all the same: a pod must not start with another address (invariant 7). */
export function errored(
  uid: string,
  message: string,
  options: { readonly httpCode?: number; readonly code?: FaultCode } = {},
): AdmissionResponse {
  return failure(uid, options.httpCode ?? 500, message, options.code);
}

/** Code of the refusal or fault; empty when the response carries none. */
export function codeOf(response: AdmissionResponse): string {
  return response.status?.details?.causes[0]?.reason ?? "";
}

/** Reasons of meta/v1 that clients know, by HTTP status. */
const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  403: "Forbidden",
  408: "Timeout",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  422: "Invalid",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

function failure(uid: string, httpCode: number, words: string, code: string | undefined): AdmissionResponse {
  const message = fitLine(sayMacs(words), LONGEST_MESSAGE);
  const details = code === undefined ? {} : { details: { causes: [{ reason: code, message }] } };
  const reason = REASONS[httpCode] ?? "";
  return { uid, allowed: false, status: { status: "Failure", code: httpCode, reason, message, ...details } };
}

function warningsOf(warnings: readonly string[]): { readonly warnings?: readonly string[] } {
  const presentable = fitWarnings(warnings.map(sayMacs));
  return presentable.length === 0 ? {} : { warnings: presentable };
}

function userOf(value: unknown): UserInfo {
  const user = objectOf(value);
  const groups: readonly unknown[] = Array.isArray(user["groups"]) ? user["groups"] : [];
  return {
    username: textOf(user["username"]),
    uid: textOf(user["uid"]),
    groups: groups.filter((group) => typeof group === "string"),
  };
}

/** v1beta1 is echoed, so that whoever configured it reads why it is refused. */
function versionOf(value: unknown): string {
  const version = textOf(value);
  return /^admission\.k8s\.io\/v[0-9a-z]{1,16}$/.test(version) ? version : API_VERSION;
}

function uidOf(value: unknown): string {
  return typeof value === "string" && value.length <= LONGEST_UID ? value : "";
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  return value as Readonly<Record<string, unknown>>;
}

export const ROUTES = [
  "/mutate/pods",
  "/mutate/pools",
  "/validate/pods",
  "/validate/workloads",
  "/validate/pools",
  "/validate/claims",
  "/validate/namespaces",
] as const;

export type Route = (typeof ROUTES)[number];
