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
      from: { pathNot: "(\\.test\\.ts$|^test/|^scripts/|contract\\.ts$)" },
      to: { dependencyTypes: ["npm-dev"] },
    },
    only("domain-knows-nobody", "^allocator/", "^(webhook|ipam-plugin|cli|test|kube)/"),
    only("domain-does-not-know-stores", "^allocator/[^/]+\\.ts$", "^allocator/store/(?!store\\.ts$)"),
    only("domain-has-no-io", "^allocator/[^/]+\\.ts$", "^(node:)?(fs|fs/promises|net|http|https|child_process|os|crypto|tls|dns|sqlite)$"),
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
      from: { pathNot: "(\\.test\\.ts$|^test/|^scripts/)" },
      to: { path: "(\\.test\\.ts$|^test/|contract\\.ts$)" },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    parser: "swc",
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^build/" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
