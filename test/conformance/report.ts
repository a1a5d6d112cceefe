// SPDX-License-Identifier: Apache-2.0
// What Ginkgo's JUnit report says, and the table that is made of it.

export type Verdict = "passed" | "failed";

export interface Result {
  readonly spec: string;
  readonly verdict: Verdict;
  readonly seconds: number;
}

/** Those that were run, by name. A test case that says neither is counted as failed: it was interrupted. */
export function resultsOf(junit: string): readonly Result[] {
  const cases = junit.matchAll(/<testcase ([^>]*)>/g);
  return [...cases]
    .map(([, attributes = ""]) => attributes)
    .filter((text) => /^\[It\] /.test(attributeOf(text, "name")))
    .filter((text) => !["skipped", "pending"].includes(attributeOf(text, "status")))
    .map((text) => ({
      spec: specOf(attributeOf(text, "name")),
      verdict: attributeOf(text, "status") === "passed" ? ("passed" as const) : ("failed" as const),
      seconds: Math.round(Number(attributeOf(text, "time"))),
    }))
    .sort((a, b) => (a.spec < b.spec ? -1 : 1));
}

/** As `--ginkgo.focus` knows it: without the list of labels that the report puts behind it. */
function specOf(name: string): string {
  return name.replace(/^\[It\] /, "").replace(/ \[sig-[^\]]*\]$/, "");
}

function attributeOf(text: string, name: string): string {
  const value = new RegExp(`(?:^| )${name}="([^"]*)"`).exec(text)?.[1] ?? "";
  return value
    .replace(/&#(\d+);|&#x([0-9A-Fa-f]+);/g, (_, ten: string | undefined, hex = "") =>
      String.fromCodePoint(ten === undefined ? Number.parseInt(hex, 16) : Number(ten)),
    )
    .replaceAll("&quot;", '"')
    .replaceAll("&apos;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

/** A row for each spec; what failed with Berth has beside it what host-local came to on the same cluster. */
export function tableOf(withBerth: readonly Result[], withHostLocal: readonly Result[]): string {
  const others = new Map(withHostLocal.map((result) => [result.spec, result]));
  const rows = withBerth.map((result) => {
    const other = others.get(result.spec);
    const beside = other === undefined ? (result.verdict === "failed" ? "not run" : "") : wordsOf(other);
    return `| ${result.spec.replaceAll("|", "\\|")} | ${wordsOf(result)} | ${beside} |`;
  });
  return ["| spec | with Berth | with host-local, where it failed |", "|---|---|---|", ...rows].join("\n");
}

const wordsOf = ({ verdict, seconds }: Result): string => `${verdict}, ${seconds} s`;

/** For one more run of exactly these specs. */
export function focusOn(results: readonly Result[]): readonly string[] {
  return results.map(({ spec }) => spec.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
}

const [BEGIN, END] = ["<!-- results: begin -->", "<!-- results: end -->"];

/** The document with that between its marks. */
export function withResults(document: string, results: string): string {
  const [before, after] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (before === -1 || after < before) throw new Error(`the document has no ${BEGIN} and ${END}`);
  return `${document.slice(0, before)}${BEGIN}\n${results}\n${document.slice(after)}`;
}
