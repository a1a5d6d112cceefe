// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { ROOT } from "./files.ts";
import { groupNamed } from "./suites.ts";
import { importersOf, watch } from "./watch.ts";

describe("watch", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "berth-watch-"));
    mkdirSync(join(root, "system/inner"), { recursive: true });
    save("system/a.ts", "export const a = 1;\n");
    save("system/inner/a.test.ts", 'import { a } from "../a.ts";\n');
    save("system/b.test.ts", "");
  });
  afterEach(() => rmSync(root, { recursive: true }));

  /** As editors do, and git: another file takes the name. */
  function save(file: string, text: string): void {
    writeFileSync(join(root, `${file}.new`), text);
    renameSync(join(root, `${file}.new`), join(root, file));
  }

  /** Does `deeds`, each after a run, and gives what was run: with the last deed the run is interrupted. */
  async function watched(...deeds: (() => void)[]): Promise<readonly (readonly string[])[]> {
    const runs: (readonly string[])[] = [];
    const asked = () => {
      const files = globSync("system/**/*.test.ts", { cwd: root }).sort();
      return [{ group: groupNamed("unit"), files, runs: 1 }];
    };
    await watch(
      asked,
      async (some) => {
        runs.push(some.flatMap(({ files }) => files));
        deeds.shift()?.();
        return { isInterrupted: runs.length > 1 && deeds.length === 0 };
      },
      root,
    );
    return runs;
  }

  it("runs what imports a file, however often that is replaced, and ends with an interrupt", async () => {
    const again = (n: number) => () => save("system/a.ts", `export const a = ${n};\n`);
    const of = ["system/inner/a.test.ts"];
    const all = ["system/b.test.ts", ...of];
    assert.deepEqual(await watched(again(2), again(3), again(4), () => {}), [all, of, of, of]);
  });

  it("runs a file of tests that is new, in a folder that is new too", async () => {
    const runs = await watched(
      () => {
        mkdirSync(join(root, "system/new"));
        save("system/new/c.test.ts", "");
      },
      () => save("system/new/d.test.ts", ""),
      () => {},
    );
    assert.deepEqual(runs.slice(1), [["system/new/c.test.ts"], ["system/new/d.test.ts"]]);
  });

  it("goes on with a folder that was taken away and is there again", async () => {
    const runs = await watched(
      () => {
        rmSync(join(root, "system/inner"), { recursive: true });
        mkdirSync(join(root, "system/inner"));
        save("system/inner/a.test.ts", 'import { a } from "../a.ts";\n\n');
      },
      () => save("system/inner/a.test.ts", 'import { a } from "../a.ts";\n'),
      () => {},
    );
    assert.deepEqual(runs.slice(1), [["system/inner/a.test.ts"], ["system/inner/a.test.ts"]]);
  });

  it("has importers of importers, and no file that imports none of it", () => {
    save("system/inner/c.ts", 'export { a } from "../a.ts";\n');
    save("system/c.test.ts", 'import { a } from "./inner/c.ts";\n');
    const found = importersOf(new Set(["system/a.ts"]), root);
    assert.deepEqual([...found].sort(), [
      "system/a.ts",
      "system/c.test.ts",
      "system/inner/a.test.ts",
      "system/inner/c.ts",
    ]);
  });

  it("ends with an interrupt, as a command", async () => {
    const file = "ipam-plugin/client/client-alone.test.ts";
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const args = ["test/runner/main.ts", "processes", file, "--watch"];
    const runner = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { ...env, BERTH_REPORT: root },
      stdio: "ignore",
    });
    const ended = once(runner, "exit");
    while (!isUnderWay(root)) await pause(20);
    runner.kill("SIGINT");
    assert.deepEqual(await ended, [130, null]);
  });

  it("says that it waits", async () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const args = ["test/runner/main.ts", "unit", "allocator/base/backoff.test.ts", "--watch"];
    const runner = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { ...env, BERTH_REPORT: root },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const ended = once(runner, "exit");
    let said = "";
    for await (const part of runner.stdout.setEncoding("utf8")) {
      said += part;
      if (said.endsWith("\nwaiting for a file to change; Ctrl-C ends\n")) runner.kill("SIGINT");
    }
    await ended;
    assert.match(said, /\nunit: passed, .*\n(?:ℹ .*\n)+\nwaiting for a file to change; Ctrl-C ends\n$/);
  });
});

/** Whether a run that reports there has a process for a file of tests. */
function isUnderWay(report: string): boolean {
  return readdirSync("/proc").some((pid) => {
    try {
      const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
      return (
        variables.includes(`BERTH_REPORT=${report}`) &&
        variables.some((one) => one.startsWith("NODE_TEST_CONTEXT="))
      );
    } catch {
      return false;
    }
  });
}
