// SPDX-License-Identifier: Apache-2.0
import { isMap, isNode, isScalar, type Pair, parseDocument, type YAMLMap } from "yaml";

const BEGIN = "<!-- values: written by `node scripts/chart-readme.ts --write` from values.yaml -->\n";
const END = "<!-- end of values -->\n";

/** One value of the chart: its path, the words of the comment above it, and what it is by default. */
interface ChartValue {
  readonly path: string;
  readonly words: string;
  readonly value: unknown;
}

/** The README of the chart with the table of these values between its two marks. Throws when a mark is missing. */
export function withValues(readme: string, valuesYaml: string): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`the README has no ${BEGIN.trim()} ... ${END.trim()}`);
  const rows = chartValues(valuesYaml).map(
    ({ path, words, value }) => `| \`${path}\` | ${cell(words)} | \`${cell(JSON.stringify(value))}\` |`,
  );
  const table = ["| value | is | default |", "|---|---|---|", ...rows].join("\n");
  return `${readme.slice(0, begin)}${BEGIN}\n${table}\n\n${readme.slice(end)}`;
}

/** Every value that has a comment of its own, in the order of the file. Throws for one that nobody describes. */
export function chartValues(valuesYaml: string): readonly ChartValue[] {
  const { contents, errors } = parseDocument(valuesYaml);
  if (errors.length > 0 || !isMap(contents))
    throw new Error(`values.yaml: ${errors[0]?.message ?? "no map"}`);
  return valuesOf(contents, "");
}

function valuesOf(map: YAMLMap, prefix: string): readonly ChartValue[] {
  return map.items.flatMap((pair, n) => {
    // what stands above the first key belongs to the map
    const comment = commentOf(pair) ?? (n === 0 ? map.commentBefore : undefined);
    const path = `${prefix}${keyOf(pair)}`;
    if (typeof comment === "string") {
      const value: unknown = isNode(pair.value) ? pair.value.toJSON() : pair.value;
      return [{ path, words: comment.trim().replace(/\s*\n\s*/g, " "), value }];
    }
    if (isMap(pair.value) && pair.value.items.length > 0) return valuesOf(pair.value, `${path}.`);
    throw new Error(`values.yaml: ${path} has no comment that says what it is`);
  });
}

function commentOf({ key }: Pair): string | null | undefined {
  return isScalar(key) ? key.commentBefore : undefined;
}

function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : String(key);
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
