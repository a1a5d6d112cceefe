// SPDX-License-Identifier: Apache-2.0
// Imports go one way: main -> app, agent, commands -> allocator -> its own words. ARCHITECTURE.md draws it.
const only = (name, from, notTo, comment) => ({
  name,
  comment,
  severity: "error",
  from: { path: from, pathNot: "\\.test\\.ts$" },
  to: { path: notTo },
});
module.exports = {
  forbidden: [
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "no-dev-dependencies-in-the-product",
      severity: "error",
      from: { pathNot: "(\\.test\\.ts$|^test/|^scripts/|contract[-a-z]*\\.ts$)" },
      to: { dependencyTypes: ["npm-dev"] },
    },
    only(
      "domain-knows-nobody",
      "^allocator/(?!store/kubernetes)",
      "^(webhook|ipam-plugin|cli|system|test|kube)/",
    ),
    only(
      "kube-knows-the-ports-alone",
      "^kube/",
      "^(webhook|ipam-plugin|cli|system|allocator/(?!(errors|ports)\\.ts$))",
    ),
    only(
      "system-knows-the-ports-alone",
      "^system/",
      "^(webhook|ipam-plugin|cli|kube|allocator/(?!(errors|ports)\\.ts$))",
    ),
    only("domain-does-not-know-stores", "^allocator/[^/]+\\.ts$", "^allocator/store/(?!store\\.ts$)"),
    only(
      "domain-has-no-io",
      "^allocator/[^/]+\\.ts$",
      "^(node:)?(fs|fs/promises|net|http|https|child_process|os|crypto|tls|dns|sqlite)$",
    ),
    only("stores-do-not-know-each-other", "^allocator/store/sqlite", "^allocator/store/(kubernetes|etcd)"),
    only("cni-is-free-of-the-agent", "^ipam-plugin/cni/", "^(ipam-plugin/agent|webhook|cli)/"),
    only("agent-does-not-know-the-webhook", "^ipam-plugin/", "^(webhook|cli)/"),
    only("webhook-does-not-know-the-agent", "^webhook/", "^(ipam-plugin|cli)/"),
    {
      name: "nobody-imports-a-main",
      severity: "error",
      from: {},
      to: { path: "/main\\.ts$" },
    },
    {
      name: "product-does-not-import-tests",
      severity: "error",
      from: { pathNot: "(^test/|/testing/|^scripts/|contract[-a-z]*\\.ts$)" },
      to: { path: "(^test/|/testing/|contract[-a-z]*\\.ts$)" },
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
