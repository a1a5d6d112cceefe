// SPDX-License-Identifier: Apache-2.0
// What may import what. The rooms and their rules are the table in ARCHITECTURE.md; here is what holds for all of them.
const { readRooms, roomRules } = require("./scripts/rooms.cjs");

const rooms = readRooms();
const PRODUCT = "^(allocator|webhook|ipam-plugin|cli|kube|system)/";
const TESTS = "(\\.test\\.ts$|^test/|/testing/|^allocator/store/contract/)";

module.exports = {
  forbidden: [
    {
      name: "no-cycles",
      severity: "error",
      comment: "these files import each other: move what both need into a file above them",
      from: {},
      to: { circular: true },
    },
    {
      name: "resolvable",
      severity: "error",
      comment: "there is no such file, and no such package in package.json",
      from: {},
      to: { couldNotResolve: true },
    },
    ...roomRules(rooms),
    {
      name: "every-file-in-a-room",
      severity: "error",
      comment: "its folder has no row in the table of rooms in ARCHITECTURE.md",
      from: {
        path: PRODUCT,
        pathNot: `(${TESTS}|^(${rooms.map(({ name }) => name).join("|")})/[^/]+\\.ts$)`,
      },
      to: {},
    },
    {
      name: "no-dev-dependencies-in-the-product",
      severity: "error",
      comment: "an image has no devDependencies: those are for tests and scripts",
      from: { pathNot: `(${TESTS}|^scripts/)` },
      to: { dependencyTypes: ["npm-dev"] },
    },
    {
      name: "domain-has-no-io",
      severity: "error",
      comment:
        "the allocator decides and reads nothing itself: clock, randomness, network and disk are given to it (allocator/base/ports.ts)",
      from: { path: "^allocator/(?!store/)", pathNot: TESTS },
      to: { path: "^(node:)?(fs|fs/promises|net|http|https|child_process|os|crypto|tls|dns|sqlite)$" },
    },
    {
      name: "nobody-imports-a-main",
      severity: "error",
      comment:
        "a main.ts starts a process when it is loaded: move what is needed of it into a file beside it",
      from: {},
      to: { path: "/main\\.ts$" },
    },
    {
      name: "product-does-not-import-tests",
      severity: "error",
      comment: "what tests share is under test/ or in a folder named testing, and not in an image",
      from: { pathNot: `(${TESTS}|^scripts/)` },
      to: { path: TESTS },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    parser: "swc",
    // Tests may import what they like, and use syntax that the parser does not read.
    doNotFollow: { path: "(node_modules|^test/|/testing/)" },
    exclude: { path: "(^build/|\\.test\\.ts$)" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
    },
  },
};
