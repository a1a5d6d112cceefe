// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { allFiles, filesOf, groupOf, ROOT } from "./files.ts";
import { outcomeOf, sharesOf } from "./outcome.ts";
import { GROUPS, groupNamed, SUITES } from "./suites.ts";

/** Run by test/cluster/run.ts, which brings up what its files need. */
const WITHOUT_A_SUITE = ["cluster"];

describe("suites", () => {
  it("has the files that are asked for, or says so", () => {
    const list = (...args: string[]) =>
      spawnSync(process.execPath, [join(ROOT, "test/runner/main.ts"), "--list", ...args], {
        encoding: "utf8",
      });
    const there = "test/docs/firewall.test.ts";
    assert.equal(list("test", there).stdout.trim(), there);
    const { status, stderr } = list("unit", there);
    assert.notEqual(status, 0);
    assert.match(stderr, /^unit: it has no file of tests called test\/docs\/firewall\.test\.ts\n$/);
  });

  it("refuses a share or a name that would leave out what was asked for, and what another program runs", () => {
    const refusal = (...args: string[]) => {
      const how = [join(ROOT, "test/runner/main.ts"), ...args];
      const { status, stderr } = spawnSync(process.execPath, how, { encoding: "utf8" });
      assert.equal(status, 1, stderr);
      return stderr.trim();
    };
    const file = ["unit", "system/clock.test.ts"] as const;
    for (const share of ["abc", "0", ""])
      assert.equal(
        refusal(...file, "--runs", share),
        `unit: --runs ${share} is no share: 0.1 is a tenth, 1 is all`,
      );
    assert.match(refusal(...file, "--name", "("), /^unit: --name: Invalid regular expression: [^\n]*$/);
    assert.equal(refusal(...file, "--name", ""), "unit: --name has no pattern");
    assert.equal(
      refusal("cluster"),
      "cluster: its files are run by test/cluster/run.ts [FILE...] [--name PATTERN]",
    );
  });

  it("says how what failed on a cluster is run alone: by what brings one up", () => {
    const group = groupNamed("cluster");
    const [name = ""] = filesOf(group);
    const failure = { kind: "failure", file: join(ROOT, name), path: ["a", "b"], selects: 2 } as const;
    const records = [{ ...failure, message: "no", isCancelled: false }];
    const { failures } = outcomeOf(records, { group, files: [name], runs: 1 }, undefined);
    assert.equal(failures[0]?.again, `node_modules/.bin/node test/cluster/run.ts ${name} --name '^a b$'`);
  });

  it("have every file of tests that there is, each in one group", () => {
    const files = spawnSync("git", ["ls-files", "*test.ts"], { cwd: ROOT, encoding: "utf8" });
    const tracked = files.stdout.split("\n").filter((name) => name !== "");
    const grouped = GROUPS.flatMap((group) => filesOf(group));
    assert.deepEqual(
      allFiles().filter((file) => groupOf(file) === undefined),
      [],
    );
    assert.deepEqual([...grouped].sort(), allFiles());
    assert.deepEqual(
      tracked.filter((file) => !grouped.includes(file)),
      [],
    );
  });

  it("have every group in full, and no group that is empty", () => {
    const full = Object.values(SUITES)
      .flat()
      .filter(({ runs }) => runs === 1)
      .map(({ group }) => group);
    for (const group of GROUPS) {
      assert.ok(full.includes(group.name) || WITHOUT_A_SUITE.includes(group.name), group.name);
      assert.ok(filesOf(group).length > 0, group.name);
    }
  });

  it("have no hook outside of a describe where files share a process, whose tests would all have it", () => {
    const shared = GROUPS.filter(({ isolation }) => isolation === "none").flatMap((group) => filesOf(group));
    const wrong = shared.filter((file) =>
      /^(before|after)(Each)?\(/m.test(readFileSync(join(ROOT, file), "utf8")),
    );
    assert.ok(shared.length > 100);
    assert.deepEqual(wrong, []);
  });

  it("deal out many files that share a process to several, each file once, and leave few together", () => {
    const unit = groupNamed("unit");
    const asked = { group: unit, files: filesOf(unit), runs: 1 };
    const shares = sharesOf(asked).map(({ files }) => files);
    assert.equal(shares.length, unit.concurrency);
    assert.deepEqual(shares.flat().sort(), [...asked.files].sort());
    const few = asked.files.slice(0, 20);
    assert.deepEqual(
      sharesOf({ ...asked, files: few }).map(({ files }) => files),
      [few],
    );
    const host = groupNamed("host");
    assert.equal(sharesOf({ group: host, files: filesOf(host), runs: 1 }).length, 1);
  });

  it("begin first with files that are there, each in a process of its own", () => {
    for (const group of GROUPS.filter(({ first }) => first !== undefined)) {
      assert.equal(group.isolation, "process", group.name);
      for (const glob of group.first ?? []) {
        const some = globSync(glob, { cwd: ROOT });
        assert.ok(some.length > 0 && some.every((file) => filesOf(group).includes(file)), glob);
      }
    }
  });

  it("have no group that is not there", () => {
    const known = new Set(GROUPS.map(({ name }) => name));
    for (const { group } of Object.values(SUITES).flat()) assert.ok(known.has(group), group);
  });
});
