// SPDX-License-Identifier: Apache-2.0
import { stringify } from "yaml";
import { usageError } from "./flags.ts";

/** How `-o` wants it. `wide` is a table with more columns. */
export const FORMATS = ["table", "wide", "json", "yaml"] as const;
export type Format = (typeof FORMATS)[number];

const GAP = "   ";
const NOTHING = "-";

/** Reads `-o`; `allowed` are those that the command has. */
export function formatOf(text: string | undefined, allowed: readonly Format[] = FORMATS): Format {
  if (text === undefined) return "table";
  const format = allowed.find((known) => known === text);
  if (format !== undefined) return format;
  throw usageError(`-o ${JSON.stringify(text)} is none of ${allowed.join(", ")}`);
}

/** Text that cannot move the cursor, colour the terminal or break a line, whatever an object's fields hold. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?");
}

/** Rows in aligned columns, each line ended; the last column is as long as it is. `widths` are at least so wide, and are widened. */
export function columns(rows: readonly (readonly string[])[], widths: number[] = []): string {
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join(GAP)
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join("");
}

/** One column of a table: what stands above it, and what of a thing it shows. Empty text is shown as `-`. */
export interface Column<T> {
  readonly title: string;
  readonly wide?: boolean;
  cell(thing: T): string;
}

/** A table with its titles; columns for `wide` only are left out of a plain one. */
export function table<T>(all: readonly Column<T>[], things: readonly T[], format: "table" | "wide"): string {
  return new LongTable(all, format).part(things);
}

/** A table of more things than anybody wants to keep: its columns are wider from where a part needs them so. */
export class LongTable<T> {
  readonly #shown: readonly Column<T>[];
  readonly #widths: number[] = [];
  #hasTitles = false;

  constructor(all: readonly Column<T>[], format: "table" | "wide") {
    this.#shown = all.filter((column) => format === "wide" || column.wide !== true);
  }

  /** The next lines; before the first ones the titles. */
  part(things: readonly T[]): string {
    const titles = this.#hasTitles ? [] : [this.#shown.map(({ title }) => title)];
    this.#hasTitles = true;
    const cell = (text: string) => (text === "" ? NOTHING : printable(text));
    const rows = things.map((thing) => this.#shown.map((column) => cell(column.cell(thing))));
    return columns([...titles, ...rows], this.#widths);
  }
}

/** What a terminal may act upon, or hide, and no line of a document needs. */
const UNSEEN = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** JSON or YAML, ended with a newline, with what no terminal shows in escapes. YAML 1.1 is what kubectl reads: to it, bare times and `on` are no text. */
export function document(value: unknown, format: "json" | "yaml"): string {
  if (format === "json") return `${JSON.stringify(value, null, 2).replaceAll(UNSEEN, escapedUnits)}\n`;
  const options = { version: "1.1", lineWidth: 0 } as const;
  const text = stringify(value, options);
  if (text.search(UNSEEN) === -1) return text;
  // only in quotes are there escapes
  const quoted = { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "QUOTE_DOUBLE" } as const;
  return stringify(value, { ...options, ...quoted }).replaceAll(UNSEEN, (character) => {
    return `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`;
  });
}

/** JSON's escapes are of UTF-16. */
function escapedUnits(character: string): string {
  return character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

/** As kubectl: 42s, 17m, 5h, 12d. */
export function ageOf(since: number, now: number): string {
  const seconds = Math.max(0, Math.floor((now - since) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3_600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** A time as people and Kubernetes write it: 2026-01-31T12:00:00Z. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, "Z");
}

/** A count that may be that of a /64: whole up to seven digits, then 1.8e19. */
export function countOf(n: bigint): string {
  if (n < 10_000_000n) return String(n);
  const digits = String(n);
  return `${digits.charAt(0)}.${digits.charAt(1)}e${digits.length - 1}`;
}
