// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatFixed, formatNumber, formatPart } from "./number-format.ts";
import { markdownTable, plainTable } from "./table.ts";

const table = {
  title: "milliseconds",
  headings: ["taken", "berth", "host-local"],
  rows: [
    ["0", "0.80", "2.0"],
    ["60,000", "0.81", "394"],
  ],
};

describe("plainTable", () => {
  it("puts numbers under each other, the first column to the left", () => {
    const lines = [
      "  milliseconds",
      "  taken   berth  host-local",
      "  ------  -----  ----------",
      "  0        0.80         2.0",
      "  60,000   0.81         394",
      "",
    ];
    assert.equal(plainTable(table), lines.join("\n"));
  });

  it("has headings alone when there is nothing", () => {
    assert.equal(plainTable({ title: "t", headings: ["a", "b"], rows: [] }), "  t\n  a  b\n  -  -\n");
  });
});

describe("markdownTable", () => {
  it("is a table of GitHub's Markdown", () => {
    const lines = [
      "milliseconds:",
      "",
      "| taken | berth | host-local |",
      "|---|---:|---:|",
      "| 0 | 0.80 | 2.0 |",
      "| 60,000 | 0.81 | 394 |",
      "",
    ];
    assert.equal(markdownTable(table), lines.join("\n"));
  });

  it("keeps a bar inside its cell", () => {
    assert.match(markdownTable({ ...table, rows: [["a|b", "", ""]] }), /^\| a\\\|b \|/m);
  });
});

describe("numbers", () => {
  it("have three digits that mean something", () => {
    const values = [0, 0.0126, 0.8, 4.567, 78.94, 393.7, 12345.6, -2.5];
    assert.deepEqual(values.map(formatNumber), [
      "0.000",
      "0.013",
      "0.800",
      "4.57",
      "78.9",
      "394",
      "12,346",
      "-2.50",
    ]);
  });

  it("have the digits that are asked for, and parts are per cent", () => {
    assert.equal(formatFixed(1234.5678, 2), "1,234.57");
    assert.equal(formatPart(0.205), "21 %");
  });
});
