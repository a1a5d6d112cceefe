// SPDX-License-Identifier: Apache-2.0
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type {
  AdmissionRequest,
  AdmissionResponse,
  Operation,
  Route,
} from "../../webhook/review/admission-review.ts";

import { annotationsOf, applied, deniedAs, type Json, review } from "../support/objects.ts";
import { NAMESPACE, ON_INTERFACES, SPREAD_KEYS } from "./cast.ts";
import type { Cluster } from "./cluster.ts";
import type { InvariantCheck } from "./invariant-check.ts";
import type { Schedule } from "./schedule.ts";
import type { Tally } from "./tally.ts";
import type { Webhook } from "./webhook.ts";

/** The API server waits no longer for a webhook. */
const WEBHOOK_TIMEOUT_MS = 10_000;

const ROUTES: Readonly<Record<string, Route>> = {
  StatefulSet: "/validate/workloads",
  Deployment: "/validate/workloads",
  IPClaim: "/validate/claims",
  Pod: "/validate/pods",
};

interface ClientsOptions {
  readonly schedule: Schedule;
  readonly cluster: Cluster;
  readonly tally: Tally;
  readonly invariants: InvariantCheck;
  readonly webhook: (n: number) => Webhook | undefined;
  /** Some requests are for two interfaces. */
  readonly interfaces: boolean;
}

/** Where a pod is to run, and which replica of the webhook is asked. */
export interface Placing {
  readonly node: string;
  readonly webhook: number;
  readonly runtimeClassName?: string;
}

/** The API server between people and controllers on one side and the webhooks on the other. */
export class Clients {
  readonly #options: ClientsOptions;
  /** UIDs of pods whose clients were told of a failure: some of them are there all the same. */
  readonly brokenOff = new Set<string>();
  /** UIDs of pods that were told of a claim which a person has begun to give back since. */
  readonly givenBack = new Set<string>();
  #uids = 0;
  #generated = 0;

  constructor(options: ClientsOptions) {
    this.#options = options;
  }

  uid(): string {
    return `u${++this.#uids}`;
  }

  /**
   * A pod is reviewed twice; the second review may be answered by another replica. Gives the words of the refusal of the
   * first one.
   */
  async createPod(
    plain: Json,
    { node: nodeName, webhook, ...runtime }: Placing,
  ): Promise<string | undefined> {
    const { cluster, tally } = this.#options;
    const json = this.#spread(plain);
    const first = await this.#ask(webhook, "/mutate/pods", review(json));
    if (!this.#tell("admit pod", first)) return outcomeOf(first);
    const meta = json["metadata"] as Json;
    const name = String(meta["name"] ?? `${meta["generateName"]}${++this.#generated}`);
    const patched = first === undefined ? json : applied(json, first);
    this.#noteAdmitted(patched);
    const metadata: Json = { ...(patched["metadata"] as Json), name, uid: this.uid() };
    const pod = { ...patched, metadata, spec: { ...(patched["spec"] as Json), nodeName, ...runtime } };
    if (cluster.pod(String(metadata["namespace"]), name) !== undefined) {
      tally.note("create pod", "refused");
      tally.note("failed create", "done");
      return undefined;
    }
    const second = await this.#ask(webhook >> 1, "/validate/pods", review(pod));
    if (!this.#tell("create pod", second)) this.brokenOff.add(String(metadata["uid"]));
    return undefined;
  }

  /** A kubelet's report of how the pod ended. */
  async reportPhase({ json }: KubeObject, phase: string, webhook: number): Promise<void> {
    const generation = json.at("metadata").count("generation", 1) + 1;
    const metadata = { ...json.at("metadata").value, generation };
    const ended = { ...json.value, metadata, status: { phase } };
    const over = { oldObject: json.value, subResource: "status" };
    this.#tell("end pod", await this.#ask(webhook, "/validate/pods", review(ended, "UPDATE", over)));
  }

  /** A review, and nothing after it. */
  async forge(json: Json, webhook: number): Promise<void> {
    this.#tell("forge review", await this.#ask(webhook, "/mutate/pods", review(this.#spread(json))));
  }

  #spread(json: Json): Json {
    if (!this.#options.interfaces) return json;
    return JSON.parse(
      JSON.stringify(json, (key, value) =>
        SPREAD_KEYS.includes(key) ? (ON_INTERFACES.get(value) ?? value) : value,
      ),
    );
  }

  #noteAdmitted(pod: Json): void {
    const { [ASSIGNED_CLAIM]: claim, [ASSIGNED_ADDRESSES]: addresses } = annotationsOf(pod);
    if (claim === undefined || addresses === undefined) return;
    this.#options.invariants.admitted(`${NAMESPACE}/${claim}`, addresses.split(","));
  }

  /** Creates or changes a workload or a claim. */
  async apply(json: Json, current: KubeObject | undefined, webhook: number): Promise<void> {
    const metadata = json["metadata"] as Json;
    const generation = current === undefined ? 1 : current.json.at("metadata").count("generation", 1) + 1;
    const object = {
      ...this.#spread(json),
      metadata: { ...metadata, uid: current?.metadata.uid ?? this.uid(), generation },
    };
    const old = current?.json.value ?? null;
    const operation: Operation = current === undefined ? "CREATE" : "UPDATE";
    const kind = String(json["kind"]);
    const request = review(object, operation, { oldObject: old });
    this.#tell(`apply ${kind}`, await this.#ask(webhook, routeOf(kind), request));
  }

  async withdraw(object: Json, webhook: number): Promise<void> {
    const kind = String(object["kind"]);
    const { name } = object["metadata"] as { readonly name: string };
    // it may be done whatever the answer is
    for (const { metadata } of this.#options.cluster.all("Pod"))
      if (kind === "IPClaim" && metadata.annotations[ASSIGNED_CLAIM] === name)
        this.givenBack.add(metadata.uid);
    this.#tell(`delete ${kind}`, await this.#ask(webhook, routeOf(kind), review(object, "DELETE")));
  }

  async #ask(n: number, route: Route, request: AdmissionRequest): Promise<AdmissionResponse | undefined> {
    const { schedule, webhook } = this.#options;
    const asked = webhook(n);
    if (asked === undefined) return undefined;
    const begun = schedule.time;
    schedule.tell(
      "client",
      () => `${route} ${request.operation} ${wordsFor(request)} at ${asked.process.post.name}`,
    );
    const response = await asked.review(route, request);
    if (schedule.time - begun > WEBHOOK_TIMEOUT_MS) return undefined;
    schedule.tell("client", () => `answer about ${wordsFor(request)}`, outcomeOf(response));
    return response;
  }

  #tell(kind: string, response: AdmissionResponse | undefined): boolean {
    const done = response?.allowed === true;
    this.#options.tally.note(kind, done ? "done" : "refused");
    return done;
  }
}

function routeOf(kind: string): Route {
  const route = ROUTES[kind];
  if (route === undefined) throw new RangeError(`nobody reviews a ${kind}`);
  return route;
}

function wordsFor({ kind, name, object, oldObject }: AdmissionRequest): string {
  const metadata = ((object ?? oldObject) as Json)["metadata"] as Json;
  return `${kind.kind} ${name || metadata["generateName"]} ${JSON.stringify(metadata["annotations"] ?? {})}`;
}

function outcomeOf(response: AdmissionResponse | undefined): string {
  if (response === undefined) return "none";
  return response.allowed ? "allowed" : deniedAs(response);
}
