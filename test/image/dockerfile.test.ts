// SPDX-License-Identifier: Apache-2.0
// The Dockerfile, without an engine: what it takes, from where, and that its build context is enough for what it runs.
import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { run } from "../support/process.ts";
import { Archive, digestOf } from "./archive.ts";

const ROOT = join(import.meta.dirname, "../..");
const INSTRUCTIONS = ["ARG", "CMD", "COPY", "ENV", "EXPOSE", "FROM", "LABEL", "RUN", "USER", "WORKDIR"];

interface Instruction {
  readonly word: string;
  readonly rest: string;
}

/** Each with the lines that it goes on with. */
function instructionsOf(text: string): readonly Instruction[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const whole = lines
    .join("\n")
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n");
  return whole.map((line) => {
    const [word = "", ...rest] = line.split(" ");
    return { word, rest: rest.join(" ") };
  });
}

/** What an engine would send of this checkout: everything but the first pattern, then what the others say, in their order. */
function contextOf(): readonly string[] {
  const patterns = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
  const [first, ...others] = patterns.filter((line) => line !== "" && !line.startsWith("#"));
  assert.equal(first, "*", "nothing is sent that is not named");
  const taken = others.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
  const left = others.filter((line) => !line.startsWith("!"));
  const files = taken.flatMap((name) => {
    const at = join(ROOT, name);
    assert.ok(existsSync(at), `.dockerignore names ${name}, which is not there`);
    return statSync(at).isDirectory() ? globSync(`${name}/**/*`, { cwd: ROOT }) : [name];
  });
  const without = new Set(
    left.flatMap((pattern) =>
      globSync([pattern, `${pattern}/**/*`], { cwd: ROOT, exclude: ["node_modules"] }),
    ),
  );
  return files.filter((name) => !without.has(name) && statSync(join(ROOT, name)).isFile());
}

describe("the Dockerfile", () => {
  const instructions = instructionsOf(readFileSync(join(ROOT, "Dockerfile"), "utf8"));
  const all = (word: string) => instructions.filter((each) => each.word === word).map(({ rest }) => rest);

  it("has no instruction that takes something from elsewhere", () => {
    const words = [...new Set(instructions.map(({ word }) => word))];
    assert.deepEqual(
      words.filter((word) => !INSTRUCTIONS.includes(word)),
      [],
    );
    for (const command of all("RUN")) {
      assert.match(command, /^(--mount=\S+ )?set -eu; /, "nothing goes on after what failed");
      assert.doesNotMatch(command, /\b(curl|wget|git clone|npm install|npx|pip|:latest)\b/);
      for (const [npm] of command.matchAll(/npm [^;]*/g))
        if (!npm.startsWith("npm ca-")) assert.match(npm, /^npm ci --ignore-scripts /);
    }
  });

  it("begins from a base with a digest, and ends from nothing, as a user without rights", () => {
    const [base] = all("ARG");
    assert.match(base ?? "", /^BASE_IMAGE=\S+@sha256:[0-9a-f]{64}$/);
    const [first, last] = all("FROM");
    assert.match(first ?? "", /^--platform=\$BUILDPLATFORM \$\{BASE_IMAGE\} AS build$/);
    assert.deepEqual([last, all("FROM").length], ["scratch", 2]);
    assert.match(all("USER").at(-1) ?? "", /^[1-9]\d*:[1-9]\d*$/);
  });

  it("installs packages from the lock before it has the sources, which change more often", () => {
    const at = (what: RegExp) => instructions.findIndex(({ word, rest }) => what.test(`${word} ${rest}`));
    const order = [at(/^COPY package\.json package-lock\.json /), at(/^RUN .*npm ci /), at(/^COPY \. \.$/)];
    assert.ok(order[0] !== -1);
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
  });

  it("copies what its context has", () => {
    const context = contextOf();
    for (const copied of all("COPY").filter((rest) => !rest.startsWith("--from="))) {
      for (const name of copied.split(" ").slice(0, -1))
        assert.ok(name === "." || context.includes(name), name);
    }
  });
});

describe("the Dockerfile's build context", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-context-"));
  const context = join(folder, "src");
  let image: Archive;
  before(async () => {
    image = await Archive.open();
    for (const name of contextOf()) cpSync(join(ROOT, name), join(context, name));
    symlinkSync(join(ROOT, "node_modules"), join(context, "node_modules"));
  });
  after(() => {
    image?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function must(program: string, ...args: readonly string[]): Promise<void> {
    const { rc, stderr } = await run(program, args, { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" } });
    assert.equal(rc, 0, stderr);
  }

  it("has no tests, and nothing that is made", () => {
    const sent = contextOf();
    assert.deepEqual(
      sent.filter((name) => /\.test\.ts$|(^|\/)(testing|fuzz|node_modules|build|\.git)\//.test(name)),
      [],
    );
    assert.ok(sent.length > 300);
  });

  it("is enough for the plugin", async () => {
    await must("make", "-C", join(context, "ipam-plugin/client"), `OUT=${join(folder, "berth")}`);
    assert.ok(statSync(join(folder, "berth")).size > 0);
  });

  it("makes the same /opt/berth as a checkout", async () => {
    const tree = join(folder, "opt");
    await must("bash", join(context, "scripts/image-tree.sh"), tree, join(image.root, "opt/berth/bin/berth"));
    const filesOf = (root: string) =>
      globSync("**/*", { cwd: root })
        .filter((name) => statSync(join(root, name)).isFile())
        .map((name) => `${name} ${digestOf(join(root, name))}`)
        .sort();
    assert.deepEqual(filesOf(tree), filesOf(join(image.root, "opt/berth")));
  });
});
