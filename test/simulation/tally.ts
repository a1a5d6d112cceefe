// SPDX-License-Identifier: Apache-2.0

/** `done`: it really did something. `refused`: somebody said no. `idle`: there was nothing to do it with. */
export type Outcome = "done" | "refused" | "idle";

/** A tally as another process can be told it. */
export interface Counts {
  readonly runs: number;
  readonly steps: number;
  readonly events: number;
  readonly kinds: readonly (readonly [string, Readonly<Record<Outcome, number>>])[];
}

/** How often each kind of thing was tried, and what came of it: a simulation that does nothing finds nothing. */
export class Tally {
  runs = 0;
  steps = 0;
  events = 0;
  readonly #counts = new Map<string, Record<Outcome, number>>(); // kind of thing -> outcomes

  note(kind: string, outcome: Outcome): void {
    const counts = this.#counts.get(kind) ?? { done: 0, refused: 0, idle: 0 };
    this.#counts.set(kind, counts);
    counts[outcome]++;
  }

  counts(): Counts {
    const { runs, steps, events } = this;
    return { runs, steps, events, kinds: [...this.#counts] };
  }

  add({ runs, steps, events, kinds }: Counts): void {
    this.runs += runs;
    this.steps += steps;
    this.events += events;
    for (const [kind, more] of kinds) {
      const { done, refused, idle } = this.of(kind);
      const sum = { done: done + more.done, refused: refused + more.refused, idle: idle + more.idle };
      this.#counts.set(kind, sum);
    }
  }

  /** Of all that were tried, those that did something: 0 to 1. */
  share(kind: string): number {
    const { done, refused, idle } = this.of(kind);
    return done / Math.max(1, done + refused + idle);
  }

  of(kind: string): Readonly<Record<Outcome, number>> {
    return this.#counts.get(kind) ?? { done: 0, refused: 0, idle: 0 };
  }

  /** Lines for people, the commonest first. */
  lines(): string[] {
    const rows = [...this.#counts].toSorted(([, a], [, b]) => total(b) - total(a));
    return rows.map(([kind, counts]) => {
      const share = `${Math.round(100 * this.share(kind))} %`;
      const { done, refused, idle } = counts;
      return `${kind.padEnd(22)} ${String(done).padStart(8)} done ${share.padStart(5)}, ${refused} refused, ${idle} idle`;
    });
  }
}

function total({ done, refused, idle }: Readonly<Record<Outcome, number>>): number {
  return done + refused + idle;
}
