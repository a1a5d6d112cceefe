// SPDX-License-Identifier: Apache-2.0

/** How often what was done. */
export class ChaosTally {
  readonly #counts = new Map<string, number>(); // what -> how often

  note(what: string): void {
    this.#counts.set(what, this.of(what) + 1);
  }

  of(what: string): number {
    return this.#counts.get(what) ?? 0;
  }

  /** `force 12, pod made 80`, in the order of the alphabet. */
  line(): string {
    return [...this.#counts]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([what, count]) => `${what} ${count}`)
      .join(", ");
  }

  /** What was done less often than it must be for the run to say anything. */
  tooLittle(least: Readonly<Record<string, number>>): string[] {
    return Object.entries(least)
      .filter(([what, count]) => this.of(what) < count)
      .map(([what, count]) => `${what}: ${this.of(what)} instead of ${count} at least`);
  }
}
