// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../support/eventually.ts";
import { Daemon } from "./daemon.ts";

it("a daemon that is kept running is started again when it ends by itself, until it is stopped", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "daemon-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const log = join(folder, "log");
  const starts = () => readFileSync(log, "utf8").split("\n").length - 1;
  const daemon = new Daemon("ends", ["sh", "-c", "echo started"], log);
  daemon.keepRunning();
  await eventually("it was started twice", () => starts() >= 2 || undefined);
  await daemon.stop();
  const before = starts();
  await pause(1_500);
  assert.equal(starts(), before);
});
