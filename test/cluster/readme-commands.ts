// SPDX-License-Identifier: Apache-2.0

/**
 * What a section of a document tells its reader to type, block by block, each a script: of a block with prompts the
 * lines behind `$ ` (and what they go on with), of another one all of it. Blocks are fenced or indented.
 */
export function commandsOf(document: string, heading: string): readonly string[] {
  return blocksOf(sectionOf(document, heading)).flatMap((lines) => {
    const typed = lines.some((line) => line.startsWith("$ ")) ? behindPrompts(lines) : lines;
    return typed.length === 0 ? [] : [typed.join("\n")];
  });
}

/** The text between that heading of second level and the next one. Throws when there is none. */
function sectionOf(document: string, heading: string): string {
  const [, after] = `\n${document}`.split(`\n## ${heading}\n`);
  if (after === undefined) throw new Error(`no section "## ${heading}"`);
  return after.split(/^## /m)[0] ?? "";
}

/** Fenced blocks of another language than a shell's are files to look at. */
const SHELLS = ["", "sh", "shell", "bash", "console"];
/** A fenced block with its language, or an indented one. */
const BLOCK = /^```(?<language>.*)\n(?<fenced>[\s\S]*?)^```$|(?<indented>(?:^ {4}.*\n)+)/gm;

function blocksOf(section: string): readonly (readonly string[])[] {
  return [...section.matchAll(BLOCK)].flatMap(({ groups = {} }) => {
    const { language = "", fenced, indented = "" } = groups;
    if (!SHELLS.includes(language.trim())) return [];
    const text = fenced ?? indented.replaceAll(/^ {4}/gm, "");
    return [text.trimEnd().split("\n")];
  });
}

function behindPrompts(lines: readonly string[]): readonly string[] {
  let goesOn = false;
  return lines.flatMap((line) => {
    const typed = line.startsWith("$ ") ? line.slice(2) : goesOn ? line : undefined;
    goesOn = typed?.endsWith("\\") === true;
    return typed === undefined ? [] : [typed];
  });
}
