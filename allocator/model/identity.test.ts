// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { canInherit, describeIdentity, identityOf, type PodMetadata, slotName } from "./identity.ts";

function origin(over: Partial<PodMetadata>): PodMetadata {
  return { namespace: "shop", name: "", generateName: "", labels: {}, annotations: {}, ...over };
}

function owned(kind: string, name: string, apiVersion: string, over: Partial<PodMetadata>): PodMetadata {
  return origin({ owner: { apiVersion, kind, name, uid: "u-1" }, ...over });
}

/** What each creator of pods gives them at CREATE, and what follows from it. */
const CREATORS: readonly {
  readonly title: string;
  readonly pod: PodMetadata;
  readonly podIdentity: unknown;
}[] = [
  {
    title: "StatefulSet: the ordinal is in the name",
    pod: owned("StatefulSet", "mysql", "apps/v1", { name: "mysql-12" }),
    podIdentity: {
      kind: "named",
      claim: "mysql-12",
      identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", uid: "u-1", ordinal: 12 },
    },
  },
  {
    title: "StatefulSet whose name looks like a pod of it",
    pod: owned("StatefulSet", "mysql-0", "apps/v1", { name: "mysql-0-3" }),
    podIdentity: {
      kind: "named",
      claim: "mysql-0-3",
      identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql-0", uid: "u-1", ordinal: 3 },
    },
  },
  {
    title: "Advanced StatefulSet with a hole: the name counts, not the index",
    pod: owned("StatefulSet", "mysql", "apps.kruise.io/v1beta1", {
      name: "mysql-7",
      labels: { "apps.kubernetes.io/pod-index": "7" },
    }),
    podIdentity: {
      kind: "named",
      claim: "mysql-7",
      identity: {
        kind: "StatefulSet",
        apiVersion: "apps.kruise.io/v1beta1",
        name: "mysql",
        uid: "u-1",
        ordinal: 7,
      },
    },
  },
  {
    title: "StatefulSet pod that is named otherwise: itself, and no ordinal",
    pod: owned("StatefulSet", "mysql", "apps/v1", {
      name: "db",
      labels: { "apps.kubernetes.io/pod-index": "4" },
    }),
    podIdentity: { kind: "named", claim: "db", identity: { kind: "Pod", apiVersion: "v1", name: "db" } },
  },
  {
    title: "StatefulSet of another API group, which nobody reads: its pod, and the entry that its name says",
    pod: owned("StatefulSet", "tikv", "apps.pingcap.com/v1", { name: "tikv-2" }),
    podIdentity: {
      kind: "named",
      claim: "tikv-2",
      identity: { kind: "Pod", apiVersion: "v1", name: "tikv-2" },
      ordinal: 2,
    },
  },
  {
    title: "Deployment: the ReplicaSet's name without the hash of its template",
    pod: owned("ReplicaSet", "web-5d9c7b", "apps/v1", {
      generateName: "web-5d9c7b-",
      labels: { "pod-template-hash": "5d9c7b" },
    }),
    podIdentity: {
      kind: "set",
      workload: "web",
      identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web" },
    },
  },
  {
    title: "ReplicaSet that no Deployment made",
    pod: owned("ReplicaSet", "web-blue", "apps/v1", { generateName: "web-blue-" }),
    podIdentity: {
      kind: "set",
      workload: "web-blue",
      identity: { kind: "ReplicaSet", apiVersion: "apps/v1", name: "web-blue", uid: "u-1" },
    },
  },
  {
    title: "ReplicaSet of an Argo Rollout",
    pod: owned("ReplicaSet", "web-6f7b", "apps/v1", {
      generateName: "web-6f7b-",
      labels: { "rollouts-pod-template-hash": "6f7b" },
    }),
    podIdentity: {
      kind: "set",
      workload: "web",
      identity: { kind: "Rollout", apiVersion: "argoproj.io/v1alpha1", name: "web" },
    },
  },
  {
    title: "a ReplicaSet of another API group",
    pod: owned("ReplicaSet", "web-5d9c7b", "apps.example.com/v1", {
      generateName: "web-5d9c7b-",
      labels: { "pod-template-hash": "5d9c7b" },
    }),
    podIdentity: { kind: "anonymous", identity: { kind: "Pod", apiVersion: "v1", name: "web-5d9c7b-" } },
  },
  {
    title: "a Job of another API group",
    pod: owned("Job", "train", "batch.volcano.sh/v1alpha1", {
      name: "train-2",
      annotations: { "batch.kubernetes.io/job-completion-index": "2" },
    }),
    podIdentity: { kind: "anonymous", identity: { kind: "Pod", apiVersion: "v1", name: "" } },
  },
  {
    title: "DaemonSet: nothing tells one from the next",
    pod: owned("DaemonSet", "agent", "apps/v1", { generateName: "agent-" }),
    podIdentity: { kind: "anonymous", identity: { kind: "Pod", apiVersion: "v1", name: "agent-" } },
  },
  {
    title: "indexed Job, by annotation",
    pod: owned("Job", "train", "batch/v1", {
      generateName: "train-2-",
      annotations: { "batch.kubernetes.io/job-completion-index": "2" },
    }),
    podIdentity: {
      kind: "named",
      claim: "train-2",
      byToken: true,
      identity: { kind: "Job", apiVersion: "batch/v1", name: "train", uid: "u-1", ordinal: 2 },
    },
  },
  {
    title: "indexed Job, by label",
    pod: owned("Job", "train", "batch/v1", {
      generateName: "train-0-",
      labels: { "batch.kubernetes.io/job-completion-index": "0" },
    }),
    podIdentity: {
      kind: "named",
      claim: "train-0",
      byToken: true,
      identity: { kind: "Job", apiVersion: "batch/v1", name: "train", uid: "u-1", ordinal: 0 },
    },
  },
  {
    title: "Job without indexes, as of a CronJob",
    pod: owned("Job", "report-28999", "batch/v1", { generateName: "report-28999-" }),
    podIdentity: { kind: "anonymous", identity: { kind: "Pod", apiVersion: "v1", name: "report-28999-" } },
  },
  {
    title: "bare pod with a name",
    pod: origin({ name: "licence" }),
    podIdentity: {
      kind: "named",
      claim: "licence",
      identity: { kind: "Pod", apiVersion: "v1", name: "licence" },
    },
  },
  {
    title: "bare pod from generateName",
    pod: origin({ generateName: "licence-" }),
    podIdentity: { kind: "anonymous", identity: { kind: "Pod", apiVersion: "v1", name: "licence-" } },
  },
  {
    title: "virt-launcher: the machine, whichever pod runs it",
    pod: owned("VirtualMachineInstance", "win11", "kubevirt.io/v1", {
      generateName: "virt-launcher-win11-",
    }),
    podIdentity: {
      kind: "named",
      claim: "win11",
      byToken: true,
      identity: { kind: "VirtualMachineInstance", apiVersion: "kubevirt.io/v1", name: "win11", uid: "u-1" },
    },
  },
  {
    title: "CloneSet: the instance id is in the name",
    pod: owned("CloneSet", "web", "apps.kruise.io/v1alpha1", { name: "web-x7k2p" }),
    podIdentity: {
      kind: "named",
      claim: "web-x7k2p",
      identity: { kind: "CloneSet", apiVersion: "apps.kruise.io/v1alpha1", name: "web", uid: "u-1" },
    },
  },
  {
    title: "an owner that nobody here knows",
    pod: owned("Workflow", "etl", "argoproj.io/v1alpha1", { generateName: "etl-" }),
    podIdentity: { kind: "anonymous", identity: { kind: "Pod", apiVersion: "v1", name: "etl-" } },
  },
];

