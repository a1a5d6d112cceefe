// SPDX-License-Identifier: Apache-2.0
// node scripts/metrics.ts           prints docs/operations.md with its tables of metrics, alerts and log keys as they must be
// node scripts/metrics.ts --write   writes it
import { readFileSync, writeFileSync } from "node:fs";
import { withTables } from "./operations-tables.ts";

const file = new URL("../docs/operations.md", import.meta.url);
const text = withTables(readFileSync(file, "utf8"));
if (process.argv.includes("--write")) {
  writeFileSync(file, text);
} else {
  process.stdout.write(text);
}
