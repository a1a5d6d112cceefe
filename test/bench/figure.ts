// SPDX-License-Identifier: Apache-2.0
import type { Table } from "./table.ts";

/** What the design wants of a figure (`docs/performance.md` says why), and what was measured. */
export interface Goal {
  readonly what: string;
  /** In words: `at most 0.25`. */
  readonly reach: string;
  readonly measured: string;
  /** Undefined: it could not be measured here. */
  readonly met: boolean | undefined;
}

export interface Plot {
  /** Of the file, without its ending. */
  readonly name: string;
  /** What it shows, for people who do not see it. */
  readonly about: string;
  readonly svg: string;
}

/** One figure of the bench: a question that was measured and its answer. */
export interface Figure {
  readonly name: string;
  readonly title: string;
  readonly tables: readonly Table[];
  readonly plots: readonly Plot[];
  readonly goals: readonly Goal[];
  /** Everything that was measured, for programs. */
  readonly data: unknown;
}

/** A goal that a value must not be above. */
export function atMost(what: string, limit: number, value: number, format: (value: number) => string): Goal {
  return { what, reach: `at most ${format(limit)}`, measured: format(value), met: value <= limit };
}

/** A goal that a value must not be below. */
export function atLeast(what: string, limit: number, value: number, format: (value: number) => string): Goal {
  return { what, reach: `at least ${format(limit)}`, measured: format(value), met: value >= limit };
}

/** Met, missed, or not measured: the last cell of the table of goals. */
export function verdictOf({ met }: Goal): string {
  if (met === undefined) return "not measured";
  return met ? "met" : "MISSED";
}

export function goalTable(title: string, goals: readonly Goal[]): Table {
  const rows = goals.map((goal) => [goal.what, goal.reach, goal.measured, verdictOf(goal)]);
  return { title, headings: ["what", "reach", "measured", ""], rows };
}
