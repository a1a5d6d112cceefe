// SPDX-License-Identifier: Apache-2.0
// Loaded before everything else (node --import) in a process that is to run with one mutation in it.
import { mutationNamed } from "./mutations.ts";
import { putIn } from "./put-in.ts";

putIn(mutationNamed(process.env["BERTH_MUTATION"] ?? ""));
