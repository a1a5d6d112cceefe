// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { type Mutation, sourceOf } from "./mutations.ts";

/** From here on this process reads the mutated source. Throws when the place of the mutation is not there once. */
export function putIn(mutation: Pick<Mutation, "name" | "file" | "from" | "to">): void {
  const target = sourceOf(mutation).href;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (url !== target) return loaded;
      const source = Buffer.from(loaded.source as Uint8Array).toString("utf8");
      assert.equal(
        source.split(mutation.from).length,
        2,
        `${mutation.name}: its place is gone from ${mutation.file}`,
      );
      return { ...loaded, source: source.replace(mutation.from, () => mutation.to) };
    },
  });
}
