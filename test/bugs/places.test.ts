// SPDX-License-Identifier: Apache-2.0
// Looked at by whoever runs the unit tests: a change that takes a bug's place away has to give it another one.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { it } from "node:test";
import { messageOf } from "../../allocator/base/errors.ts";
import { CLUSTER_MUTATIONS } from "../api/cluster-bugs-mutations.ts";
import { MUTATIONS } from "./mutations.ts";
import { mutated } from "./put-in.ts";

const ROOT = resolve(import.meta.dirname, "../..");

// A few are put in each time; that all of them still can be is seen each time.
it("the places where bugs are put in are there, each once", async () => {
  const gone: string[] = [];
  for (const mutation of [...MUTATIONS, ...CLUSTER_MUTATIONS]) {
    const source = await readFile(join(ROOT, mutation.file), "utf8");
    try {
      mutated(source, mutation);
    } catch (error) {
      gone.push(messageOf(error));
    }
  }
  assert.deepEqual(gone, []);
});

it("a place is found however its lines are broken, and only when it is there once", () => {
  const mutation = { name: "X", file: "x.ts", from: "if (a) call(one, [two]);", to: "" };
  assert.equal(
    mutated("x; if (a)\n  call(\n    one,\n    [\n      two,\n    ],\n  );\ny;", mutation),
    "x; \ny;",
  );
  for (const source of ["if (a) call(one, [too]);", "if (a) call(one, [two]); if (a) call(one, [two]);"])
    assert.throws(() => mutated(source, mutation), /^AssertionError.*X: its place is gone from x\.ts/s);
  assert.throws(() => mutated("call();", { ...mutation, from: "call()", to: "call()" }), /nothing changes/);
});
