// SPDX-License-Identifier: Apache-2.0

import { READ_ROWS } from "../../allocator/manifest/dialects.ts";

/** Of pods that Berth has no part in. */
export const WARNS = "host.pods.berth.dev";

export const SYSTEM = "system.pods.berth.dev";

/** What asks by its key alone: of the others a policy does not know whether they do. */
export const ASKING = READ_ROWS.filter(
  ({ on, asks, unless, containing, matches }) =>
    on.includes("pod") &&
    ["addresses", "pools"].includes(asks ?? "") &&
    [unless, containing, matches].every((one) => one === undefined),
);
