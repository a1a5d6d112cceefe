// SPDX-License-Identifier: Apache-2.0

/** Which pods wait for which claims, so that exactly those are woken. */
export class WaitIndex {
  readonly #claims = new Map<string, readonly string[]>(); // pod key -> claims that it waits for
  readonly #pods = new Map<string, Set<string>>(); // claim key -> pods that wait for it

  /** From here on the pod waits for these claims and no others. */
  wait(pod: string, claims: readonly string[]): void {
    this.forget(pod);
    if (claims.length === 0) return;
    this.#claims.set(pod, claims);
    for (const claim of claims) this.#pods.set(claim, (this.#pods.get(claim) ?? new Set()).add(pod));
  }

  forget(pod: string): void {
    for (const claim of this.#claims.get(pod) ?? []) {
      const pods = this.#pods.get(claim);
      if (pods?.delete(pod) && pods.size === 0) this.#pods.delete(claim);
    }
    this.#claims.delete(pod);
  }

  /** Each pod that waits for some claim. */
  all(): readonly string[] {
    return [...this.#claims.keys()];
  }

  of(claim: string): readonly string[] {
    return [...(this.#pods.get(claim) ?? [])];
  }
}
