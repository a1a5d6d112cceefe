// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ANNOTATION_FORMATS } from "../../allocator/manifest/annotations.ts";
import { FENCED, OUT_OF_SERVICE } from "../../allocator/manifest/node-fence.ts";
import { APPS, KRUISE, type KubeItem } from "../../kube/api/resource.ts";
import { refTo } from "../../test/support/fixtures.ts";
import { namespaceFacts, observedNode, observedPod, observedWorkload } from "./projections.ts";

/** An object as a list has it: without kind and apiVersion, and with what nobody needs. */
function item(more: Readonly<Record<string, unknown>> = {}): KubeItem {
  const { metadata, ...rest } = more;
  const given = {
    ...{ name: "mysql-0", namespace: "shop", uid: "u", resourceVersion: "7" },
    managedFields: [{ manager: "kubelet" }],
    ...(metadata as object | undefined),
  };
  return { metadata: given, ...rest };
}

const [statefulSets, deployments] = APPS;
const [kruiseSets, cloneSets] = KRUISE;
assert.ok(statefulSets && deployments && kruiseSets && cloneSets);

describe("podSeen", () => {
  it("keeps every annotation that asks for or says something, and those labels that say whose the pod is", () => {
    const said = [
      ...new Set(ANNOTATION_FORMATS.map(({ key }) => key)),
      "berth.dev/claim",
      "berth.dev/addresses",
      "berth.dev/token",
      ...["ip_address", "ip_pool.net1", "allocated"].map((one) => `lan.shop.kubernetes.io/${one}`),
    ];
    const more = ["kubernetes.io/config.mirror", "batch.kubernetes.io/job-completion-index"];
    const annotations = Object.fromEntries(
      [...said, ...more, "other", "berth.dev/other"].map((key) => [key, "x"]),
    );
    const labels = { app: "x", "pod-template-hash": "h", "rollouts-pod-template-hash": "r" };
    const seen = observedPod(item({ metadata: { annotations, labels } }));
    assert.deepEqual(Object.keys(seen.annotations).sort(), [...said, ...more].sort());
    assert.deepEqual(seen.labels, { "pod-template-hash": "h", "rollouts-pod-template-hash": "r" });
  });

  it("is small for a pod that has nothing to do with Berth", () => {
    assert.deepEqual(
      observedPod(
        item({ metadata: { labels: { app: "x" } }, spec: { nodeName: "a" }, status: { phase: "Failed" } }),
      ),
      {
        ...{ namespace: "shop", name: "mysql-0", uid: "u", node: "a", labels: {}, annotations: {} },
        ...{ up: false, deleting: false, exempt: false, ended: true },
      },
    );
  });

  it("has all labels of a pod that waits for an address on its node, and of no other", () => {
    const metadata = { labels: { app: "x" } };
    const rows: readonly (readonly [object, boolean])[] = [
      [{ spec: { nodeName: "a" } }, true],
      [{ spec: {} }, false],
      [{ spec: { nodeName: "a", hostNetwork: true } }, false],
      [{ spec: { nodeName: "a" }, status: { podIPs: [{ ip: "10.0.0.9" }] } }, false],
    ];
    for (const [object, has] of rows)
      assert.deepEqual(observedPod(item({ metadata, ...object })).labels, has ? { app: "x" } : {});
  });

  it("tells whether it has ended, whether it is being deleted, and whether it is none of Berth's", () => {
    const rows: [Record<string, unknown>, boolean, boolean, boolean][] = [
      [{ status: { phase: "Running" } }, false, false, false],
      [{ status: { phase: "Succeeded" } }, true, false, false],
      [{ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }, false, true, false],
      [{ spec: { hostNetwork: true } }, false, false, true],
      [{ metadata: { namespace: "kube-system" } }, false, false, true],
      [{ metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }, false, false, true],
    ];
    for (const [object, ended, deleting, exempt] of rows) {
      const seen = observedPod(item(object));
      assert.deepEqual(
        [seen.ended, seen.deleting, seen.exempt],
        [ended, deleting, exempt],
        JSON.stringify(object),
      );
    }
  });

  it("keeps nothing of what others wrote, whatever it is", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), (texts) => {
        const seen = observedPod(item({ metadata: { annotations: texts, labels: texts } }));
        assert.deepEqual([seen.annotations, seen.labels], [{}, {}]);
      }),
    );
  });
});

