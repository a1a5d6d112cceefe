// SPDX-License-Identifier: Apache-2.0
import { Agent, request as httpRequest } from "node:http";
import { BerthError } from "../../allocator/base/errors.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { type AdmissionRequest, API_VERSION, type Route } from "../../webhook/review/admission-review.ts";
import type { PatchOp } from "../../webhook/review/json-patch.ts";
import { inEtcd, noStack, notYours } from "../backend/stack-file.ts";
import type { CommandContext } from "../terminal/command.ts";
import { waitForStack } from "./stack-wait.ts";

/** The longest that an API server waits for a webhook (timeoutSeconds). */
const TIMEOUT_MS = 30_000;
/** Patches and warnings; the API server itself reads 3 MiB at most of anything. */
const LONGEST_ANSWER = 3 * 1024 * 1024;

/** What is asked; the rest of a review is the same for all. */
export type ReviewInput = Pick<
  AdmissionRequest,
  "kind" | "resource" | "name" | "namespace" | "operation" | "object" | "oldObject" | "dryRun"
>;

/** `denied` is empty when the object is let through. */
export interface Answer {
  readonly denied: string;
  /** Of the refusal or fault; empty when it is let through. */
  readonly code: string;
  /** It is denied because it could not be judged or stored: a status of 500 or above. */
  readonly isFault: boolean;
  readonly patch: readonly PatchOp[];
  readonly warnings: readonly string[];
}

/** The webhook of a running stack, asked as an API server asks. */
export interface Webhook {
  /** Throws NOT_READY when no stack runs, TIMED_OUT, STORE_UNAVAILABLE, or INTERNAL for an answer that is none. */
  review(route: Route, question: ReviewInput): Promise<Answer>;
}

/** Opens the webhook of the data folder's stack for `work`. Throws NOT_READY when none serves within `waitMs`. */
export async function withWebhook<T>(
  context: CommandContext & { readonly waitMs: number },
  work: (webhook: Webhook) => Promise<T>,
): Promise<T> {
  const stack = await waitForStack(context, context.waitMs);
  if (stack.etcd !== undefined) throw inEtcd(context.dataDir, stack.etcd);
  if (stack.reviews === "") throw olderStack(context.dataDir);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    return await work({
      review: async (route, question) => {
        const uid = context.io.uuid();
        const body = reviewBody(uid, context.user, question);
        const text = await post({ path: stack.reviews, agent, dataDir: context.dataDir }, route, body);
        return readAnswer(text, uid);
      },
    });
  } finally {
    agent.destroy();
  }
}

/** One that has no socket for reviews. */
function olderStack(dataDir: string): BerthError {
  const words = `the berth stack on ${dataDir} is of an older version; restart it with: berthctl up --data ${dataDir}`;
  return new BerthError("NOT_READY", words);
}

/** An AdmissionReview as the API server sends it (k8s.io/api/admission/v1). */
function reviewBody(uid: string, user: string, question: ReviewInput): string {
  const { kind, resource, operation } = question;
  const options = { CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions", CONNECT: "" };
  return JSON.stringify({
    apiVersion: API_VERSION,
    kind: "AdmissionReview",
    request: {
      uid,
      requestKind: kind,
      requestResource: resource,
      ...question,
      userInfo: { username: user, groups: ["system:authenticated"] },
      options: { apiVersion: "meta.k8s.io/v1", kind: options[operation] },
    },
  });
}

interface Line {
  /** Of the stack's socket. */
  readonly path: string;
  readonly agent: Agent;
  readonly dataDir: string;
}

function post(line: Line, route: Route, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
    const to = { socketPath: line.path, path: route, agent: line.agent };
    const call = httpRequest({ ...to, method: "POST", headers, timeout: TIMEOUT_MS }, (response) => {
      const parts: Buffer[] = [];
      let length = 0;
      response.on("data", (part: Buffer) => {
        length += part.length;
        if (length > LONGEST_ANSWER) call.destroy(new Error("the answer is too long"));
        else parts.push(part);
      });
      response.on("end", () => resolve(Buffer.concat(parts).toString("utf8")));
      response.on("error", (error) => reject(faultOf(error, line)));
    });
    call.on("timeout", () => {
      const words = `the webhook at ${line.path} did not answer within ${TIMEOUT_MS / 1000} s; look at the stack's log`;
      call.destroy(new BerthError("TIMED_OUT", words));
    });
    call.on("error", (error) => reject(faultOf(error, line)));
    call.end(body);
  });
}

/** A stack that was killed leaves its files, and nobody listens at the socket. */
function faultOf(error: Error, { path, dataDir }: Line): BerthError {
  if (error instanceof BerthError) return error;
  const code = "code" in error ? error.code : undefined;
  if (code === "ECONNREFUSED" || code === "ENOENT") return noStack(dataDir, error);
  if (code === "EACCES") return notYours(path, error);
  const words = `the webhook at ${path} broke off (${error.message}); look at the stack's log and try again`;
  return new BerthError("STORE_UNAVAILABLE", words, { cause: error });
}

/** Reads what the API server would read of an AdmissionReview; throws INTERNAL for what it would not accept. */
export function readAnswer(text: string, uid: string): Answer {
  let review: Fields;
  try {
    review = new Fields(JSON.parse(text));
  } catch (error) {
    throw noAnswer("it is not JSON", error);
  }
  const response = review.at("response");
  if (review.text("apiVersion") !== API_VERSION || review.text("kind") !== "AdmissionReview")
    throw noAnswer("it is no AdmissionReview");
  if (response.text("uid") !== uid) throw noAnswer("it has another uid");
  const denied = response.at("status").text("message");
  return {
    denied: response.flag("allowed") ? "" : denied === "" ? "refused without a reason" : denied,
    code: new Fields(response.at("status").at("details").list("causes")[0]).text("reason"),
    isFault: !response.flag("allowed") && response.at("status").count("code", 0) >= 500,
    patch: response.text("patch") === "" ? [] : readPatch(response.text("patch")),
    warnings: response.list("warnings").filter((warning) => typeof warning === "string"),
  };
}

function readPatch(encoded: string): PatchOp[] {
  let ops: unknown;
  try {
    ops = JSON.parse(Buffer.from(encoded, "base64").toString("utf8"));
  } catch (error) {
    throw noAnswer("its patch is not JSON", error);
  }
  if (!Array.isArray(ops)) throw noAnswer("its patch is no list");
  return ops.map((entry) => {
    const op = new Fields(entry);
    const [verb, path] = [op.text("op"), op.text("path")];
    if ((verb === "add" || verb === "replace") && path.startsWith("/"))
      return { op: verb, path, value: op.get("value") };
    throw noAnswer("its patch has an operation that the webhook does not make");
  });
}

function noAnswer(why: string, cause?: unknown): BerthError {
  return new BerthError("INTERNAL", `the webhook's answer cannot be used: ${why}`, { cause });
}
