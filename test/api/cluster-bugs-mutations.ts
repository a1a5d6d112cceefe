// SPDX-License-Identifier: Apache-2.0
// As test/bugs/mutations.ts, of what only an API server can tell: each is noticed by a test of cluster-bugs.api-test.ts.

export interface ClusterMutation {
  readonly name: string;
  readonly file: string;
  /** Stands in the file exactly once, however its lines are broken. */
  readonly from: string;
  readonly to: string;
  /** How the test's name begins. */
  readonly test: string;
  /** What is taken away is no guard: the test passes all the same. */
  readonly harmless?: boolean;
}

export const CLUSTER_MUTATIONS: readonly ClusterMutation[] = [
  {
    name: "B5-preconditions",
    file: "kube/api/client.ts",
    from: "preconditions: { uid, resourceVersion },",
    to: "",
    test: "B5 ",
  },
  {
    name: "B8-revision",
    file: "allocator/store/kubernetes/store.ts",
    from: '{ op: "replace", path: "/metadata/resourceVersion", value: seen.revision },',
    to: "",
    test: "B8 ",
  },
  {
    name: "B10-binder",
    file: "webhook/controllers/binding/controller.ts",
    from: "if (!this.#deps.leadership.leads() && age < FOLLOWER_DELAY_MS) {",
    to: "if (age < 0) {",
    test: "B10 ",
    harmless: true,
  },
  {
    name: "B12-orphans",
    file: "allocator/gc/orphans.ts",
    from: "if (now - at >= ORPHAN_GRACE_MS) orphans.push(stored);",
    to: "",
    test: "B12 ",
  },
  {
    name: "B15-create",
    file: "allocator/store/kubernetes/store.ts",
    from: 'return { kind: "exists", stored: storedOf(kind, there) };',
    to: 'return { kind: "created", stored: storedOf(kind, there) };',
    test: "B15 ",
  },
];