describe("workloadSeen", () => {
  const annotations = { "berth.dev/ips": "10.20.0.51;10.20.0.52", other: "x" };
  const template = {
    metadata: { labels: { app: "x" }, annotations },
    spec: { hostNetwork: true, serviceAccountName: "s", containers: [{ name: "main" }] },
  };

  it("rebuilds the object from what is read of it", () => {
    const spec = { replicas: 2, ordinals: { start: 5 }, volumeClaimTemplates: [{}], template };
    const { facts, object } = observedWorkload(
      statefulSets,
      item({ metadata: { name: "mysql", annotations }, spec }),
    );
    assert.deepEqual(facts, {
      ...refTo("StatefulSet", "mysql"),
      ...{ uid: "u", replicas: 2, start: 5, hostNetwork: true },
      annotations: { "berth.dev/ips": annotations["berth.dev/ips"] },
    });
    assert.deepEqual(object.json.value, {
      ...{ apiVersion: "apps/v1", kind: "StatefulSet" },
      metadata: {
        name: "mysql",
        namespace: "shop",
        uid: "u",
        annotations: { "berth.dev/ips": annotations["berth.dev/ips"] },
      },
      spec: {
        ...{ replicas: 2, ordinals: { start: 5 } },
        template: {
          metadata: { labels: { app: "x" }, annotations: { "berth.dev/ips": annotations["berth.dev/ips"] } },
          spec: { hostNetwork: true, serviceAccountName: "s" },
        },
      },
    });
  });

  it("counts the entries of a set", () => {
    for (const resource of [deployments, cloneSets]) {
      const spec = {
        strategy: { rollingUpdate: { maxSurge: 1 } },
        updateStrategy: { maxSurge: 1 },
        template,
      };
      const { slots, rolling } = observedWorkload(resource, item({ spec })).facts;
      assert.deepEqual([slots, rolling], [2, { maxSurge: 1 }]);
      assert.equal(observedWorkload(resource, item({ spec: { template } })).facts.slots, 2);
    }
  });

  it("takes one that asks for nothing, or for nonsense", () => {
    assert.deepEqual(observedWorkload(deployments, item()).facts, {
      ...refTo("Deployment", "mysql-0"),
      ...{ uid: "u", replicas: 1, start: 0, slots: 0, annotations: {}, hostNetwork: false },
    });
    const nonsense = { metadata: { annotations: { "berth.dev/ips": "x" } } };
    assert.equal(
      observedWorkload(deployments, item({ spec: { template: nonsense } })).facts.slots,
      undefined,
    );
  });

  it("knows which ordinals OpenKruise leaves out", () => {
    const spec = { replicas: 3, ordinals: { start: 4 }, reserveOrdinals: [9, "2-5"] };
    const { start, replicas, reserved } = observedWorkload(kruiseSets, item({ spec })).facts;
    const holes = [
      { from: 2, to: 5, before: 0 },
      { from: 9, to: 9, before: 4 },
    ];
    assert.deepEqual({ start, replicas, reserved }, { start: 4, replicas: 3, reserved: holes });
  });
});

describe("observedNode of Cilium's annotations", () => {
  const annotations = {
    "network.cilium.io/ipv4-pod-cidr": "10.244.1.0/24",
    "io.cilium.network.ipv4-pod-cidr": "10.244.9.0/24",
    "io.cilium.network.ipv6-pod-cidr": "fd00:10::/64",
    "network.cilium.io/ipv6-pod-cidr": "none",
  };

  it("has what they say where the spec says nothing, and of two spellings today's", () => {
    const seen = observedNode(item({ metadata: { annotations } }));
    assert.deepEqual([seen.podCIDRs, seen.annotatedCIDRs], [undefined, "10.244.1.0/24,fd00:10::/64"]);
    const reported = observedNode(item({ metadata: { annotations }, spec: { podCIDRs: ["10.244.2.0/24"] } }));
    assert.deepEqual([reported.podCIDRs, reported.annotatedCIDRs], ["10.244.2.0/24", undefined]);
    assert.equal(observedNode(item()).annotatedCIDRs, undefined);
  });
});

describe("namespaceFacts", () => {
  it("keeps of requests those that are read", () => {
    const annotations = { "cni.projectcalico.org/ipv4pools": '["a"]', "berth.dev/pools": "a" };
    const seen = namespaceFacts(item({ metadata: { annotations } }), (key) => key.startsWith("berth.dev/"));
    assert.deepEqual(seen.annotations, { "berth.dev/pools": "a" });
  });

  it("keeps every label, for pools select by them, and the defaults for pods", () => {
    const metadata = {
      name: "shop",
      labels: { a: "b" },
      annotations: { "berth.dev/pools": "db", other: "x" },
    };
    const facts = { name: "shop", labels: { a: "b" }, annotations: { "berth.dev/pools": "db" } };
    assert.deepEqual(namespaceFacts(item({ metadata })), facts);
    const going = item({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
    assert.equal(namespaceFacts(going).terminating, true);
    assert.deepEqual(namespaceFacts(item()), { name: "mysql-0", labels: {}, annotations: {} });
  });
});

describe("nodeSeen", () => {
  it("has the addresses that others reach it by", () => {
    const addresses = [
      { type: "Hostname", address: "node-a" },
      { type: "InternalIP", address: "10.0.0.2" },
      { type: "InternalDNS", address: "node-a.example.org" },
      { type: "ExternalIP", address: "192.0.2.1" },
    ];
    assert.equal(observedNode(item({ status: { addresses } })).addresses, "10.0.0.2,192.0.2.1");
  });

  it("is fenced by the taint, whatever its effect, or by an operator's word", () => {
    const tainted = (key: string, effect: string) =>
      item({ spec: { taints: [{ key: "a" }, { key, effect }] } });
    const annotated = (value: string) => item({ metadata: { annotations: { [FENCED]: value } } });
    assert.deepEqual(observedNode(item()), { name: "mysql-0", uid: "u", fenced: false, labels: {} });
    for (const effect of ["NoExecute", "NoSchedule"])
      assert.equal(observedNode(tainted(OUT_OF_SERVICE, effect)).fenced, true);
    assert.equal(observedNode(tainted("node.kubernetes.io/unreachable", "NoExecute")).fenced, false);
    assert.deepEqual(
      ["true", "false", "yes", ""].map((value) => observedNode(annotated(value)).fenced),
      [true, false, false, false],
    );
  });
});
