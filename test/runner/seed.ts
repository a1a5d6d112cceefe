// SPDX-License-Identifier: Apache-2.0
// With BERTH_SEED properties draw the same values each time, as the simulation and the campaigns do.

const seed = Number(process.env["BERTH_SEED"] ?? Number.NaN);
if (Number.isInteger(seed)) (await import("fast-check")).configureGlobal({ seed });

export {};
