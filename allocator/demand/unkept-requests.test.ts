// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../base/ports.ts";
import type { PodMetadata } from "../model/identity.ts";
import {
  LONGEST_BYTES,
  ofPod,
  origin,
  owner,
  PINNED,
  POOL,
  RETAIN,
  requestOf,
  STICKY,
} from "./testing/unkept-words.ts";
import { identityOfPods, notKept } from "./unkept-requests.ts";

/** What is said of a template. */
function ofTemplate(kind: string, apiVersion: string, annotations: Labels): string[] {
  const request = requestOf(annotations);
  return notKept({ ...identityOfPods({ kind, apiVersion, name: "edge" }), request });
}

const FOREIGN_SET = origin({
  name: "edge-0",
  owner: owner("StatefulSet", "apps.pingcap.com/v1alpha1", "edge"),
});

describe("what is not kept", () => {
  const kept: readonly (readonly [string, PodMetadata, Labels])[] = [
    [
      "an ordinal of a StatefulSet",
      origin({ name: "mysql-0", owner: owner("StatefulSet", "apps/v1", "mysql") }),
      STICKY,
    ],
    [
      "an ordinal of OpenKruise's StatefulSet",
      origin({ name: "mysql-0", owner: owner("StatefulSet", "apps.kruise.io/v1beta1", "mysql") }),
      STICKY,
    ],
    ["a pod by itself", origin({ name: "ledger" }), STICKY],
    ["a pod by itself with an address", origin({ name: "ledger" }), PINNED],
    [
      "a slot of a Deployment's set",
      origin({ owner: owner("ReplicaSet", "apps/v1", "web-5d9"), labels: { "pod-template-hash": "5d9" } }),
      { ...PINNED, ...STICKY },
    ],
    [
      "a slot of a CloneSet's set",
      origin({ name: "web-a", owner: owner("CloneSet", "apps.kruise.io/v1alpha1", "web") }),
      { ...PINNED, ...STICKY },
    ],
    [
      "an index of a Job",
      origin({
        owner: owner("Job", "batch/v1", "sums"),
        annotations: { "batch.kubernetes.io/job-completion-index": "1" },
      }),
      STICKY,
    ],
    ["any address for a DaemonSet's pod", origin({ owner: owner("DaemonSet", "apps/v1", "edge") }), POOL],
    ["nothing that was asked for", FOREIGN_SET, { "berth.dev/when-deleted": "Retain" }],
  ];
  for (const [who, pod, annotations] of kept) {
    it(`is nothing for ${who}`, () => assert.deepEqual(ofPod(pod, annotations), []));
  }

  it("is said of pods that nothing tells from each other", () => {
    const pod = origin({ generateName: "edge-", owner: owner("DaemonSet", "apps/v1", "edge") });
    const sticky =
      "berth.dev/sticky has no effect on the pods of a DaemonSet, which Berth cannot tell from each other; each keeps its address while it lives; use a StatefulSet";
    assert.deepEqual(ofPod(pod, STICKY), [sticky]);
    assert.deepEqual(ofTemplate("DaemonSet", "apps/v1", STICKY), [sticky]);
    assert.match(ofPod(pod, PINNED).join(), /^an address is held only while a pod of the DaemonSet has it/);
    assert.match(
      ofPod(pod, RETAIN).join(),
      /^berth.dev\/when-deleted=Retain has no effect on the pods of a DaemonSet: .* leave it out$/,
    );
    const unnamed = origin({ generateName: "job-" });
    assert.match(
      ofPod(unnamed, STICKY).join(),
      /^a pod from generateName keeps .* give it a name of its own$/,
    );
    assert.deepEqual(ofPod(unnamed, PINNED), []);
  });

  it("is said of sets whose owner is not read, which share a list and keep nothing between two pods", () => {
    const bare = origin({ generateName: "edge-", owner: owner("ReplicaSet", "apps/v1", "edge") });
    const rollout = { ...bare, labels: { "rollouts-pod-template-hash": "7f" } };
    const ofRollout = { ...rollout, owner: owner("ReplicaSet", "apps/v1", "edge-7f") };
    for (const [said, kind] of [
      [ofPod(bare, PINNED), "ReplicaSet"],
      [ofTemplate("ReplicaSet", "apps/v1", PINNED), "ReplicaSet"],
      [ofPod(ofRollout, PINNED), "Rollout"],
      [ofTemplate("Rollout", "argoproj.io/v1alpha1", PINNED), "Rollout"],
    ] as const) {
      assert.deepEqual(said, [
        `an address is held only while a pod of the ${kind} has it, and not between one pod and the next; list it under "reserved" of its pool, and nobody else gets it who does not ask for it by name`,
      ]);
    }
    const retained = { ...PINNED, "berth.dev/when-deleted": "Retain" };
    for (const [said, kind] of [
      [ofPod(bare, retained), "ReplicaSet"],
      [ofTemplate("ReplicaSet", "apps/v1", retained), "ReplicaSet"],
      [ofPod(ofRollout, retained), "Rollout"],
      [ofTemplate("Rollout", "argoproj.io/v1alpha1", retained), "Rollout"],
    ] as const) {
      assert.equal(
        said[0],
        `berth.dev/when-deleted=Retain has no effect on the pods of a ${kind}: when one is gone its address is free; leave it out`,
      );
      assert.match(said[1] ?? "", /^an address is held only while /);
    }
    const kept = { ...PINNED, ...STICKY };
    for (const [said, kind] of [
      [ofPod(bare, kept), "ReplicaSet"],
      [ofTemplate("ReplicaSet", "apps/v1", kept), "ReplicaSet"],
      [ofPod(ofRollout, kept), "Rollout"],
      [ofTemplate("Rollout", "argoproj.io/v1alpha1", kept), "Rollout"],
    ] as const) {
      assert.equal(
        said[0],
        `berth.dev/sticky has no effect on the pods of a ${kind}: when one is gone its address is free, and the next takes any free entry of the list; leave it out, or use a Deployment`,
      );
      assert.match(said[1] ?? "", /^an address is held only while /);
    }
    assert.match(
      ofTemplate("Rollout", "argoproj.io/v1alpha1", STICKY).join(),
      /which have no identity; give it a set with berth.dev\/ips$/,
    );
  });

  it("is said of a CloneSet's pods without a set", () => {
    const pod = origin({ name: "web-a", owner: owner("CloneSet", "apps.kruise.io/v1alpha1", "web") });
    assert.match(ofPod(pod, STICKY).join(), /no effect on the pods of a CloneSet, .* berth.dev\/ips$/);
    assert.match(ofPod(pod, RETAIN).join(), /when-deleted=Retain has no effect on the pods of a CloneSet: /);
  });

  it("is said of another group's StatefulSet: how long, and how to keep it", () => {
    for (const annotations of [POOL, PINNED]) {
      const said = ofPod(FOREIGN_SET, annotations);
      assert.match(
        said.join(),
        /^Berth does not read a StatefulSet of apps.pingcap.com: an address goes with/,
      );
      assert.match(said.join(), /berth.dev\/sticky keeps it .* an IPClaim made by hand keeps it for good$/);
      assert.deepEqual(ofTemplate("StatefulSet", "apps.pingcap.com/v1alpha1", annotations), said);
    }
    for (const annotations of [STICKY, RETAIN]) {
      assert.match(
        ofPod(FOREIGN_SET, annotations).join(),
        /stays for limits.retention of its pool, whatever/,
      );
    }
    const released = { ...STICKY, "berth.dev/when-deleted": "Release" };
    assert.match(ofPod(FOREIGN_SET, released).join(), /an address goes with its pod/);
  });

  it("is said of a pod that is not called as its StatefulSet calls pods", () => {
    const pod = origin({ name: "canary", owner: owner("StatefulSet", "apps/v1", "mysql") });
    assert.match(ofPod(pod, POOL).join(), /^pod canary is not called like the pods of StatefulSet mysql, /);
    assert.deepEqual(ofPod(pod, STICKY), []);
  });

  it("is said of a virtual machine, which has no pod while it is stopped", () => {
    const launcher = origin({
      name: "virt-launcher-edge-x",
      owner: owner("VirtualMachineInstance", "kubevirt.io/v1", "edge"),
    });
    for (const annotations of [POOL, PINNED, STICKY]) {
      const said = ofPod(launcher, annotations);
      assert.match(
        said.join(),
        /^the address of virtual machine edge is held only while it runs; .* for good$/,
      );
      assert.deepEqual(ofTemplate("VirtualMachine", "kubevirt.io/v1", annotations), said);
    }
    assert.match(
      ofPod(launcher, RETAIN).join(),
      /^the address of virtual machine edge stays for limits.reten/,
    );
  });

  it("fits into a warning, with a long name", () => {
    const long = "a".repeat(40);
    for (const annotations of [STICKY, PINNED, RETAIN, { ...PINNED, ...STICKY }]) {
      for (const [kind, group] of [
        ["Rollout", "argoproj.io/v1"],
        ["DaemonSet", "apps/v1"],
        ["StatefulSet", "workloads.example.org/v1"],
        ["VirtualMachine", "kubevirt.io/v1"],
      ] as const) {
        const said = notKept({
          ...identityOfPods({ kind, apiVersion: group, name: long }),
          request: requestOf(annotations),
        });
        for (const line of said) assert.ok(Buffer.byteLength(line) <= LONGEST_BYTES, line);
      }
    }
  });
});
