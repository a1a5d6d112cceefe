// SPDX-License-Identifier: Apache-2.0
// Which file of tests runs where: every one belongs to exactly one group, and a suite is a list of groups.

/** Files that run alike. */
export interface Group {
  readonly name: string;
  /** From the root of the repository; a file that several groups match is of the first of them. */
  readonly files: readonly string[];
  /** `none`: all files in one process, in their order. `process`: each in a process of its own. */
  readonly isolation: "none" | "process";
  /** Of those with a process of their own, which are begun first: they take longest, and the end does not wait for one; or they must not be left out. */
  readonly first?: readonly string[];
  /** How many processes at a time; with `none`, among how many the files are dealt out, where there are many. */
  readonly concurrency?: number;
  /** Of one test, and of a file in a process of its own. */
  readonly timeoutMs?: number;
  /** A module with globalSetup and globalTeardown, once for all files of the group. */
  readonly globalSetup?: string;
  /** Further arguments of node, and variables, of all processes of the group. */
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** What runs its files, and alone can: it makes what they need. Absent: test/runner/main.ts. */
  readonly by?: string;
}

/** A group in a suite. `runs`: the share of the full number of random runs and repetitions (test/support/runs.ts). */
export interface Part {
  readonly group: string;
  readonly runs: number;
  /** It is run at the same time as the part before it. */
  readonly isBeside?: true;
}

const TEN_MINUTES = 600_000;

/** Those that files share, each started once. */
const CONTROL_PLANES = "test/api/plane-pool.ts";
/** Made once, and run in place of the sources. */
const PROGRAMS = "test/support/programs.ts";
/** Those, and an image that files share, made once. */
const IMAGE = "test/image/image-folder.ts";

