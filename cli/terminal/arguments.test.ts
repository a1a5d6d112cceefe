// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readArguments } from "./arguments.ts";

const COMMAND = {
  name: "apply",
  flags: {
    file: { type: "string", short: "f", multiple: true, value: "FILE", about: "" },
    output: { type: "string", short: "o", value: "FORMAT", about: "" },
    "dry-run": { type: "boolean", about: "" },
  },
} as const;

function read(...argv: readonly string[]) {
  return readArguments(COMMAND, argv);
}

describe("readArguments", () => {
  it("reads values, switches and operands in any order", () => {
    const args = read("a", "-f", "one", "--dry-run", "--file=two", "b", "-ojson");
    assert.deepEqual(args.texts("file"), ["one", "two"]);
    assert.equal(args.text("output"), "json");
    assert.equal(args.has("dry-run"), true);
    assert.equal(args.has("help"), false);
    assert.deepEqual(args.operands, ["a", "b"]);
  });

  it("takes - for a value and everything behind -- for operands", () => {
    const args = read("-f", "-", "--", "--dry-run", "-f");
    assert.deepEqual(args.texts("file"), ["-"]);
    assert.deepEqual(args.operands, ["--dry-run", "-f"]);
    assert.equal(args.has("dry-run"), false);
  });

  it("takes an inline value that looks like a flag", () => {
    assert.equal(read("--output=-x").text("output"), "-x");
  });

  it("knows -h and --help of every command", () => {
    assert.equal(read("-h").has("help"), true);
    assert.equal(read("--help").has("help"), true);
  });

  for (const [argv, message] of [
    [["--ouput", "json"], "apply has no flag --ouput; did you mean --output?"],
    [["-x"], "apply has no flag -x; it has --file, --output, --dry-run, --help"],
    [["--constructor"], "apply has no flag --constructor; it has --file, --output, --dry-run, --help"],
    [["-f"], "-f needs a value: -f FILE"],
    [["-f", "--dry-run"], "-f needs a value: -f FILE"],
    [["--file="], "--file needs a value: --file FILE"],
    [["--dry-run=yes"], "--dry-run takes no value; say --dry-run"],
    [["-o", "json", "--output", "yaml"], "--output is given twice"],
  ] as const) {
    it(`refuses ${argv.join(" ")}`, () => {
      assert.throws(() => read(...argv), { name: "BerthError", code: "CONFIG_INVALID", message });
    });
  }
});

describe("Arguments.expect", () => {
  it("gives the operands when they are as many as their names", () => {
    assert.deepEqual(read("x", "y").expect("FIRST", "SECOND"), ["x", "y"]);
  });

  it("names the one that is missing", () => {
    assert.throws(() => read("x").expect("FIRST", "SECOND"), { message: "SECOND is missing" });
  });

  it("names the one too many", () => {
    assert.throws(() => read("x", "y").expect("FIRST"), { message: '"y" is one argument too many' });
  });
});
