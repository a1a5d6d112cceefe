// SPDX-License-Identifier: Apache-2.0
// node scripts/chart-readme.ts           prints charts/berth/README.md as it must be
// node scripts/chart-readme.ts --write   writes it
import { readFileSync, writeFileSync } from "node:fs";
import { withValues } from "./chart-values.ts";

const chart = new URL("../charts/berth/", import.meta.url);
const read = (file: string) => readFileSync(new URL(file, chart), "utf8");
const readme = withValues(read("README.md"), read("values.yaml"));
if (process.argv.includes("--write")) {
  writeFileSync(new URL("README.md", chart), readme);
} else {
  process.stdout.write(readme);
}
