// SPDX-License-Identifier: Apache-2.0
// The documents that say what is defended name tests and policies that there are.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import manifest from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dirname, "../..");
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");
const POLICIES = "charts/berth/files/policies";
const NAMES = globSync("*.yaml", { cwd: join(ROOT, POLICIES) }).flatMap((file) =>
  parseAllDocuments(read(join(POLICIES, file)))
    .map(
      (one) => one.toJS() as { kind: string; metadata: { name: string }; spec: { failurePolicy?: string } },
    )
    .filter(({ kind }) => kind === "ValidatingAdmissionPolicy"),
);

for (const name of [
  "SECURITY.md",
  "docs/threat-model.md",
  "docs/self-assessment.md",
  "docs/adr/0013-who-writes-trust.md",
]) {
  describe(name, () => {
    const text = read(name);

    it("names tests and sources that are there", () => {
      const paths = [...text.matchAll(/`((?:test|ipam-plugin|webhook|charts|scripts)\/[^` ]+)`/g)].map(
        ([, path = ""]) => path,
      );
      const more = [...text.matchAll(/`([a-z-]+\*?\.api-test\.ts)`/g)].map(
        ([, path = ""]) => `test/api/${path}`,
      );
      const absent = [...paths, ...more].filter((path) => globSync(path, { cwd: ROOT }).length === 0);
      assert.deepEqual(absent, []);
    });

    it("names policies that are there", () => {
      const named = [...text.matchAll(/`([a-z.-]+\.berth\.dev)`/g)].map(([, policy = ""]) => policy);
      const known = NAMES.map(({ metadata }) => metadata.name);
      assert.deepEqual(
        named.filter((policy) => !known.includes(policy)),
        [],
      );
    });
  });
}

describe("docs/self-assessment.md", () => {
  const text = read("docs/self-assessment.md");

  it("says how many packages run, and which policy fails open", () => {
    const words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    assert.ok(text.includes(`${words[Object.keys(manifest.dependencies).length]} direct ones at run time`));
    const open = NAMES.filter(({ spec }) => spec.failurePolicy !== "Fail").map(
      ({ metadata }) => metadata.name,
    );
    assert.deepEqual(open, ["host.pods.berth.dev", "system.pods.berth.dev", "pool-access.berth.dev"]);
  });
});