describe("identityOf", () => {
  for (const { title, pod, podIdentity } of CREATORS) {
    it(title, () => {
      assert.deepEqual(identityOf(pod), podIdentity);
    });
  }

  it("takes each ordinal that Kubernetes has", () => {
    for (const ordinal of [0, 1_000_000_000, 2_026_112_901, 2_147_483_647]) {
      const { identity } = identityOf(owned("StatefulSet", "mysql", "apps/v1", { name: `mysql-${ordinal}` }));
      assert.deepEqual([identity.kind, identity.ordinal], ["StatefulSet", ordinal]);
    }
  });

  it("takes no ordinal that is none", () => {
    for (const name of [
      "mysql-",
      "mysql--1",
      "mysql-1.5",
      "mysql-0x1",
      "mysql-2147483648",
      "mysql-12345678901",
      "mysqlx-1",
      "mysql-01",
    ]) {
      const { identity } = identityOf(owned("StatefulSet", "mysql", "apps/v1", { name }));
      assert.deepEqual(identity, { kind: "Pod", apiVersion: "v1", name }, name);
    }
    const index = { "batch.kubernetes.io/job-completion-index": "-1" };
    assert.equal(identityOf(owned("Job", "train", "batch/v1", { annotations: index })).kind, "anonymous");
  });

  it("does not cut a name that only contains the hash", () => {
    const labels = { "pod-template-hash": "web" };
    const podIdentity = identityOf(owned("ReplicaSet", "web", "apps/v1", { labels }));
    assert.equal(podIdentity.kind === "set" && podIdentity.workload, "web");
  });
});

