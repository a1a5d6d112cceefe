// SPDX-License-Identifier: Apache-2.0
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Figure, goalTable } from "./figure.ts";
import { loadLine, type Machine, machineLine } from "./machine.ts";
import { markdownTable } from "./table.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** What one run of the bench found. */
export interface Results {
  readonly machine: Machine;
  readonly quick: boolean;
  /** ISO 8601. */
  readonly at: string;
  readonly figures: {
    readonly figure: Figure;
    readonly load: { readonly before: number; readonly after: number };
  }[];
}

/**
 * Writes build/NAME.json, and the plots: of a full run into docs/performance/, and its tables into
 * docs/performance.md; of a quick one beside the JSON, because its numbers say little. Answers with the paths.
 */
export async function writeResults(results: Results, name: string): Promise<readonly string[]> {
  const json = `build/${name}.json`;
  const written = [json];
  const figures = results.figures.map(({ figure: { plots: _, tables: __, ...figure }, load }) => ({
    ...figure,
    load,
  }));
  await mkdir(join(ROOT, "build"), { recursive: true });
  await writeText(json, `${JSON.stringify({ ...results, figures }, undefined, 1)}\n`);
  const folder = results.quick ? `build/${name}` : "docs/performance";
  await mkdir(join(ROOT, folder), { recursive: true });
  for (const { name: plot, svg } of results.figures.flatMap(({ figure }) => figure.plots)) {
    await writeText(`${folder}/${plot}.svg`, svg);
    written.push(`${folder}/${plot}.svg`);
  }
  if (!results.quick && results.figures.length > 0) {
    const path = "docs/performance.md";
    await writeText(path, fillIn(await readFile(join(ROOT, path), "utf8"), results));
    written.push(path);
  }
  return written;
}

async function writeText(path: string, text: string): Promise<void> {
  await writeFile(join(ROOT, path), text);
}

/**
 * Puts each figure between `<!-- bench NAME -->` and `<!-- end -->` of a Markdown document; everything else in it
 * stays. Throws Error when the document has no such place.
 */
export function fillIn(document: string, results: Results): string {
  return results.figures.reduce((text, { figure, load }) => {
    const place = new RegExp(`(<!-- bench ${figure.name} -->\\n)[^]*?(<!-- end -->)`);
    if (!place.test(text)) throw new Error(`the document has no place for the figure ${figure.name}`);
    const plots = figure.plots.map(({ name, about }) => `![${about}](performance/${name}.svg)\n`);
    const tables = [...figure.tables, ...goalsOf(figure)].map(markdownTable);
    const when = `Measured ${results.at.slice(0, 10)}: ${machineLine(results.machine)}; ${loadLine(load.before, load.after)}.\n`;
    const inside = ["", ...plots, ...tables, when, ""].join("\n");
    return text.replace(place, (_, start: string, end: string) => `${start}${inside}${end}`);
  }, document);
}

function goalsOf({ goals }: Figure) {
  return goals.length === 0 ? [] : [goalTable("To reach", goals)];
}
