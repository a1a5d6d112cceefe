// SPDX-License-Identifier: Apache-2.0
import { atMost, type Figure } from "../bench/figure.ts";
import { formatFixed } from "../bench/number-format.ts";
import type { Resident } from "../bench/running-stack.ts";
import { median } from "../bench/statistics.ts";

/** One agent, from its start to its end. */
export interface AgentLook {
  /** From exec until it is ready, on the clock; and the processor's time until then. */
  readonly readyMs: number;
  readonly startMs: number;
  readonly atRest: Resident;
  /** Processor time of an ADD and its DEL; absent for what is no agent. */
  readonly podMs?: number;
  readonly afterWork?: Resident;
}

const MIB = 2 ** 20;
const CHART = "as in the chart";

/** Medians of the rounds; `looks`: by the name of the form, in the order of the table. */
export function reportAgentMemory(looks: ReadonlyMap<string, readonly AgentLook[]>): Figure {
  const rows = [...looks].map(([name, all]) => {
    const work = all.flatMap(({ afterWork }) => afterWork ?? []);
    const pods = all.flatMap(({ podMs }) => podMs ?? []);
    return [
      name,
      ...cells(all.map(({ atRest }) => atRest)),
      ...(work.length === 0 ? ["", ""] : cells(work)),
      formatFixed(median(all.map(({ startMs }) => startMs)), 0),
      formatFixed(median(all.map(({ readyMs }) => readyMs)), 0),
      pods.length === 0 ? "" : formatFixed(median(pods), 1),
    ];
  });
  const chart = looks.get(CHART) ?? [];
  const after = chart.flatMap(({ afterWork }) => afterWork ?? []);
  const mib = (bytes: number) => `${formatFixed(bytes, 0)} MiB`;
  const ms = (value: number) => `${formatFixed(value, 0)} ms`;
  const of = (field: keyof Resident) => median(after.map((one) => one[field])) / MIB;
  return {
    name: "api-agent-memory",
    title: "An agent's memory and start, by how its program is made",
    tables: [
      {
        title: "MiB, and milliseconds; medians of rounds in turn",
        headings: [
          ...["", "RSS at rest", "anonymous", "RSS after 100 pods", "anonymous"],
          ...["processor until ready", "clock until ready", "processor for an ADD and a DEL"],
        ],
        rows,
      },
    ],
    plots: [],
    goals: [
      atMost("anonymous memory of an agent after 100 pods", 24, of("anonymous"), mib),
      atMost("RSS of an agent after 100 pods", 60, of("resident"), mib),
      atMost("exec until an agent is ready", 400, median(chart.map(({ readyMs }) => readyMs)), ms),
    ],
    data: Object.fromEntries(looks),
  };
}

function cells(sizes: readonly Resident[]): readonly string[] {
  const of = (field: keyof Resident) => formatFixed(median(sizes.map((one) => one[field])) / MIB, 1);
  return [of("resident"), of("anonymous")];
}
