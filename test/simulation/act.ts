// SPDX-License-Identifier: Apache-2.0
import type { Step } from "./steps.ts";
import type { Outcome } from "./tally.ts";
import type { World } from "./world.ts";

/** Begins what the step says, and gives whether there was anything to do it with. */
export type Act = (world: World, step: Pick<Step, "a" | "b">) => Outcome;
