// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { applyPatch } from "rfc6902";
import { type LogFields, noopLogger, noopMetrics } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  codeOf,
  parseReview,
  ROUTES,
  type Route,
} from "../../webhook/review/admission-review.ts";
import { type DeadlineHandler, withDeadline } from "../../webhook/review/deadline.ts";
import { decode } from "../../webhook/review/json.ts";

import {
  claimObject,
  deploymentPod,
  type Json,
  namespaceObject,
  pod,
  poolObject,
  review,
  statefulPod,
  workload,
} from "../support/objects.ts";
import type { World } from "../support/world.ts";

export interface Base {
  readonly route: Route;
  readonly review: Json;
}

function base(route: Route, object: Json, over: Partial<AdmissionRequest> = {}): Base {
  const request = review(object, over.operation ?? "CREATE", over);
  return { route, review: { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request } };
}

const PIN = { "berth.dev/ips": "10.20.0.70" };
const POOL_SPEC = {
  ranges: [
    {
      cidr: "10.99.0.0/24",
      from: "10.99.0.5",
      to: "10.99.0.9",
      gateway: "10.99.0.7",
      exclude: ["10.99.0.6"],
    },
  ],
  reserved: ["10.99.0.5"],
  routes: [{ dst: "0.0.0.0/0", gw: "10.99.0.7" }],
  dns: { nameservers: ["10.99.0.2"], search: ["a"] },
  nodeSelector: {
    matchLabels: { zone: "a" },
    matchExpressions: [{ key: "b", operator: "In", values: ["c"] }],
  },
  namespaceSelector: {},
  priority: 1,
  limits: { perNamespace: 5 },
  authorization: "Namespace",
  cooldown: "30s",
  disabled: false,
};
const CLAIM_SPEC = {
  identity: { kind: "Pod", apiVersion: "v1", name: "later" },
  request: { addresses: ["10.20.0.80"] },
  retention: { whenDeleted: "Release", whenScaled: "Retain", ttl: "5m" },
};
const SET = workload("StatefulSet", "mysql", {
  replicas: 2,
  annotations: { "berth.dev/pools": "db" },
  spec: { ordinals: { start: 1 } },
});

/** Real reviews of every route, as an API server sends them. */
export const BASES: readonly Base[] = [
  base("/mutate/pods", pod("licence", { annotations: PIN })),
  base(
    "/mutate/pods",
    statefulPod("mysql", 0, { annotations: { "berth.dev/pools": "db", "berth.dev/ttl": "5m" } }),
  ),
  base("/mutate/pods", deploymentPod("web", { annotations: { "berth.dev/ips": "10.20.0.90;10.20.0.91" } })),
  base("/validate/pods", pod("licence", { uid: "u", annotations: { ...PIN, "berth.dev/claim": "licence" } })),
  base("/validate/pods", pod("licence", { uid: "u", annotations: PIN }), { operation: "DELETE" }),
  base("/validate/workloads", SET),
  base("/validate/workloads", SET, { operation: "UPDATE", oldObject: SET }),
  base("/validate/workloads", SET, { operation: "DELETE" }),
  base("/validate/workloads", workload("Deployment", "web", { replicas: 1, annotations: PIN })),
  base("/validate/pools", poolObject("edge", POOL_SPEC)),
  base("/validate/pools", poolObject("edge", POOL_SPEC), { operation: "DELETE" }),
  base("/validate/claims", claimObject("later", CLAIM_SPEC)),
  base("/validate/claims", claimObject("later", CLAIM_SPEC), { operation: "DELETE" }),
  base("/validate/namespaces", namespaceObject("shop", { "berth.dev/pools": "db" })),
];

/** The webhook of a world, without HTTP. */
export class Webhook {
  readonly #handlers: ReadonlyMap<string, DeadlineHandler>;
  /** What was thrown, for the message of a test that fails. */
  #thrown: unknown;

  constructor(world: World) {
    const remember = (_: string, fields?: LogFields) => {
      this.#thrown = fields?.["error"];
    };
    const log = { ...noopLogger, error: remember };
    const handlers = createHandlers(world.admission);
    const options = { log, metrics: noopMetrics, clock: createClock() };
    this.#handlers = new Map(
      ROUTES.map((route) => [route, withDeadline(handlers[route], { ...options, route })]),
    );
  }

  /** Sends a body and holds the answer to what an API server understands; undefined when it is no review. */
  async send(route: Route, body: string): Promise<AdmissionResponse | undefined> {
    const decoded = decode(Buffer.from(body));
    if (decoded.kind === "unreadable") {
      assert.ok(decoded.why.length > 0 && decoded.why.length < 200);
      return undefined;
    }
    const parsed = parseReview(decoded.value);
    if (!("request" in parsed)) {
      assert.ok(parsed.invalid.length > 0 && parsed.invalid.length < 200 && parsed.uid.length <= 128);
      return undefined;
    }
    const handle = this.#handlers.get(route) ?? assert.fail(route);
    const response = await handle(parsed.request, new AbortController().signal);
    if (codeOf(response) === "INTERNAL") throw new Error("it made Berth stumble", { cause: this.#thrown });
    assertDecision(parsed.request, response);
    return response;
  }
}

/** A decision that the API server can use, whatever it was asked. */
export function assertDecision(request: AdmissionRequest, response: AdmissionResponse): void {
  assert.equal(response.uid, request.uid);
  assert.equal(typeof response.allowed, "boolean");
  for (const warning of response.warnings ?? []) assertWords(warning);
  if (response.allowed) assertPatch(request.object, response);
  else assertRefusal(response);
}

function assertRefusal({ status, patch }: AdmissionResponse): void {
  assert.equal(patch, undefined);
  assert.equal(status?.status, "Failure");
  assertWords(status?.message ?? "");
  assert.match(status?.details?.causes[0]?.reason ?? "", /^[A-Z_]+$/);
}

/** Something to read in a terminal, of a length that somebody reads. */
function assertWords(words: string): void {
  assert.ok(words.length > 0 && words.length < 4_000, `${words.length} characters: ${words.slice(0, 200)}`);
  assert.doesNotMatch(words, /\p{Cc}/u);
}

/** Applied with another library than the one that made it. */
function assertPatch(object: unknown, { patch, patchType }: AdmissionResponse): void {
  assert.equal(patchType, patch === undefined ? undefined : "JSONPatch");
  if (patch === undefined) return;
  const ops = JSON.parse(Buffer.from(patch, "base64").toString("utf8"));
  const problems = applyPatch(structuredClone(object), ops).filter((problem) => problem !== null);
  assert.deepEqual(problems, []);
}