describe("canInherit", () => {
  const of = (kind: string, name: string, over = {}) => ({ kind, apiVersion: "v1", name, ...over });
  const rows: readonly (readonly [boolean, ReturnType<typeof of>, ReturnType<typeof of>])[] = [
    [
      true,
      of("StatefulSet", "mysql", { ordinal: 0 }),
      of("StatefulSet", "mysql", { ordinal: 0, uid: "u-2" }),
    ],
    [true, of("Pod", "mysql-0"), of("StatefulSet", "mysql", { ordinal: 0 })],
    [true, of("CloneSet", "web"), of("Pod", "web-x7k2p")],
    [true, of("Job", "train", { ordinal: 1 }), of("Job", "train", { ordinal: 1, uid: "u-2" })],
    [true, of("VirtualMachineInstance", "win11"), of("VirtualMachineInstance", "win11")],
    [true, of("Deployment", "web", { slot: 1 }), of("Deployment", "web", { slot: 1 })],
    [false, of("Deployment", "web", { slot: 1 }), of("CloneSet", "web", { slot: 1 })],
    [false, of("Deployment", "web", { slot: 1 }), of("ReplicaSet", "web", { slot: 1 })],
    [
      false,
      of("Job", "train", { ordinal: 1, apiVersion: "batch/v1" }),
      of("Job", "train", { ordinal: 1, apiVersion: "batch.volcano.sh/v1alpha1" }),
    ],
    [false, of("Deployment", "web", { slot: 1 }), of("Pod", "web-slot-1")],
    [false, of("Pod", "web-slot-1"), of("Deployment", "web", { slot: 1 })],
    [false, of("Job", "mysql", { ordinal: 0 }), of("StatefulSet", "mysql", { ordinal: 0 })],
    [false, of("StatefulSet", "mysql", { ordinal: 0 }), of("Job", "mysql", { ordinal: 0 })],
    [false, of("VirtualMachineInstance", "win11"), of("Pod", "win11")],
  ];
  for (const [may, before, next] of rows) {
    it(`${describeIdentity(before)} to ${describeIdentity(next)}: ${may}`, () => {
      assert.equal(canInherit(before, next), may);
    });
  }
});

describe("names", () => {
  it("of slots and identities", () => {
    assert.equal(slotName("web", 3), "web-slot-3");
    const set = { kind: "Deployment", apiVersion: "apps/v1", name: "web" };
    assert.equal(describeIdentity(set), "Deployment web");
    assert.equal(describeIdentity({ ...set, slot: 0 }), "Deployment web, slot 0");
    assert.equal(describeIdentity({ ...set, kind: "Job", ordinal: 0 }), "Job web, ordinal 0");
  });
});
