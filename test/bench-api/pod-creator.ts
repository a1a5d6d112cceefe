// SPDX-License-Identifier: Apache-2.0
import type { Connection } from "../../kube/api/connection.ts";
import { collectionPath, itemPath, PODS } from "../../kube/api/resource.ts";
import { bigPod } from "../bench/big-pod.ts";
import { pod } from "../support/objects.ts";

/** A pod as the API server answered with it. */
export interface CreatedPod {
  readonly name: string;
  readonly uid: string;
  /** What `berth.dev/addresses` says; empty where Berth had no part in it. */
  readonly addresses: string;
}

/** The API server did not create the pod, in these words: its webhook did not answer in time, as a rule. */
export class PodRefused extends Error {
  override readonly name = "PodRefused";
}

/** Longer than the API server waits for a webhook: what takes long is measured, not broken off. */
const PATIENCE_MS = 60_000;
/** How many deletions are under way at once. */
const REMOVING = 16;

/** Makes pods of a namespace through the API server, as large as pods are, and deletes them. */
export class PodCreator {
  readonly #connection: Connection;
  readonly #namespace: string;

  constructor(connection: Connection, namespace: string) {
    this.#connection = connection;
    this.#namespace = namespace;
  }

  /** On the node, if one is given, as if it were scheduled at once. Throws PodRefused. */
  async make(
    name: string,
    annotations: Readonly<Record<string, string>>,
    node?: string,
  ): Promise<CreatedPod> {
    const { metadata, spec } = bigPod(pod(name, { annotations })) as { metadata: object; spec: object };
    const answer = await this.#connection.call({
      method: "POST",
      path: collectionPath(PODS, this.#namespace),
      timeoutMs: PATIENCE_MS,
      body: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { ...metadata, namespace: this.#namespace },
        spec: { ...spec, ...(node === undefined ? {} : { nodeName: node }) },
      },
    });
    if (answer.status !== 201) throw new PodRefused(`pod ${name}: ${JSON.stringify(answer.body)}`);
    const made = answer.body as { metadata: { uid: string; annotations?: Record<string, string> } };
    const addresses = made.metadata.annotations?.["berth.dev/addresses"] ?? "";
    return { name, uid: made.metadata.uid, addresses };
  }

  /** At once, as `kubectl delete --force --grace-period=0`. */
  async remove(names: readonly string[]): Promise<void> {
    const left = names.values();
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
    const work = async () => {
      for (const name of left) {
        const path = itemPath(PODS, { namespace: this.#namespace, name });
        const { status } = await this.#connection.call({
          ...{ method: "DELETE", path, body, timeoutMs: PATIENCE_MS },
        });
        if (status !== 200 && status !== 404) throw new Error(`pod ${name} cannot be deleted: ${status}`);
      }
    };
    await Promise.all(Array.from({ length: REMOVING }, work));
  }
}
