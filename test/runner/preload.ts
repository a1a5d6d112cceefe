// SPDX-License-Identifier: Apache-2.0
// Loaded before the files of tests (--import).
import "./promises.ts";

// each of them imports node:test, which is to be loaded by the first
for (const module of [
  "./exits.ts",
  "./only.ts",
  "./rejections.ts",
  "./under-way.ts",
  "./seed.ts",
  "./cost.ts",
])
  await import(module);
