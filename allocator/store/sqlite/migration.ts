// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../base/errors.ts";
import { isNewerFormat } from "./file.ts";
import { integerOf, type Reader, type Sql } from "./sql.ts";

/** The tables of one part of Berth. */
export interface Part {
  readonly name: string;
  /** Each is one statement, and the file knows how many were taken. They are only ever added. */
  readonly steps: readonly string[];
  /** Whoever knows it reads a file to whose number it was added; others refuse that. */
  readonly lock?: number;
}

/** Those of which the file has not taken all steps. Throws CONFIG_INVALID where it has taken more. */
export function partsBehind(sql: Reader, path: string, parts: readonly Part[]): readonly Part[] {
  return parts.filter((part) => {
    const { taken } = stepsTaken(sql, part);
    const known = part.steps.length;
    if (taken > known) throw isNewerFormat(path, `${part.name} ${taken}, this one knows ${known}`);
    return taken < known;
  });
}

/** What another process has taken meanwhile is not taken again. */
export function takeSteps(sql: Sql, parts: readonly Part[]): void {
  for (const part of parts) {
    const { taken, added } = stepsTaken(sql, part);
    const left = part.steps.slice(taken);
    if (left.length === 0) continue;
    for (const step of left) sql.run(step);
    const version = part.steps.length + added;
    sql.run("INSERT OR REPLACE INTO schemas (name, version) VALUES (?, ?)", part.name, version);
  }
}

/** Why a file that is only read cannot be. */
export function notUpToDate(path: string, behind: readonly Part[]): BerthError {
  const names = behind.map(({ name }) => name).join(", ");
  const words = `${path} was not brought up to date yet (${names}); start Berth on it once`;
  return new BerthError("STORE_READ_ONLY", words, { details: { path } });
}

/** `added` is what the file's number has beyond them. */
function stepsTaken(
  sql: Reader,
  { name, lock = Number.POSITIVE_INFINITY }: Part,
): { readonly taken: number; readonly added: number } {
  const row = sql.get("SELECT version FROM schemas WHERE name = ?", name);
  const numbered = row === undefined ? 0 : integerOf(row, "version");
  const added = numbered >= lock ? lock : 0;
  return { taken: numbered - added, added };
}
