// SPDX-License-Identifier: Apache-2.0
import { atLeast, atMost, type Figure } from "../bench/figure.ts";
import { formatFixed } from "../bench/number-format.ts";
import { summarise } from "../bench/statistics.ts";

export interface AddsMeasured {
  /** Of each ADD of a pod with a claim, and of one without. */
  readonly fixedMs: readonly number[];
  readonly dynamicMs: readonly number[];
  /** From the first ADD to the last answer, after a reboot. */
  readonly crowdMs: number;
  /** Addresses that the node's blocks had left when the API server went, and ADDs that were served then. */
  readonly free: number;
  readonly alone: number;
}

export interface AgentMemory {
  readonly name: string;
  /** Bytes. */
  readonly resident: number;
  readonly anonymous: number;
}

export interface AgentsMeasured extends AddsMeasured {
  readonly atOnce: number;
  /** Of the same agent: in a small cluster, and in a large one. */
  readonly memory: readonly AgentMemory[];
}

const MIB = 2 ** 20;
const mib = (bytes: number) => `${formatFixed(bytes / MIB, 0)} MiB`;
const ms = (value: number) => formatFixed(value, 2);

export function reportAgents(measured: AgentsMeasured): Figure {
  const { fixedMs, dynamicMs, crowdMs, atOnce, free, alone, memory } = measured;
  const [fixed, dynamic] = [summarise(fixedMs), summarise(dynamicMs)];
  const title = "Agents and blocks, on a real API server";
  const rows = [
    ["ADD of a pod with a claim", ms(fixed.p50), ms(fixed.p99)],
    ["ADD of a pod that asks for nothing", ms(dynamic.p50), ms(dynamic.p99)],
    [`${atOnce} ADDs at once, after a reboot: all of them`, ms(crowdMs), ""],
  ];
  const sizes = memory.map(({ name, resident, anonymous }) => [name, mib(resident), mib(anonymous)]);
  const [small, large] = memory;
  const growth = small && large ? large.resident / small.resident : Number.NaN;
  return {
    name: "api-agents",
    title,
    tables: [
      { title: "Milliseconds, from the start of the plugin to its end", headings: ["", "p50", "p99"], rows },
      {
        title: "Memory of an agent after 100 ADDs, by the cluster",
        headings: ["", "RSS", "anonymous"],
        rows: sizes,
      },
    ],
    plots: [],
    goals: [
      atMost(
        "ADD p50 of a pod that asks for nothing to that of a fixed one",
        1.2,
        dynamic.p50 / fixed.p50,
        ms,
      ),
      atLeast(
        "ADDs that were served without an API server, of the free addresses of the node's blocks",
        free,
        alone,
        String,
      ),
      atMost("RSS of an agent in the large cluster to that in the small one", 1.1, growth, ms),
    ],
    data: { ...measured, fixed, dynamic },
  };
}
