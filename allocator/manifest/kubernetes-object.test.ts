// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { granted, refusalOf } from "../../test/support/fixtures.ts";
import { statefulPod, workload } from "../../test/support/objects.ts";
import { isRefusal } from "../base/errors.ts";
import {
  Fields,
  malformedField,
  podMetadata,
  podState,
  readObject,
  workloadState,
} from "./kubernetes-object.ts";

describe("Fields", () => {
  const fields = new Fields({
    text: "a",
    flag: true,
    count: 3,
    list: [1],
    map: { a: "b", n: 1 },
    nothing: null,
  });

  it("gives values of the type that is asked for", () => {
    assert.equal(fields.text("text"), "a");
    assert.equal(fields.flag("flag"), true);
    assert.equal(fields.count("count", 9), 3);
    assert.deepEqual(fields.list("list"), [1]);
    assert.deepEqual(fields.texts("map"), { a: "b" });
    assert.equal(fields.at("map").text("a"), "b");
    assert.equal(fields.get("nothing"), null);
  });

  it("gives the absent value for anything else", () => {
    for (const key of ["count", "list", "map", "nothing", "absent", "toString", "__proto__"]) {
      assert.equal(fields.text(key), "");
      assert.equal(fields.flag(key), false);
    }
    for (const value of ["3", -1, 1.5, Number.NaN, 2 ** 53, null]) {
      assert.equal(new Fields({ n: value }).count("n", 9), 9);
    }
    assert.deepEqual([fields.list("text"), fields.texts("list"), fields.at("list").value], [[], {}, {}]);
  });

  it("sees no inherited fields", () => {
    const hostile = new Fields(JSON.parse('{"__proto__":{"text":"inherited"}}'));
    assert.equal(hostile.text("text"), "");
    assert.equal(hostile.at("__proto__").text("text"), "inherited");
    assert.equal(new Fields({}).get("constructor"), undefined);
  });
});

describe("readObject", () => {
  it("refuses what is no object of a kind", () => {
    for (const value of [undefined, null, 7, "Pod", [], {}, { kind: "" }, { kind: 7 }]) {
      assert.equal(refusalOf(readObject(value)), "OBJECT_INVALID: the object has no kind");
    }
  });

  it("reads the outside of an object, whatever is missing in it", () => {
    const { metadata, apiVersion } = granted(
      readObject({ kind: "Pod", metadata: { labels: { a: "b", n: 1 } } }),
    );
    assert.deepEqual(metadata, {
      name: "",
      generateName: "",
      namespace: "",
      uid: "",
      labels: { a: "b" },
      annotations: {},
    });
    assert.equal(apiVersion, "");
  });

  it("takes the controller among the owners", () => {
    const other = { apiVersion: "v1", kind: "ConfigMap", name: "settings", uid: "u-2" };
    const set = { apiVersion: "apps/v1", kind: "StatefulSet", name: "mysql", uid: "u-1", controller: true };
    const owner = (ownerReferences: unknown) =>
      granted(readObject({ kind: "Pod", metadata: { ownerReferences } })).metadata.owner;
    assert.deepEqual(owner([other, set]), {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      name: "mysql",
      uid: "u-1",
    });
    assert.equal(owner([]), undefined);
    assert.equal(owner("junk"), undefined);
  });

  it("takes an owner that controls nothing for none: the pod is its own", () => {
    const reference = { apiVersion: "v1", kind: "ConfigMap", name: "settings", uid: "u-2" };
    const pod = granted(readObject({ kind: "Pod", metadata: { name: "db", ownerReferences: [reference] } }));
    assert.equal(pod.metadata.owner, undefined);
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, maxDepth: 4 }), (metadata) => {
        const object = readObject({ kind: "Pod", metadata, spec: metadata });
        if (isRefusal(object)) return;
        podMetadata(object, "shop");
        podState(object);
        assert.ok(workloadState(object).replicas >= 0);
      }),
    );
  });
});

