// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "../../test/support/any-character.ts";
import { linesOf } from "./lines.ts";

async function* cut(text: string, sizes: readonly number[]): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(text: string, sizes: readonly number[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(cut(text, sizes), String)) lines.push(line);
  return lines;
}

describe("linesOf", () => {
  it("gives the same lines however they are cut, characters in the middle too", async () => {
    const line = fc.string({ unit: anyCharacter }).map((text) => text.replaceAll("\n", " "));
    const sizes = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(fc.array(line), sizes, async (lines, cuts) => {
        assert.deepEqual(await read(lines.map((text) => `${text}\n`).join(""), cuts), lines);
      }),
    );
  });

  it("does not give a line that was broken off", async () => {
    assert.deepEqual(await read("one\ntw", [100]), ["one"]);
    assert.deepEqual(await read("", [100]), []);
  });

  it("throws what is made of the body's fault, and ends the body of whoever reads no further", async () => {
    let ended = false;
    const body = async function* () {
      try {
        yield Buffer.from("one\ntwo\n");
        throw new Error("broken");
      } finally {
        ended = true;
      }
    };
    const faultOf = (cause: unknown) => new Error("unreachable", { cause });
    const lines: string[] = [];
    const readAll = async () => {
      for await (const line of linesOf(body(), faultOf)) lines.push(line);
    };
    await assert.rejects(readAll, { message: "unreachable", cause: new Error("broken") });
    assert.deepEqual(lines, ["one", "two"]);
    ended = false;
    for await (const _ of linesOf(body(), faultOf)) break;
    assert.equal(ended, true);
  });
});
