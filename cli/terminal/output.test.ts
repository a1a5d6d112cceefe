// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { parse } from "yaml";
import {
  ageOf,
  type Column,
  columns,
  countOf,
  document,
  formatOf,
  printable,
  table,
  timeOf,
} from "./output.ts";

describe("columns", () => {
  it("aligns every column but leaves no blanks at the ends of lines", () => {
    assert.equal(
      columns([
        ["a", "bbb", "c"],
        ["aaa", "b", ""],
      ]),
      "a     bbb   c\naaa   b\n",
    );
  });

  it("starts the n-th cell of every row at the same place", () => {
    const cell = fc.string({ unit: fc.constantFrom("a", "1", "."), minLength: 1, maxLength: 12 });
    const rows = fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(rows, (cells) => {
        const lines = columns(cells).split("\n").slice(0, -1);
        const widths = [0, 1].map((i) => Math.max(...cells.map((row) => (row[i] ?? "").length)) + 3);
        for (const [n, line] of lines.entries()) {
          const [first = 0, second = 0] = widths;
          const services = [
            line.slice(0, first),
            line.slice(first, first + second),
            line.slice(first + second),
          ];
          assert.deepEqual(
            services.map((part) => part.trim()),
            cells[n],
          );
        }
      }),
    );
  });
});

describe("table", () => {
  const all: readonly Column<{ name: string; node: string }>[] = [
    { title: "NAME", cell: ({ name }) => name },
    { title: "NODE", wide: true, cell: ({ node }) => node },
  ];

  it("shows what is empty as - and leaves wide columns out", () => {
    const things = [
      { name: "web", node: "" },
      { name: "", node: "a" },
    ];
    assert.equal(table(all, things, "table"), "NAME\nweb\n-\n");
    assert.equal(table(all, things, "wide"), "NAME   NODE\nweb    -\n-      a\n");
  });

  it("lets no name colour the terminal or break a line", () => {
    assert.equal(table(all, [{ name: "\u001b[31mred\nx\u202e", node: "" }], "table"), "NAME\n?[31mred?x?\n");
  });
});

describe("documents", () => {
  const HIDDEN = /[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/u;
  const read = { json: (text: string) => JSON.parse(text), yaml: (text: string) => parse(text) };

  for (const format of ["json", "yaml"] as const) {
    it(`have nothing in ${format} that a terminal acts upon, and say the same`, () => {
      const evil = "\u001b[31mred\u009b2J\u202eback\u2028x\u{e0041}";
      const value = { name: evil, [`${evil}key`]: ["yes", 1, true, null, `two\nlines ${evil}`] };
      const text = document(value, format);
      assert.doesNotMatch(text, HIDDEN);
      assert.ok(!text.includes("\u001b"), text);
      assert.deepEqual(read[format](text), value);
    });
  }

  it("are plain where there is nothing to hide", () => {
    assert.equal(document({ name: "web", when: "on" }, "yaml"), 'name: web\nwhen: "on"\n');
  });
});

describe("formats", () => {
  it("reads -o", () => {
    assert.equal(formatOf(undefined), "table");
    assert.equal(formatOf("wide"), "wide");
    assert.throws(() => formatOf("xml"), { message: '-o "xml" is none of table, wide, json, yaml' });
    assert.throws(() => formatOf("wide", ["table", "json"]), { message: '-o "wide" is none of table, json' });
  });

  it("writes JSON and YAML", () => {
    const value = { a: [1, "10.20.0.51"], b: { c: null, at: "2026-01-31T12:00:00Z" } };
    assert.deepEqual(JSON.parse(document(value, "json")), value);
    assert.equal(
      document(value, "yaml"),
      'a:\n  - 1\n  - 10.20.0.51\nb:\n  c: null\n  at: "2026-01-31T12:00:00Z"\n',
    );
  });

  for (const [seconds, age] of [
    [-5, "0s"],
    [0, "0s"],
    [119, "119s"],
    [120, "2m"],
    [7_199, "119m"],
    [7_200, "2h"],
    [172_799, "47h"],
    [172_800, "2d"],
    [31_536_000, "365d"],
  ] as const) {
    it(`calls ${seconds} seconds ${age}`, () => {
      assert.equal(ageOf(1_000_000, 1_000_000 + seconds * 1000), age);
    });
  }

  it("writes times without fractions", () => {
    assert.equal(timeOf(Date.UTC(2026, 0, 31, 12, 0, 0, 123)), "2026-01-31T12:00:00Z");
  });

  it("counts a /64 in a few characters", () => {
    assert.equal(countOf(150n), "150");
    assert.equal(countOf(9_999_999n), "9999999");
    assert.equal(countOf(2n ** 64n), "1.8e19");
  });

  it("keeps ordinary text as it is", () => {
    assert.equal(printable("claim shop/mysql-0 – ümlaut"), "claim shop/mysql-0 – ümlaut");
  });
});
