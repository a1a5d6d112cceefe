// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { buildDriver, byTag, drive, type Run } from "./driver.ts";

describe("driver", () => {
  let folder = "";
  let driver = "";
  const shell = (name: string) => join(folder, name);
  const runOf = (tag: string, program: string, env: Run["env"] = {}): Run => {
    return { tag, program: shell(program), input: shell("input"), env };
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-driver-"));
    driver = await buildDriver();
    const scripts = {
      echo: '#!/bin/sh\nprintf "%s\\t%s\\n" "$GREETING" "$(cat)"\n',
      fail: "#!/bin/sh\necho no\nexit 3\n",
      pause: "#!/bin/sh\nsleep 0.2\n",
    };
    for (const [name, text] of Object.entries(scripts)) await writeFile(shell(name), text, { mode: 0o755 });
    await writeFile(shell("input"), "configuration");
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("gives each program its input and environment and tells what it printed, on one line", async () => {
    const [one, two] = await drive(driver, [
      runOf("one", "echo", { GREETING: "hello" }),
      runOf("two", "echo", { GREETING: "bye" }),
    ]);
    assert.equal(one?.printed, "hello configuration ");
    assert.equal(two?.printed, "bye configuration ");
    assert.deepEqual([one?.tag, two?.tag], ["one", "two"]);
  });

  it("runs one after the other, and several at once where it is told to", async () => {
    const steps = [
      runOf("a", "pause"),
      runOf("a", "pause"),
      { parallel: 2 },
      runOf("b", "pause"),
      runOf("b", "pause"),
    ];
    const [first, second, third, fourth] = await drive(driver, steps);
    assert.ok(first && second && third && fourth);
    assert.ok(second.startMs >= first.endMs);
    assert.ok(third.startMs >= second.endMs);
    assert.ok(fourth.startMs < third.endMs);
    assert.ok(first.ms >= 200);
  });

  it("throws with the words of a program that fails", async () => {
    await assert.rejects(drive(driver, [runOf("bad", "fail")]), new Error("bad ended with 3: no "));
  });

  it("throws for a program that is not there", async () => {
    await assert.rejects(
      drive(driver, [runOf("bad", "nothing")]),
      /^Error: the driver ended with 2: bench driver: .*nothing: No such file/,
    );
  });
});

describe("byTag", () => {
  it("keeps the order of the runs of a tag", () => {
    const timed = (tag: string, ms: number) => ({ tag, ms, startMs: 0, endMs: 0, printed: "" });
    const found = byTag([timed("a", 2), timed("b", 9), timed("a", 1)]);
    assert.deepEqual(Object.fromEntries(found), { a: [2, 1], b: [9] });
  });
});