describe("the parts that patches go into", () => {
  const oddOf = (object: object) => malformedField(granted(readObject({ kind: "Pod", ...object })));

  it("may be absent or null, but for the metadata", () => {
    assert.equal(oddOf({ metadata: {} }), undefined);
    assert.equal(oddOf({ metadata: { annotations: null, labels: {} }, spec: null }), undefined);
    for (const metadata of [undefined, null, [], "a", 1])
      assert.equal(oddOf({ metadata }), "metadata must be an object");
  });

  it("are named when they are something else", () => {
    assert.equal(oddOf({ metadata: { annotations: "a" } }), "metadata.annotations must be an object");
    assert.equal(oddOf({ metadata: { labels: [] } }), "metadata.labels must be an object");
    assert.equal(oddOf({ metadata: {}, spec: true }), "spec must be an object");
  });

  for (const [value, shown] of [
    [5, "5"],
    [true, "true"],
    [["10.20.0.51"], "a list"],
    [{ a: "b" }, "an object"],
  ] as const) {
    it(`have texts alone, and not ${shown}`, () => {
      const metadata = { annotations: { "berth.dev/ips": value } };
      const words = `must be text, not ${shown}; write it in quotes`;
      assert.equal(oddOf({ metadata }), `metadata.annotations["berth.dev/ips"] ${words}`);
      assert.equal(
        oddOf({ metadata: {}, spec: { template: { metadata: { labels: { tier: value } } } } }),
        `spec.template.metadata.labels["tier"] ${words}`,
      );
    });
  }

  it("may have null for a text, which is an empty one", () => {
    const object = granted(readObject({ kind: "Pod", metadata: { annotations: { "berth.dev/ips": null } } }));
    assert.equal(malformedField(object), undefined);
    assert.deepEqual(object.metadata.annotations, { "berth.dev/ips": "" });
  });
});

describe("facts", () => {
  it("of a pod", () => {
    const pod = granted(readObject(statefulPod("mysql", 0, { uid: "p-1", spec: { nodeName: "node-a" } })));
    const facts = podState(pod);
    assert.deepEqual(
      [facts.namespace, facts.name, facts.uid, facts.node],
      ["shop", "mysql-0", "p-1", "node-a"],
    );
    const origin = podMetadata(pod, "other");
    assert.deepEqual([origin.namespace, origin.owner?.kind], ["other", "StatefulSet"]);
  });

  it("has as many slots as the longest list that it can be read to have, and none that is known where one cannot be", () => {
    const slotsOf = (annotations: Record<string, string>) =>
      workloadState(granted(readObject(workload("Deployment", "web", { annotations })))).slots;
    const list = { "berth.dev/ips": "10.20.0.7;10.20.0.8" };
    const networks = (value: string) => ({ ...list, "k8s.v1.cni.cncf.io/networks": value });
    assert.equal(slotsOf(list), 2);
    assert.equal(slotsOf({ "berth.dev/pools": "db" }), 0);
    // left to Multus, which has an address for the one pod that it thinks of, or none that anybody can read
    assert.equal(slotsOf(networks('[{"name":"x","ips":["172.31.9.9"]}]')), 2);
    assert.equal(slotsOf(networks('[{"name":"x","ips":["dhcp"]}]')), 2);
    assert.equal(slotsOf({ ...list, "ipam.antrea.io/pod-ips": "10.99.0.7" }), 2);
    assert.equal(slotsOf({ "berth.dev/ips": "10.20.0.7;x" }), undefined);
    assert.equal(slotsOf({ "berth.dev/pools": "db", "ipam.antrea.io/ippools": "other" }), undefined);
  });

  it("of a workload: one replica and a start of 0 unless it says otherwise", () => {
    const plain = workloadState(granted(readObject(workload("StatefulSet", "mysql"))));
    assert.deepEqual([plain.replicas, plain.start], [1, 0]);
    const spec = { ordinals: { start: 5 } };
    const started = workloadState(
      granted(readObject(workload("StatefulSet", "mysql", { replicas: 0, spec }))),
    );
    assert.deepEqual([started.replicas, started.start], [0, 5]);
  });
});
