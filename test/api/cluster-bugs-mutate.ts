// SPDX-License-Identifier: Apache-2.0
// Loaded before everything else (node --import) in a process that is to run with one mutation in it.
import assert from "node:assert/strict";
import { putIn } from "../bugs/put-in.ts";
import { CLUSTER_MUTATIONS } from "./cluster-bugs-mutations.ts";

putIn(
  CLUSTER_MUTATIONS.find(({ name }) => name === process.env["BERTH_MUTATION"]) ??
    assert.fail("which mutation?"),
);
