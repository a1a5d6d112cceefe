// SPDX-License-Identifier: Apache-2.0
// Loaded before everything else (node --import) in a process that is to run with one mutation in it.
import { putIn } from "../bugs/put-in.ts";
import { HOSTS_MUTATIONS } from "./hosts-mutations.ts";

const name = process.env["BERTH_MUTATION"] ?? "";
const mutation = HOSTS_MUTATIONS.find((one) => one.name === name);
if (mutation === undefined) throw new Error(`there is no mutation ${JSON.stringify(name)}`);
putIn(mutation);
