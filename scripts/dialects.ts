// SPDX-License-Identifier: Apache-2.0
// node scripts/dialects.ts           says which files are not what the table of dialects makes of them
// node scripts/dialects.ts --write   writes them
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { DIALECT_FILES } from "./dialect-files.ts";

const root = new URL("../", import.meta.url);
let stale = 0;
for (const [path, written] of Object.entries(DIALECT_FILES)) {
  const file = new URL(path, root);
  const was = existsSync(file) ? readFileSync(file, "utf8") : "";
  const is = written(was);
  if (is === was) continue;
  stale++;
  if (process.argv.includes("--write")) writeFileSync(file, is);
  process.stdout.write(`${path}\n`);
}
process.exitCode = stale > 0 && !process.argv.includes("--write") ? 1 : 0;
