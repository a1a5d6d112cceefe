// SPDX-License-Identifier: Apache-2.0
// Loaded before everything else (node --import) in a process that is to run with one mutation in it.
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { CLUSTER_MUTATIONS } from "./cluster-bugs-mutations.ts";

const mutation =
  CLUSTER_MUTATIONS.find(({ name }) => name === process.env["BERTH_MUTATION"]) ??
  assert.fail("which mutation?");
const target = new URL(`../../${mutation.file}`, import.meta.url).href;

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
