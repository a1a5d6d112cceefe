// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { join } from "node:path";

const TEMPLATES = join(import.meta.dirname, "../../charts/berth/templates");

/** A program as the chart's pods run it. */
export interface ChartProgram {
  /** Of node, in their order. */
  readonly flags: readonly string[];
  /** Below the image's /opt/berth. */
  readonly script: string;
  /** How it takes memory from the system. */
  readonly memory: Readonly<Record<string, string>>;
  /** Where it keeps what it has compiled for its next start; empty for what does not. */
  readonly kept: Readonly<Record<string, string>>;
}

export function chartProgram(template: "agent" | "webhook"): ChartProgram {
  const text = readFileSync(join(TEMPLATES, `${template}.yaml`), "utf8");
  const words = /command: \[node, ([^\]]+)\]/.exec(text)?.[1]?.split(", ") ?? [];
  const kept = /- \{ name: (NODE_COMPILE_CACHE), value: (\S+) \}/.exec(text);
  const variables = text.matchAll(/- \{ name: (MALLOC_\w+), value: "(\d+)" \}/g);
  return {
    flags: words.slice(0, -1),
    script: words.at(-1) ?? "",
    memory: Object.fromEntries([...variables].map(([, name = "", value = ""]) => [name, value])),
    kept: kept === null ? {} : { [kept[1] ?? ""]: kept[2] ?? "" },
  };
}
