// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted, refTo } from "../../../test/support/fixtures.ts";
import { namespaceObject, pod, statefulPod, workload } from "../../../test/support/objects.ts";
import { BerthError } from "../../base/errors.ts";
import { type KubeObject, readObject } from "../../manifest/kubernetes-object.ts";
import { type AdmittedObjects, openAdmittedObjects } from "./admitted-objects.ts";
import { type Database, openDatabase } from "./database.ts";

async function withAdmittedObjects(
  work: (objects: AdmittedObjects, database: Database) => Promise<void>,
): Promise<void> {
  const database = openDatabase(":memory:");
  try {
    await work(openAdmittedObjects(database), database);
  } finally {
    database.close();
  }
}

const object = (json: unknown): KubeObject => granted(readObject(json));

describe("the admitted objects", () => {
  it("gives objects back as they were kept, the newest of each name", () =>
    withAdmittedObjects(async (admittedObjects) => {
      const made = object(statefulPod("mysql", 0, { uid: "p-1", spec: { nodeName: "node-a" } }));
      await admittedObjects.keep(object(statefulPod("mysql", 0, { uid: "p-0" })));
      await admittedObjects.keep(made);
      assert.deepEqual(await admittedObjects.object("Pod", "shop", "mysql-0"), made);
      const facts = await admittedObjects.pod("shop", "mysql-0");
      assert.deepEqual([facts?.uid, facts?.node], ["p-1", "node-a"]);
      assert.equal(await admittedObjects.pod("bank", "mysql-0"), undefined);
      assert.equal(await admittedObjects.object("Secret", "shop", "mysql-0"), undefined);
    }));

  it("lists the objects of a kind that are there, by namespace and name", () =>
    withAdmittedObjects(async (admittedObjects) => {
      for (const [name, namespace] of [
        ["b", "shop"],
        ["a", "shop"],
        ["z", "bank"],
        ["gone", "bank"],
      ] as const) {
        await admittedObjects.keep(object(pod(name, { namespace })));
      }
      await admittedObjects.keep(object(workload("Deployment", "a")));
      await admittedObjects.forget("Pod", "bank", "gone");
      const names = (await admittedObjects.objects("Pod")).map(
        ({ metadata }) => `${metadata.namespace}/${metadata.name}`,
      );
      assert.deepEqual(names, ["bank/z", "shop/a", "shop/b"]);
    }));

  it("tells a workload that is gone from one that nobody heard of", () =>
    withAdmittedObjects(async (admittedObjects) => {
      assert.equal(await admittedObjects.workload(refTo("StatefulSet", "mysql")), "never admitted");
      await admittedObjects.keep(
        object(
          workload("StatefulSet", "mysql", { uid: "u-1", replicas: 3, spec: { ordinals: { start: 2 } } }),
        ),
      );
      assert.deepEqual(await admittedObjects.workload(refTo("StatefulSet", "mysql")), {
        ...refTo("StatefulSet", "mysql"),
        uid: "u-1",
        replicas: 3,
        start: 2,
        annotations: {},
        hostNetwork: false,
      });
      assert.equal(
        await admittedObjects.workload(refTo("StatefulSet", "mysql", "apps.kruise.io/v1beta1")),
        "unknown",
      );
      assert.equal(await admittedObjects.workload(refTo("Deployment", "mysql")), "never admitted");
      await admittedObjects.forget("StatefulSet", "shop", "mysql");
      assert.equal(await admittedObjects.workload(refTo("StatefulSet", "mysql")), undefined);
      await admittedObjects.forget("Deployment", "shop", "never");
      assert.equal(await admittedObjects.workload(refTo("Deployment", "never")), "never admitted");
    }));

  it("knows a namespace that nobody described by its name", () =>
    withAdmittedObjects(async (admittedObjects) => {
      const bare = { name: "shop", labels: { "kubernetes.io/metadata.name": "shop" }, annotations: {} };
      assert.deepEqual(await admittedObjects.namespace("shop"), bare);
      await admittedObjects.keep(object(namespaceObject("shop", { "berth.dev/pools": "db" }, { team: "a" })));
      const described = await admittedObjects.namespace("shop");
      assert.deepEqual(
        [described?.annotations, described?.labels["team"]],
        [{ "berth.dev/pools": "db" }, "a"],
      );
      await admittedObjects.forget("Namespace", "", "shop");
      assert.deepEqual(await admittedObjects.namespace("shop"), bare);
      assert.equal(await admittedObjects.fenced("node-a"), false);
    }));

  it("gives the same state of a workload and its namespace until one changes: a list may have a thousand entries", () =>
    withAdmittedObjects(async (admittedObjects) => {
      const asking = (address: string) =>
        object(workload("Deployment", "web", { annotations: { "berth.dev/ips": `["${address}"]` } }));
      const of = async () => [
        await admittedObjects.workload(refTo("Deployment", "web")),
        await admittedObjects.namespace("shop"),
      ];
      await admittedObjects.keep(asking("10.20.0.70"));
      const [first, space] = await of();
      const again = await of();
      assert.deepEqual([again[0] === first, again[1] === space], [true, true]);
      await admittedObjects.keep(asking("10.20.0.71"));
      await admittedObjects.keep(object(namespaceObject("shop", { "berth.dev/pools": "db" })));
      const [changed, described] = await of();
      assert.deepEqual([changed === first, described === space], [false, false]);
      assert.deepEqual(described, await admittedObjects.namespace("shop"));
    }));

  it("takes name and namespace from where the object lies, whatever it says itself", () =>
    withAdmittedObjects(async (admittedObjects) => {
      const sent = object({ kind: "Pod", metadata: { annotations: { a: "b" } } });
      await admittedObjects.keep({ ...sent, metadata: { ...sent.metadata, namespace: "shop", name: "a" } });
      const kept = await admittedObjects.object("Pod", "shop", "a");
      assert.deepEqual(
        [kept?.metadata.name, kept?.metadata.namespace, kept?.metadata.annotations],
        ["a", "shop", { a: "b" }],
      );
    }));

  it("tells of each change after it, and of what is under review", () =>
    withAdmittedObjects(async (admittedObjects) => {
      const heard: string[] = [];
      const end = admittedObjects.onChange?.((kind, key) => void heard.push(`${kind} ${key}`));
      const set = object(workload("StatefulSet", "mysql"));
      const reviewed = admittedObjects.expect(set);
      assert.deepEqual(heard.splice(0), ["StatefulSet shop/mysql"]);
      reviewed();
      reviewed();
      assert.deepEqual(heard.splice(0), ["StatefulSet shop/mysql"]);
      await admittedObjects.keep(object(pod("a")));
      await admittedObjects.forget("Pod", "shop", "a");
      const namespace = object(namespaceObject("shop"));
      await admittedObjects.keep({ ...namespace, metadata: { ...namespace.metadata, namespace: "" } });
      assert.deepEqual(heard.splice(0), ["Pod shop/a", "Pod shop/a", "Namespace shop"]);
      end?.();
      await admittedObjects.keep(object(pod("a")));
      assert.deepEqual(heard, []);
    }));

  it("says which object cannot be read", () =>
    withAdmittedObjects(async (admittedObjects, database) => {
      await admittedObjects.keep(object(pod("a")));
      for (const body of ["{", "7", "null", "{}"]) {
        await database.write((sql) => sql.run("UPDATE objects SET body = ?", body));
        const words = "the stored object Pod shop/a cannot be read; delete it and create it again";
        const damaged = new BerthError("STATE_CORRUPT", words, { details: { key: "Pod shop/a" } });
        await assert.rejects(admittedObjects.pod("shop", "a"), damaged, body);
        await assert.rejects(admittedObjects.objects("Pod"), damaged, body);
      }
    }));
});
