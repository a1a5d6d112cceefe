// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { checkSelector, type LabelSelector, matches } from "../../allocator/pool/label-selector.ts";
import type { Objects } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { isPart } from "./installation.ts";

/** Where the API server sends a pod that is created. */
const PATH = "/mutate/pods";

interface Selectors {
  readonly namespaces: LabelSelector | undefined;
  readonly objects: LabelSelector | undefined;
}

/** Whether the API server asks Berth's webhook about a pod, by the selectors of its configuration. */
export class SentForReview {
  readonly #world: Pick<Objects, "namespace">;
  /** One of them takes a pod in; none: it is not known which. */
  readonly #webhooks: readonly Selectors[];
  /** name -> labels; undefined: this user may not read it, or it is gone */
  readonly #namespaces = new Map<string, Labels | undefined>();

  private constructor(world: Pick<Objects, "namespace">, webhooks: readonly Selectors[]) {
    this.#world = world;
    this.#webhooks = webhooks;
  }

  static async read(world: Pick<Objects, "namespace" | "objects">): Promise<SentForReview> {
    const all = (await ifAllowed(() => world.objects("MutatingWebhookConfiguration"))) ?? [];
    const webhooks = all.filter((one) => isPart(one, "webhook")).flatMap(({ json }) => json.list("webhooks"));
    return new SentForReview(
      world,
      webhooks
        .map((one) => new Fields(one))
        .filter(isForPods)
        .map(selectorsOf),
    );
  }

  /** What is not known may be sent. */
  async maySend({ metadata: { namespace, labels } }: KubeObject): Promise<boolean> {
    if (this.#webhooks.length === 0) return true;
    const its = await this.#labelsOf(namespace);
    return this.#webhooks.some(
      ({ namespaces, objects }) =>
        matches(objects, labels) && (its === undefined || matches(namespaces, its)),
    );
  }

  async #labelsOf(name: string): Promise<Labels | undefined> {
    if (!this.#namespaces.has(name)) {
      const found = await ifAllowed(() => this.#world.namespace(name));
      // the API server sets it, and selectors rest on it
      const named = found && { ...found.labels, "kubernetes.io/metadata.name": name };
      this.#namespaces.set(name, named);
    }
    return this.#namespaces.get(name);
  }
}

function isForPods(webhook: Fields): boolean {
  return webhook.at("clientConfig").at("service").text("path") === PATH;
}

function selectorsOf(webhook: Fields): Selectors {
  const selector = (field: string) => {
    const value = webhook.get(field);
    return checkSelector(value, field) === undefined ? (value as LabelSelector) : undefined;
  };
  return { namespaces: selector("namespaceSelector"), objects: selector("objectSelector") };
}
