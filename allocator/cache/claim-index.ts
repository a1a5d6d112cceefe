// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";

type Seen = Stored<"claim">;

/**
 * Claims by their key, and by what happens in a cluster: a pod, a workload or a node changes, and theirs are to be looked
 * at. There may be 100,000, most of them of the pod of their own name.
 */
export class ClaimIndex {
  readonly #claims = new Map<string, Seen>(); // namespace/name -> claim
  readonly #others = new Map<string, Seen | Map<string, Seen>>(); // what they belong to -> the one, or claim key -> claim

  /** By namespace/name. */
  get claims(): ReadonlyMap<string, Seen> {
    return this.#claims;
  }

  /** Whatever is there under its key must have left. */
  enter(stored: Seen): void {
    this.#claims.set(stored.key, stored);
    for (const value of valuesOf(stored)) {
      const there = this.#others.get(value);
      if (there === undefined) this.#others.set(value, stored);
      else if (there instanceof Map) there.set(stored.key, stored);
      else this.#others.set(value, new Map([there, stored].map((claim) => [claim.key, claim])));
    }
  }

  leave(stored: Seen): void {
    this.#claims.delete(stored.key);
    for (const value of valuesOf(stored)) {
      const there = this.#others.get(value);
      if (there instanceof Map && there.delete(stored.key) && there.size > 0) continue;
      this.#others.delete(value);
    }
  }

  /** Those bound to, or held for, a pod of that name, and the one that is called like it. */
  ofPod(namespace: string, name: string): readonly Seen[] {
    const bound = this.#by(podValue(namespace, name));
    const own = this.#claims.get(`${namespace}/${name}`);
    return own === undefined ? bound : [own, ...bound];
  }

  ofWorkload(kind: string, namespace: string, name: string): readonly Seen[] {
    return this.#by(workloadValue(kind, namespace, name));
  }

  onNode(node: string): readonly Seen[] {
    return this.#by(nodeValue(node));
  }

  #by(value: string): readonly Seen[] {
    const there = this.#others.get(value);
    if (there === undefined) return [];
    return there instanceof Map ? [...there.values()] : [there];
  }
}

/** What else it is found by than its key. */
function* valuesOf({ record }: Seen): Generator<string, void, void> {
  const { namespace, name, identity, binding }: Claim = record;
  yield workloadValue(identity.kind, namespace, identity.name);
  if (binding === undefined) return;
  if (binding.podName !== "" && binding.podName !== name) yield podValue(namespace, binding.podName);
  if (binding.node !== "") yield nodeValue(binding.node);
}

const podValue = (namespace: string, name: string) => `pod ${namespace}/${name}`;
const workloadValue = (kind: string, namespace: string, name: string) => `${kind} ${namespace}/${name}`;
const nodeValue = (node: string) => `node ${node}`;
