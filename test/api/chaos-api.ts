// SPDX-License-Identifier: Apache-2.0
import { setTimeout as pause } from "node:timers/promises";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import {
  CLAIMS,
  collectionPath,
  itemPath,
  type ObjectName,
  PODS,
  type Resource,
} from "../../kube/api/resource.ts";
import { alreadyExists, statusOf } from "../../kube/api/status.ts";
import { eventually } from "../support/eventually.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import type { ChaosTally } from "./chaos-tally.ts";
import type { Json } from "./replica-objects.ts";

/** A pod as it was admitted. */
export interface ChaosPod {
  readonly name: string;
  readonly uid: string;
  /** What `berth.dev/addresses` says; empty where Berth had no part in it. */
  readonly assigned: readonly string[];
}

/** Longer than any outage of a run, and than the time that a lease or a hold takes to run out. */
export const PATIENCE_MS = 150_000;
const AGAIN_MS = 200;

/**
 * What people, the StatefulSet controller, the scheduler and kubelet ask of an API server that may be away at any
 * moment: they ask again. An answer that did not come may have been carried out.
 */
export class ChaosApi {
  readonly connection: Connection;
  readonly #tally: ChaosTally;
  readonly #unanswered: string[] = [];

  constructor(connection: Connection, tally: ChaosTally) {
    this.connection = connection;
    this.#tally = tally;
  }

  /** What was asked again, and what had been said instead of an answer. */
  get unanswered(): readonly string[] {
    return this.#unanswered;
  }

  /** The pod, or the words in which it was refused. A pod of its name that is there already is the one that was asked for. */
  async makePod(pod: Json): Promise<ChaosPod | string> {
    for (;;) {
      const answer = await this.#ask({ method: "POST", path: collectionPath(PODS, NAMESPACE), body: pod });
      if (answer.status === 201) return this.#made(answer.body as PodObject);
      if (!alreadyExists(answer)) return statusOf(answer.body, answer.status).message;
      const { name = "" } = pod["metadata"] as { name?: string };
      const there = await this.#ask({ method: "GET", path: podPath(name) });
      if (there.status === 200) return this.#made(there.body as PodObject);
    }
  }

  async schedule({ name, uid }: ChaosPod, node: string): Promise<void> {
    const target = { apiVersion: "v1", kind: "Node", name: node };
    const body = { apiVersion: "v1", kind: "Binding", metadata: { name, uid }, target };
    for (;;) {
      const answer = await this.#ask({ method: "POST", path: `${podPath(name)}/binding`, body });
      if (answer.status === 201) return;
      // a conflict: with an etcd that is on its way out, or with what was done when an answer was lost
      const { metadata, spec } = (await this.get(PODS, { namespace: NAMESPACE, name })) as PodObject;
      if (metadata.uid !== uid) throw new Error(`pod ${name} is another one: ${JSON.stringify(answer.body)}`);
      if (spec.nodeName === node) return;
      await pause(AGAIN_MS);
    }
  }

  /** Waits until the claim of its name is bound to the pod. */
  async untilBound({ name, uid }: ChaosPod): Promise<void> {
    await eventually(
      `claim ${name} is bound`,
      async () => {
        const claim = await this.get(CLAIMS, { namespace: NAMESPACE, name });
        const { binding } = (claim as { spec: { binding?: { podUID: string } } }).spec;
        return binding?.podUID === uid ? true : undefined;
      },
      30_000,
    );
  }

  /** With `graceSeconds` 0 it is gone afterwards; else kubelet is to end it. */
  async deletePod({ name, uid }: ChaosPod, gracePeriodSeconds: number): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds, preconditions: { uid } };
    await this.#deleted(podPath(name), body, uid);
  }

  /** Makes it, or leaves what is there; gives its UID. */
  async make(resource: Resource, place: ObjectName, body: Json): Promise<string> {
    const apiVersion = resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
    const object = { ...body, apiVersion, kind: resource.kind, metadata: place };
    for (;;) {
      const answer = await this.#ask({
        method: "POST",
        path: collectionPath(resource, place.namespace),
        body: object,
      });
      const made = answer.status === 201 ? answer.body : undefined;
      const item = made ?? (alreadyExists(answer) ? await this.get(resource, place) : undefined);
      if (item !== undefined) return (item as PodObject).metadata.uid;
      this.#tally.note("refused");
      await pause(AGAIN_MS);
    }
  }

  /** By a merge patch. */
  async change(resource: Resource, place: ObjectName, body: Json): Promise<void> {
    const contentType = "application/merge-patch+json";
    const call = { method: "PATCH", path: itemPath(resource, place), contentType, body } as const;
    const { status, body: said } = await this.#ask(call);
    if (status !== 200) throw new Error(`${place.name} cannot be changed: ${JSON.stringify(said)}`);
  }

  async get(resource: Resource, place: ObjectName): Promise<unknown> {
    const { status, body } = await this.#ask({ method: "GET", path: itemPath(resource, place) });
    return status === 200 ? body : undefined;
  }

  async delete(resource: Resource, place: ObjectName): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: "Background" };
    await this.#deleted(itemPath(resource, place), body);
  }

  async #deleted(path: string, body: Json, uid?: string): Promise<void> {
    for (;;) {
      const { status, body: said } = await this.#ask({ method: "DELETE", path, body });
      if ([200, 202, 404].includes(status)) return;
      // a conflict: what has the name now is another one, or etcd is on its way out
      const there = status === 409 ? await this.#ask({ method: "GET", path }) : undefined;
      if (there?.status === 404 || (there && uid !== undefined && uidOf(there) !== uid)) return;
      this.#tally.note("refused");
      if (![403, 409, 422].includes(status)) throw new Error(`DELETE ${path}: ${JSON.stringify(said)}`);
      await pause(AGAIN_MS);
    }
  }

  #made({ metadata }: PodObject): ChaosPod {
    const assigned = metadata.annotations?.["berth.dev/addresses"]?.split(",") ?? [];
    this.#tally.note("pod made");
    return { name: metadata.name, uid: metadata.uid, assigned };
  }

  async #ask(call: Call): Promise<Answer> {
    let last: unknown;
    for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await pause(AGAIN_MS)) {
      try {
        const answer = await this.connection.call(call);
        if (!isPassing(answer)) return answer;
        last = answer.body;
      } catch (error) {
        last = error;
      }
      this.#tally.note("asked again");
      const said = last instanceof Error ? String(last) : JSON.stringify(last);
      this.#unanswered.push(`${call.method} ${call.path}: ${said}`);
    }
    throw new Error(`${call.method} ${call.path} was not answered: ${JSON.stringify(last)}`, { cause: last });
  }
}

interface PodObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: { readonly nodeName?: string };
}

function uidOf({ body }: Answer): string {
  return (body as PodObject).metadata.uid;
}

function podPath(name: string): string {
  return itemPath(PODS, { namespace: NAMESPACE, name });
}

/** An API server that has just started knows neither its own kinds nor its webhooks, and says so in these ways. */
function isPassing({ status, body }: Answer): boolean {
  if (status >= 500 || status === 429 || status === 401) return true;
  if (status === 404) return typeof body === "string";
  return status === 403 && statusOf(body, status).message.includes("not yet ready");
}
