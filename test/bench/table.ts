// SPDX-License-Identifier: Apache-2.0

/** Rows of text under headings; every row has as many cells as there are headings. */
export interface Table {
  readonly title: string;
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** For a terminal: the first column to the left, numbers to the right, under each other. */
export function plainTable({ title, headings, rows }: Table): string {
  const widths = headings.map((heading, i) =>
    Math.max(heading.length, ...rows.map((row) => (row[i] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    widths
      .map((width, i) => (i === 0 ? (cells[i] ?? "").padEnd(width) : (cells[i] ?? "").padStart(width)))
      .join("  ")
      .trimEnd();
  const rule = widths.map((width) => "-".repeat(width));
  return [title, line(headings), line(rule), ...rows.map(line)].map((text) => `  ${text}\n`).join("");
}

/** The same in Markdown, its title before it. */
export function markdownTable({ title, headings, rows }: Table): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;
  const rule = headings.map((_, i) => (i === 0 ? "---" : "---:"));
  return `${title}:\n\n${line(headings)}|${rule.join("|")}|\n${rows.map(line).join("")}`;
}
