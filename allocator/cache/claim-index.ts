// SPDX-License-Identifier: Apache-2.0
import type { Claim, ClaimPhase } from "../model/claim.ts";
import { phaseOf } from "../model/phase.ts";
import type { Stored } from "../store/store.ts";
import { KeptRecords } from "./kept-records.ts";
import { ClaimPacking } from "./packed-records.ts";

type Seen = Stored<"claim">;

/**
 * Claims by their key, and by what happens in a cluster: a pod, a workload or a node changes, and theirs are to be looked
 * at. There may be 100,000, most of them of the pod of their own name.
 */
export class ClaimIndex {
  readonly claims = new KeptRecords(new ClaimPacking()); // by namespace/name
  readonly phases = new Map<ClaimPhase, number>(); // phase -> how many are in it
  readonly #others = new Map<string, string | Set<string>>(); // what they belong to -> claim key, or several

  /** Whatever is there under its key is no more. */
  enter(stored: Seen): void {
    const before = this.claims.get(stored.key);
    this.claims.set(stored);
    this.#count(before, -1);
    this.#count(stored, 1);
    const values = new Set(valuesOf(stored));
    if (before !== undefined) this.#forget(before, values);
    for (const value of values) this.#find(value, stored.key);
  }

  leave(stored: Seen): void {
    this.claims.delete(stored.key);
    this.#count(stored, -1);
    this.#forget(stored);
  }

  #count(stored: Seen | undefined, by: number): void {
    if (stored === undefined) return;
    const phase = phaseOf(stored.record);
    const count = (this.phases.get(phase) ?? 0) + by;
    if (count === 0) this.phases.delete(phase);
    else this.phases.set(phase, count);
  }

  /** It is found by none of these any more, unless `but` has it. */
  #forget(stored: Seen, but?: ReadonlySet<string>): void {
    for (const value of valuesOf(stored)) {
      if (but?.has(value)) continue;
      const there = this.#others.get(value);
      if (there instanceof Set && there.delete(stored.key) && there.size > 0) continue;
      this.#others.delete(value);
    }
  }

  #find(value: string, key: string): void {
    const there = this.#others.get(value);
    if (there === undefined) this.#others.set(value, key);
    else if (there instanceof Set) there.add(key);
    else if (there !== key) this.#others.set(value, new Set([there, key]));
  }

  /** Those bound to, or held for, a pod of that name, and the one that is called like it. */
  ofPod(namespace: string, name: string): readonly Seen[] {
    const bound = this.#by(podValue(namespace, name));
    const own = this.claims.get(`${namespace}/${name}`);
    return own === undefined ? bound : [own, ...bound];
  }

  ofWorkload(kind: string, namespace: string, name: string): readonly Seen[] {
    return this.#by(workloadValue(kind, namespace, name));
  }

  onNode(node: string): readonly Seen[] {
    return this.#by(nodeValue(node));
  }

  #by(value: string): readonly Seen[] {
    const there = this.#others.get(value) ?? [];
    const keys = typeof there === "string" ? [there] : [...there];
    return keys.flatMap((key) => this.claims.get(key) ?? []);
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
