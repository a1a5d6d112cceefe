// SPDX-License-Identifier: Apache-2.0
// node scripts/errors.ts           prints docs/errors.md as it must be
// node scripts/errors.ts --write   writes it
import { writeFileSync } from "node:fs";
import { renderErrorReference } from "./error-reference.ts";

const reference = renderErrorReference();
if (process.argv.includes("--write")) {
  writeFileSync(new URL("../docs/errors.md", import.meta.url), reference);
} else {
  process.stdout.write(reference);
}
