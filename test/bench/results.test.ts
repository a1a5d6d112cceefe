// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { atLeast, atMost, type Figure, goalTable } from "./figure.ts";
import { fillIn, type Results } from "./results.ts";

const machine = { cpu: "CPU", cores: 2, memoryGiB: 4, kernel: "6.1", node: "v24.0.0", fileSystem: "ext4" };
const figure: Figure = {
  name: "add",
  title: "ADD",
  tables: [{ title: "ms", headings: ["", "berth"], rows: [["ADD", "0.80"]] }],
  plots: [{ name: "add", about: "a line", svg: "<svg/>" }],
  goals: [atMost("ratio", 0.25, 0.4, String)],
  data: {},
};
const results: Results = {
  machine,
  quick: false,
  at: "2026-01-02T03:04:05.000Z",
  figures: [{ figure, load: { before: 1, after: 1.5 } }],
};

describe("fillIn", () => {
  const document =
    "# Title\n\n<!-- bench add -->\nold $1\n<!-- end -->\nprose\n<!-- bench other -->\nkept\n<!-- end -->\n";

  it("replaces what stands in the figure's place and nothing else", () => {
    const text = fillIn(document, results);
    const inside = [
      "<!-- bench add -->",
      "",
      "![a line](performance/add.svg)",
      "",
      "ms:",
      "",
      "|  | berth |",
      "|---|---:|",
      "| ADD | 0.80 |",
      "",
      "To reach:",
      "",
      "| what | reach | measured |  |",
      "|---|---:|---:|---:|",
      "| ratio | at most 0.25 | 0.4 | MISSED |",
      "",
      "Measured 2026-01-02: CPU, 2 cores, 4 GiB, Linux 6.1, Node.js v24.0.0, files on ext4; load (one minute) 1.00 before, 1.50 after.",
      "",
      "<!-- end -->",
    ].join("\n");
    assert.equal(text, `# Title\n\n${inside}\nprose\n<!-- bench other -->\nkept\n<!-- end -->\n`);
  });

  it("gives the same when it is filled again", () => {
    const once = fillIn(document, results);
    assert.equal(fillIn(once, results), once);
  });

  it("refuses a document that has no place for a figure", () => {
    assert.throws(
      () => fillIn("# Title\n", results),
      new Error("the document has no place for the figure add"),
    );
  });
});

describe("docs/performance.md", () => {
  it("has a place for each figure of the bench, and each plot that it shows", async () => {
    const document = await readFile(new URL("../../docs/performance.md", import.meta.url), "utf8");
    const main = await readFile(new URL("./main.ts", import.meta.url), "utf8");
    const named = [...main.matchAll(/^ {2}(\w+): measure/gm)].map((match) => match[1]);
    const places = [...document.matchAll(/<!-- bench (\w+) -->\n[\s\S]*?<!-- end -->/g)].map(
      (match) => match[1],
    );
    assert.deepEqual(places, named);
    for (const [, path] of document.matchAll(/!\[[^\]]*\]\(([^)]*)\)/g)) {
      const svg = await readFile(new URL(`../../docs/${path}`, import.meta.url), "utf8");
      assert.match(svg, /^<svg /, path);
    }
  });
});

describe("goals", () => {
  it("are met at their limit and missed beyond it", () => {
    const met = (goal: { met: boolean | undefined }) => goal.met;
    assert.deepEqual([atMost("", 5, 5, String), atMost("", 5, 5.01, String)].map(met), [true, false]);
    assert.deepEqual([atLeast("", 4, 4, String), atLeast("", 4, 3.99, String)].map(met), [true, false]);
  });

  it("say so in their table, and what could not be measured", () => {
    const unknown = { what: "w", reach: "at most 1", measured: "-", met: undefined };
    const { rows } = goalTable("t", [atMost("a", 1, 2, String), atLeast("b", 1, 2, String), unknown]);
    assert.deepEqual(rows, [
      ["a", "at most 1", "2", "MISSED"],
      ["b", "at least 1", "2", "met"],
      ["w", "at most 1", "-", "not measured"],
    ]);
  });
});
