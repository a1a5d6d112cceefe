// SPDX-License-Identifier: Apache-2.0
// For run.test.ts: tests that pass, and leave everything behind that tests can leave.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";

it("leaves a folder", () => {
  mkdtempSync(join(tmpdir(), "berth-example-"));
});

it("leaves a process that has no environment", () => {
  spawn("/bin/sleep", ["1234"], { env: {}, stdio: "ignore" }).unref();
});

it("leaves a process in a session of its own", () => {
  spawn("/bin/sleep", ["4321"], { detached: true, stdio: "ignore" }).unref();
});