/** In the order in which a suite has them: what is quick and finds most comes first. */
export const GROUPS: readonly Group[] = [
  {
    // beside their sources too, but they start processes or need what make build makes
    name: "processes",
    files: [
      "allocator/store/sqlite/store-crash.test.ts",
      "ipam-plugin/agent/{compile-cache,main}.test.ts",
      "ipam-plugin/client/*.test.ts",
      "scripts/advisories.test.ts",
      "webhook/main.test.ts",
    ],
    isolation: "process",
    concurrency: 2,
    globalSetup: PROGRAMS,
  },
  {
    // measures the heap: in a process with all the others it would collect what they left, seventy times
    name: "unit-alone",
    files: ["webhook/review/json-cost.test.ts"],
    isolation: "process",
    timeoutMs: TEN_MINUTES,
  },
  {
    name: "unit",
    files: [
      "{allocator,cli,ipam-plugin,kube,scripts,system,webhook}/**/*.test.ts",
      // they start no processes either, and each in one of its own would load half of the sources anew
      "test/{bench-api,chart,conformance}/*.test.ts",
      "test/api/binaries.test.ts",
      "test/bench/{add-report,chart,options,results,review-line,statistics,table}.test.ts",
      "test/bugs/{catalogue,cluster,node,places,records}.test.ts",
      "test/cluster/{histogram,observer,readme-commands}.test.ts",
      "test/docs/{alerts,drop-ins,errors,kinds-of-others,links,rights,security,several-interfaces}.test.ts",
      "test/model/store.test.ts",
      "test/readme.test.ts",
      // of a process that files share
      "test/runner/promises.test.ts",
      "test/simulation/{claim-reads,doubt,needs}.test.ts",
      "test/support/*.test.ts",
    ],
    isolation: "none",
    concurrency: 2,
    timeoutMs: TEN_MINUTES,
    // collecting what three thousand tests leave costs a twelfth less of the processor's time
    nodeArgs: ["--max-semi-space-size=64"],
  },
  {
    name: "long",
    files: [
      "test/{bugs/mutations,crash/*,hostile/*,image/*,model/*,property/*,release/*,simulation/*,stack/races}.test.ts",
    ],
    isolation: "process",
    concurrency: 3,
    // fifty times kill -9 on a slow machine
    timeoutMs: 6 * TEN_MINUTES,
    globalSetup: IMAGE,
  },
  {
    // loads of one host
    name: "overload",
    files: ["test/overload/*.test.ts"],
    isolation: "process",
    concurrency: 3,
    timeoutMs: 6 * TEN_MINUTES,
    globalSetup: PROGRAMS,
  },
  {
    name: "host",
    files: ["test/**/*.test.ts"],
    isolation: "process",
    // they wait for half of their time
    concurrency: 3,
    timeoutMs: TEN_MINUTES,
    globalSetup: PROGRAMS,
  },
  {
    // they kill, fill and load a machine of their own
    name: "api-alone",
    files: [
      "test/api/{bench,chaos,cilium-driver,cluster-bugs-put-in,disaster,disaster-blocks,scale}.api-test.ts",
    ],
    isolation: "process",
    timeoutMs: 2 * TEN_MINUTES,
  },
  {
    // with the controllers of Kubernetes, and hundreds of pods: long or short
    name: "api-day",
    files: ["test/api/day.api-test.ts"],
    isolation: "process",
    timeoutMs: 6 * TEN_MINUTES,
    globalSetup: PROGRAMS,
  },
  {
    // as long as there is time for
    name: "api-load",
    files: [
      "test/etcd/{chaos,members-die}.etcd-test.ts",
      "test/api/{allocators,blocks-crowds,blocks-sizes,blocks-versions,certificates-rotation,counts,isolation,isolation-forged,rolling-admission,rolling-replicas,rolling-upgrade,store,strangers,workloads-crowds}.api-test.ts",
    ],
    // six seconds, and what matters most of all: on a slow machine there is not the time for all
    first: ["test/etcd/chaos.etcd-test.ts"],
    isolation: "process",
    concurrency: 3,
    timeoutMs: 2 * TEN_MINUTES,
    globalSetup: CONTROL_PLANES,
  },
  {
    name: "api",
    // the first need etcd and nothing else of the control plane
    files: ["test/etcd/*.etcd-test.ts", "test/api/*.api-test.ts"],
    first: [
      "test/api/{access-life,blocks-away,blocks-nodes,cilium,cilium-objects,facts,workloads}.api-test.ts",
      "test/etcd/{agents,clients,hostile}.etcd-test.ts",
    ],
    isolation: "process",
    // they wait for most of their time, the first for elections: among the others that costs nobody anything
    concurrency: 5,
    timeoutMs: 2 * TEN_MINUTES,
    globalSetup: CONTROL_PLANES,
  },
  {
    name: "cluster",
    files: ["test/cluster/*.cluster-test.ts"],
    isolation: "process",
    concurrency: 1,
    by: "test/cluster/run.ts",
  },
];

/** The share of its random runs that a test has where everything is run every day. */
const SHORT = 0.1;

function whole(...groups: readonly string[]): readonly Part[] {
  return groups.map((group) => ({ group, runs: 1 }));
}

/** It waits for most of its twenty minutes. */
const DAY: Part = { group: "api-day", runs: 1, isBeside: true };

/** `cluster-test` is absent: test/cluster/run.ts brings up the cluster for it, and runs the group `cluster`. */
export const SUITES: Readonly<Record<string, readonly Part[]>> = {
  unit: ["unit", "unit-alone"].map((group) => ({ group, runs: SHORT })),
  test: ["unit", "unit-alone", "processes", "host", "long"].map((group) => ({ group, runs: SHORT })),
  soak: [...whole("unit", "unit-alone", "long", "overload", "api-load"), DAY, ...whole("api-alone")],
  proof: [
    ...whole("unit", "unit-alone", "processes", "host", "long", "overload", "api", "api-load"),
    DAY,
    ...whole("api-alone"),
  ],
  "api-test": [{ group: "api", runs: SHORT }],
  "load-test": [
    { group: "overload", runs: SHORT },
    { group: "api-load", runs: SHORT },
    // a day by itself keeps one processor busy, and leaves the others idle
    { group: "api-day", runs: SHORT, isBeside: true },
  ],
};

export function groupNamed(name: string): Group {
  const group = GROUPS.find((one) => one.name === name);
  if (group === undefined) throw new Error(`there is no group of tests named ${name}`);
  return group;
}
