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

/** Rows in aligned columns, each line ended; the last column is as long as it is. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
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
  const shown = all.filter((column) => format === "wide" || column.wide !== true);
  const cell = (text: string) => (text === "" ? NOTHING : printable(text));
  return columns([
    shown.map(({ title }) => title),
    ...things.map((thing) => shown.map((column) => cell(column.cell(thing)))),
  ]);
}

/** JSON or YAML, ended with a newline. YAML 1.1 is what kubectl reads: to it, bare times and `on` are no text. */
export function document(value: unknown, format: "json" | "yaml"): string {
  if (format === "json") return `${JSON.stringify(value, null, 2)}\n`;
  return stringify(value, { version: "1.1", lineWidth: 0 });
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
