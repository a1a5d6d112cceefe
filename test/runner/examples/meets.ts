// SPDX-License-Identifier: Apache-2.0
// Passes when it is run twice at the same time.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

const folder = process.env["BERTH_REPORT"] ?? "";

it("waits for another of its kind", async () => {
  writeFileSync(join(folder, `met-${process.pid}`), "");
  while (readdirSync(folder).filter((name) => name.startsWith("met-")).length < 2) await pause(20);
});
