// SPDX-License-Identifier: Apache-2.0
// As in mutations.ts, of what only a cluster can have.

export const CLUSTER_MUTATIONS = [
  {
    name: "B1-cache",
    file: "webhook/controllers/gc-controller.ts",
    from: "new GarbageCollector(context, inventory.live, {",
    to: "new GarbageCollector(context, inventory.cached, {",
    caughtBy: "cluster.test.ts",
    test: "B1 ",
  },
  {
    name: "B3-binder",
    file: "allocator/lifecycle/bind.ts",
    from: "if (current.node === pod.node || detached(claim)) return",
    to: "if (evidence.holderThere !== true) return",
    caughtBy: "cluster.test.ts",
    test: "B3 ",
  },
  {
    name: "B4-ack",
    file: "ipam-plugin/agent/claims/cluster/node-claims.ts",
    from: `if (needs(view.pod(pod), seen.record.binding)) return;
    const unread = await recorded?.unreadable(isKnown, seen.record);
    if (unread !== undefined) return this.#keep(claim, unread);
    if (needs(await this.#options.livePod(pod), seen.record.binding)) return;`,
    to: "",
    caughtBy: "cluster.test.ts",
    test: "B4 ",
  },
  {
    name: "B6-pods",
    file: "ipam-plugin/agent/claims/cluster/node-claims.ts",
    from: "if (needs(await this.#options.livePod(pod), seen.record.binding)) return;",
    to: "",
    caughtBy: "cluster.test.ts",
    test: "B6 ",
  },
  {
    name: "B7-list",
    file: "ipam-plugin/agent/claims/cluster/claim-lookup.ts",
    from: "if (!view.isSynced) return needsNoClaim(request, asks, input) ? UNASKED : waitThen(() => notLoaded(node));",
    to: "",
    caughtBy: "cluster.test.ts",
    test: "B7 ",
  },
  {
    name: "B8-binder",
    file: "allocator/lifecycle/bind.ts",
    from: 'const result = await context.store.replace("claim", seen, { ...rest, binding });',
    to: `const now = (await context.store.get("claim", seen.key)) ?? seen;
  const result = await context.store.replace("claim", now, { ...rest, binding });`,
    caughtBy: "cluster.test.ts",
    test: "B8 ",
  },
  {
    name: "B10-lease",
    file: "webhook/controllers/gc-controller.ts",
    from: "() => !over.aborted && term.holds()",
    to: "() => true",
    caughtBy: "cluster.test.ts",
    test: "B10 ",
    harmless: true,
  },
  {
    name: "B13-proof",
    file: "ipam-plugin/agent/claims/cluster/node-claims.ts",
    from: "return isAlive && !reports.mayHaveReleased(seen);",
    to: "return isAlive;",
    caughtBy: "cluster.test.ts",
    test: "B13 ",
  },
  {
    name: "B14-relist",
    file: "kube/watch/reflector.ts",
    from: "for (const key of this.#stale ?? []) this.#drop(key);",
    to: "",
    caughtBy: "cluster.test.ts",
    test: "B14 what went while a watch was broken",
  },
  {
    name: "B14-broken",
    file: "kube/watch/list-watch.ts",
    from: "await this.#recover(error);",
    to: "return;",
    caughtBy: "cluster.test.ts",
    test: "B14 what went while a watch was broken",
  },
  {
    name: "B14-silent",
    file: "kube/watch/watch.ts",
    from: "silent = true;",
    to: "return;",
    caughtBy: "cluster.test.ts",
    test: "B14 what went while a watch was silent",
  },
  {
    name: "B14-view",
    file: "allocator/cache/cache.ts",
    from: "for (const key of this.#stale.get(kind) ?? []) this.#change(kind, key);",
    to: "",
    caughtBy: "cluster.test.ts",
    test: "B14 a view",
  },
];
