// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "./claim.ts";
import type { Stored } from "./store/store.ts";

/** Finds claims by what happens in a cluster: a pod, a workload or a node changes, and theirs are to be looked at. */
export class ClaimIndex {
  readonly #claims = new Map<string, Map<string, Stored<"claim">>>(); // what they belong to -> claim key -> claim

  enter(stored: Stored<"claim">): void {
    for (const value of valuesOf(stored.record)) {
      const claims = this.#claims.get(value) ?? new Map<string, Stored<"claim">>();
      this.#claims.set(value, claims.set(stored.key, stored));
    }
  }

  leave({ key, record }: Stored<"claim">): void {
    for (const value of valuesOf(record)) {
      const claims = this.#claims.get(value);
      if (claims?.delete(key) && claims.size === 0) this.#claims.delete(value);
    }
  }

  /** Those lent or promised to a pod of that name, and the one that is called like it. */
  ofPod(namespace: string, name: string): readonly Stored<"claim">[] {
    return this.#by(podValue(namespace, name));
  }

  ofWorkload(kind: string, namespace: string, name: string): readonly Stored<"claim">[] {
    return this.#by(workloadValue(kind, namespace, name));
  }

  onNode(node: string): readonly Stored<"claim">[] {
    return this.#by(nodeValue(node));
  }

  #by(value: string): readonly Stored<"claim">[] {
    return [...(this.#claims.get(value)?.values() ?? [])];
  }
}

function valuesOf({ namespace, name, identity, binding }: Claim): ReadonlySet<string> {
  const values = new Set([podValue(namespace, name), workloadValue(identity.kind, namespace, identity.name)]);
  if (binding !== undefined && binding.podName !== "") values.add(podValue(namespace, binding.podName));
  if (binding !== undefined && binding.node !== "") values.add(nodeValue(binding.node));
  return values;
}

const podValue = (namespace: string, name: string) => `pod ${namespace}/${name}`;
const workloadValue = (kind: string, namespace: string, name: string) => `${kind} ${namespace}/${name}`;
const nodeValue = (node: string) => `node ${node}`;
