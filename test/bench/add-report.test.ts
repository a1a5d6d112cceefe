// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type MeasuredLevel, reportAdd } from "./add-report.ts";

/** One round in which every call took as long as is said. */
function levelOf(taken: number, ms: { berth: number; claim: number; hostLocal?: number }): MeasuredLevel {
  const times = (prefix: string, value: number | undefined) =>
    ["ADD", "DEL"].flatMap((verb): [string, number[]][] =>
      value === undefined ? [] : [[`${prefix} ${verb}`, [value, value]]],
    );
  const ours = [...times("berth", ms.berth), ...times("claim", ms.claim)];
  const together = [new Map([...ours, ...times("host-local", ms.hostLocal)])];
  return { taken, together, alone: [new Map([...ours, ["floor", [0.1]]])] };
}

describe("reportAdd", () => {
  const levels = [
    levelOf(0, { berth: 0.8, claim: 1, hostLocal: 2 }),
    levelOf(1_000, { berth: 0.8, claim: 1.3, hostLocal: 10 }),
  ];

  it("compares medians with host-local's of the same node, and nodes with each other", () => {
    const found = reportAdd(levels, true).goals.map(({ measured, met }) => [measured, met]);
    assert.deepEqual(found, [
      ["0.400", false],
      ["0.080", true],
      ["0 %", true],
      ["30 %", false],
    ]);
  });

  it("has a row for each node", () => {
    const [add] = reportAdd(levels, true).tables;
    assert.deepEqual(add?.rows[1], [
      "1,000",
      "0.800",
      "0.800",
      "0.080 (0.080-0.080)",
      "1.30",
      "1.30",
      "0.130 (0.130-0.130)",
      "10.0",
      "10.0",
    ]);
  });

  it("says that nothing was compared where there is no host-local", () => {
    const figure = reportAdd([levelOf(0, { berth: 0.8, claim: 1 })], false);
    assert.deepEqual(
      figure.goals.slice(0, 2).map(({ met }) => met),
      [undefined, undefined],
    );
    assert.deepEqual(figure.tables[0]?.rows[0]?.slice(-2), ["-", "-"]);
  });
});
