// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  addr,
  attachmentOf,
  bindingTo,
  claimRecord,
  NOW,
  reservationRecord,
  storedAs,
} from "../../test/support/fixtures.ts";
import type { Json } from "../../test/support/objects.ts";
import { bound, facts } from "../testing/facts.ts";
import { object, podWith } from "../testing/pod-with.ts";
import { diagnosePod } from "./pod-diagnosis.ts";

function nodeWith(
  status: "True" | "Unknown",
  annotations: Readonly<Record<string, string>> = {},
): KubeObject {
  const conditions = [{ type: "Ready", status, lastTransitionTime: "2026-01-01T00:00:00Z" }];
  return object({
    kind: "Node",
    metadata: { name: "node-a", annotations },
    status: { conditions },
  });
}

const BUSY =
  "waits: claim shop/mysql-0 (10.20.0.70) is still bound to pod mysql-0 on node node-a, whose sandbox was not seen to end; " +
  "it moves when that node's agent reports, the node is deleted, or it is tainted out-of-service or annotated berth.dev/fenced=true";

describe("what is said of a pod", () => {
  for (const [what, pod, circumstances, words, next] of [
    [
      "node gone",
      podWith(),
      facts(bound),
      BUSY,
      [
        "node node-a is gone: the claim moves when Berth has missed it for 45 s; if it does not, look at the log of its webhook",
      ],
    ],
    [
      "node well",
      podWith(),
      facts(bound, { node: nodeWith("True") }),
      BUSY,
      ["look at Berth's agent on node-a, which has not reported the end of the sandbox"],
    ],
    [
      "node away",
      podWith(),
      facts(bound, { node: nodeWith("Unknown") }),
      BUSY,
      [
        "bring node-a back, and its agent reports",
        "or, when it is certainly off: kubectl taint node node-a node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
        "or, when you have cut it off yourself: kubectl annotate node node-a berth.dev/fenced=true",
      ],
    ],
    [
      "node hidden",
      podWith(),
      facts(bound, { node: "hidden" }),
      BUSY,
      ["ask whoever may read nodes how node-a is"],
    ],
    [
      "the old pod still being deleted",
      podWith({ name: "other" }),
      facts(bound, { holder: podWith({ uid: "uid-of-mysql-0", deleting: true }) }),
      "waits: claim shop/mysql-0 (10.20.0.70) is bound to pod mysql-0 on node node-a, which is still there; it moves when that pod is gone",
      ["pod mysql-0 is still being deleted on node-a; see: kubectl describe pod mysql-0 -n shop"],
    ],
    [
      "addresses of another admission",
      podWith({ annotations: { "berth.dev/claim": "mysql-0", "berth.dev/addresses": "10.20.0.71" } }),
      facts(claimRecord()),
      "waits: claim shop/mysql-0 holds 10.20.0.70 now, and pod mysql-0 was admitted with 10.20.0.71; delete the pod and create it again",
      [],
    ],
    [
      "a reservation that is not there",
      podWith(),
      {
        ...facts(claimRecord()),
        addresses: [{ address: addr("10.20.0.70"), reservation: undefined, pool: undefined }],
      },
      "waits: address 10.20.0.70 of claim shop/mysql-0 is not reserved",
      ["Berth reserves it again within 60 s if it is free; see: berthctl check"],
    ],
    [
      "a reservation that cools",
      podWith(),
      {
        ...facts(claimRecord()),
        addresses: [
          {
            address: addr("10.20.0.70"),
            reservation: storedAs("reservation", reservationRecord("10.20.0.70", { releasedAt: NOW })),
            pool: undefined,
          },
        ],
      },
      "waits: address 10.20.0.70 of claim shop/mysql-0 is reserved for somebody else or being let go",
      ["Berth reserves it again within 60 s if it is free; see: berthctl check"],
    ],
    [
      "a claim that is gone",
      podWith(),
      facts(undefined),
      "was admitted with claim mysql-0, which is gone; it cannot start",
      ["delete pod shop/mysql-0 and create it again"],
    ],
    [
      "a claim that is gone, of a pod that is up",
      podWith({ phase: "Running", podIPs: [{ ip: "10.20.0.70" }] }),
      facts(undefined),
      "was admitted with claim mysql-0, which is gone; it runs with 10.20.0.70, which may be given to another pod, and cannot start again",
      ["delete pod shop/mysql-0 and create it again"],
    ],
    [
      "a claim of a further interface that is gone, of a pod that is up with another network's address",
      podWith({
        ...{ phase: "Running", podIPs: [{ ip: "192.168.0.5" }] },
        annotations: { "berth.dev/claim": "mysql-0", "berth.dev/addresses": "10.30.0.51@net1" },
      }),
      facts(undefined),
      "was admitted with claim mysql-0, which is gone; it runs, and cannot start again",
      ["delete pod shop/mysql-0 and create it again"],
    ],
    [
      "an address that another pod has by its claim, since the node of this one was fenced",
      podWith({ name: "web-a", node: "node-x", phase: "Running", podIPs: [{ ip: "10.20.0.70" }] }),
      facts(bound, { holder: podWith({ uid: "uid-of-mysql-0" }) }),
      "runs with 10.20.0.70, which claim shop/mysql-0 gives to pod mysql-0 on node-a now: two pods may have one address, since the node of this one was fenced, or its claim released, while it ran",
      ["end this one: kubectl delete pod web-a -n shop"],
    ],
    [
      "an address that is kept for another pod, which is on no node yet",
      podWith({ name: "web-a", node: "node-x", phase: "Running", podIPs: [{ ip: "10.20.0.70" }] }),
      facts(
        { ...bound, binding: bindingTo("mysql-0", "", { token: "t" }) },
        { holder: podWith({ uid: "uid-of-mysql-0" }) },
      ),
      "runs with 10.20.0.70, which claim shop/mysql-0 keeps for pod mysql-0 now: two pods may have one address when that starts, since the node of this one was fenced, or its claim released, while it ran",
      ["end this one: kubectl delete pod web-a -n shop"],
    ],
  ] as const) {
    it(`is stuck: ${what}`, () => {
      assert.deepEqual(diagnosePod(pod, circumstances), { words, stuck: true, next });
    });
  }

  it("says of a claim for several interfaces on which they are reported, and which MAC address is to be said", () => {
    const [eth0, net1, mac] = [addr("10.20.0.70"), addr("10.20.0.71"), addr("fe80::ff:fe00:51")];
    const interfaces = { eth0: [eth0], "mac-eth0": [mac], net1: [net1] };
    const addresses = [eth0, net1, mac];
    const claim = { ...bound, binding: own, addresses, request: { addresses, interfaces } };
    const up = facts({ ...claim, status: { attachment: reported } });
    const { words } = diagnosePod(podWith(), up);
    assert.equal(
      words,
      "has its addresses on eth0; whether it has net1 is not reported: see ip address in the pod",
    );
    const waiting = diagnosePod(podWith(), facts({ ...claim, status: {} }));
    assert.match(waiting.next[1] ?? "", /^it pins MAC address 02:00:00:00:00:51 for eth0: .*"mac": true/);
  });

  const own = bindingTo("mysql-0", "node-b", { podUID: "uid-of-the-next" });
  const reported = attachmentOf("mysql-0", { node: "node-b", podUID: "uid-of-the-next" });
  for (const [_what, pod, circumstances, words] of [
    [
      "its own sandbox",
      podWith(),
      facts({ ...bound, binding: own, status: { attachment: reported } }),
      "has its addresses",
    ],
    [
      "bound, no sandbox yet",
      podWith(),
      facts({ ...bound, binding: own }),
      "is bound to its claim, and its sandbox is not reported yet",
    ],
    [
      "bound, and its kubelet tells of the address",
      podWith({ podIPs: [{ ip: "10.20.0.70" }] }),
      facts({ ...bound, binding: own }),
      "has its addresses",
    ],
    [
      "being deleted, and its claim is the next pod's",
      podWith({
        ...{ name: "web-a", node: "node-x", phase: "Running", deleting: true },
        podIPs: [{ ip: "10.20.0.70" }],
      }),
      facts(bound, { holder: podWith({ uid: "uid-of-mysql-0" }) }),
      "is being deleted, and claim shop/mysql-0 with 10.20.0.70 is pod mysql-0's by now: its sandbox has ended, or its node was fenced, or its claim released, while it ran",
    ],
    [
      "being deleted, and nobody tells of a sandbox",
      podWith({ deleting: true }),
      facts({ ...bound, binding: own }),
      "is being deleted, and no sandbox of it is reported",
    ],
    [
      "fenced",
      podWith(),
      facts(bound, { fenced: true }),
      "may have claim shop/mysql-0, and is not bound to it yet",
    ],
    [
      "not scheduled",
      podWith({ node: "" }),
      facts(claimRecord()),
      "is not scheduled yet; its addresses are kept for it",
    ],
    [
      "not scheduled, and no node is of its pool",
      podWith({ node: "" }),
      facts(claimRecord(), { nodeless: 'pool "db" is for nodes with zone=a, and no node has that now' }),
      "is not scheduled yet; its addresses are kept for it",
      ['pool "db" is for nodes with zone=a, and no node has that now', "wait for the scheduler"],
    ],
    [
      "ended",
      podWith({ phase: "Failed" }),
      facts(bound),
      "has ended (Failed) and needs its addresses no more",
    ],
  ] as const) {
    it(`goes on by itself: $what`, () => {
      const podIdentity = diagnosePod(pod, circumstances);
      assert.deepEqual([podIdentity.words, podIdentity.stuck], [words, false]);
    });
  }

  it("says why the scheduler has no node", () => {
    const { metadata, spec } = podWith({ node: "" }).json.value as { metadata: Json; spec: Json };
    const conditions = [{ type: "PodScheduled", status: "False", message: "0/3 nodes are available" }];
    const pod = object({ kind: "Pod", metadata, spec, status: { phase: "Pending", conditions } });
    assert.deepEqual(diagnosePod(pod, facts(claimRecord())).next, [
      "the scheduler says: 0/3 nodes are available",
    ]);
  });
});
