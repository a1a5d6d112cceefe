// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { Agent, request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import type { Operation as PatchOperation } from "rfc6902";
import type { Endpoint } from "./stack-folder.ts";

/** An object as YAML has it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

export interface Metadata {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly object[];
}

export interface Question {
  readonly route: string;
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  readonly subResource?: "status";
  readonly object: Manifest | null;
  readonly oldObject: Manifest | null;
  readonly dryRun: boolean;
}

/** What the API server learns from an AdmissionReview. */
export interface Verdict {
  readonly allowed: boolean;
  /** Empty when allowed. */
  readonly message: string;
  /** Code of the refusal; empty when allowed. */
  readonly reason: string;
  readonly warnings: readonly string[];
  readonly patch: readonly PatchOperation[];
}

interface ReviewAnswer {
  readonly apiVersion: string;
  readonly kind: string;
  readonly response: {
    readonly uid: string;
    readonly allowed: boolean;
    readonly patchType?: string;
    readonly patch?: string;
    readonly warnings?: readonly string[];
    readonly status?: {
      readonly message: string;
      readonly details?: { readonly causes: readonly { readonly reason: string }[] };
    };
  };
}

/** Group and plural of the kinds that reviews are about. */
const RESOURCES: Readonly<Record<string, string>> = {
  Namespace: "namespaces",
  Pod: "pods",
  StatefulSet: "statefulsets",
  Deployment: "deployments",
  IPPool: "ippools",
  IPClaim: "ipclaims",
};
const CLUSTER_SCOPED = ["Namespace", "IPPool"];

/** At nine seconds each. */
const ATTEMPTS = 20;

/** Sends reviews as the API server does: TLS checked against the authority, connections kept open. */
export class ReviewClient {
  readonly #url: string;
  readonly #agent: Agent;

  constructor({ url, ...tls }: Endpoint, connections = 8) {
    this.#url = url;
    this.#agent = new Agent({ ...tls, keepAlive: true, maxSockets: connections });
  }

  /**
   * Throws when the answer is one that the API server would not take for a decision. What Berth could not decide in a
   * review's time on a slow machine is asked again, as its words say and as controllers do.
   */
  async ask(question: Question): Promise<Verdict> {
    for (let asked = 1; ; asked++) {
      const verdict = await this.#askOnce(question);
      if (verdict.reason !== "TIMED_OUT" || asked === ATTEMPTS) return verdict;
    }
  }

  async #askOnce(question: Question): Promise<Verdict> {
    const review = reviewOf(question);
    const { status, body } = await this.#post(question.route, JSON.stringify(review));
    const answer: ReviewAnswer = JSON.parse(body);
    const { response } = answer;
    const understood =
      status === 200 &&
      answer.apiVersion === "admission.k8s.io/v1" &&
      answer.kind === "AdmissionReview" &&
      response.uid === review.request.uid &&
      (response.patch === undefined || response.patchType === "JSONPatch");
    if (!understood) throw new Error(`the API server would take this for a failed call: ${status} ${body}`);
    return {
      allowed: response.allowed,
      message: response.status?.message ?? "",
      reason: response.status?.details?.causes[0]?.reason ?? "",
      warnings: response.warnings ?? [],
      patch: response.patch === undefined ? [] : JSON.parse(Buffer.from(response.patch, "base64").toString()),
    };
  }

  #post(route: string, body: string): Promise<{ status: number; body: string }> {
    return new Promise((resolve, reject) => {
      const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
      const url = new URL(`${route}?timeout=10s`, this.#url);
      const call = httpsRequest(url, { method: "POST", agent: this.#agent, headers }, (response) => {
        text(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject);
      });
      call.on("error", reject);
      call.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function reviewOf({ operation, subResource, object, oldObject, dryRun }: Question) {
  const about = object ?? oldObject;
  if (about === null) throw new Error("a review is about an object");
  const { kind, apiVersion, metadata } = about;
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const resource = { group, version, resource: RESOURCES[kind] ?? "" };
  const name = metadata.name ?? "";
  const gvk = { group, version, kind };
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: randomUUID(),
      kind: gvk,
      resource,
      requestKind: gvk,
      requestResource: resource,
      ...(subResource === undefined ? {} : { subResource }),
      ...(name === "" ? {} : { name }),
      ...namespaceOf(kind, metadata),
      operation,
      userInfo: {
        username: "system:serviceaccount:kube-system:statefulset-controller",
        uid: randomUUID(),
        groups: ["system:serviceaccounts", "system:authenticated"],
      },
      object,
      oldObject,
      dryRun,
      options: {
        kind: `${operation[0]}${operation.slice(1).toLowerCase()}Options`,
        apiVersion: "meta.k8s.io/v1",
      },
    },
  };
}

/** Other cluster-scoped objects have none; the review of a Namespace carries its own name. */
function namespaceOf(kind: string, { name, namespace }: Metadata): { namespace?: string } {
  if (kind === "Namespace") return { namespace: name ?? "" };
  return CLUSTER_SCOPED.includes(kind) ? {} : { namespace: namespace ?? "default" };
}
