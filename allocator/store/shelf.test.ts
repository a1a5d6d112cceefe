// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { granted } from "../../test/support/fixtures.ts";
import { namespaceObject, pod, statefulPod, workload } from "../../test/support/objects.ts";
import { BerthError } from "../errors.ts";
import { type KubeObject, readObject } from "../kube-object.ts";
import { type Database, openDatabase } from "./database.ts";
import { openShelf, type Shelf } from "./shelf.ts";

async function withShelf(work: (shelf: Shelf, database: Database) => Promise<void>): Promise<void> {
  const database = openDatabase(":memory:");
  try {
    await work(openShelf(database), database);
  } finally {
    database.close();
  }
}

const object = (json: unknown): KubeObject => granted(readObject(json));

describe("the shelf", () => {
  it("gives objects back as they were kept, the newest of each name", () =>
    withShelf(async (shelf) => {
      const made = object(statefulPod("mysql", 0, { uid: "p-1", spec: { nodeName: "node-a" } }));
      await shelf.keep(object(statefulPod("mysql", 0, { uid: "p-0" })));
      await shelf.keep(made);
      assert.deepEqual(await shelf.object("Pod", "shop", "mysql-0"), made);
      const facts = await shelf.pod("shop", "mysql-0");
      assert.deepEqual([facts?.uid, facts?.node], ["p-1", "node-a"]);
      assert.equal(await shelf.pod("bank", "mysql-0"), undefined);
      assert.equal(await shelf.object("Secret", "shop", "mysql-0"), undefined);
    }));

  it("lists the objects of a kind that are there, by namespace and name", () =>
    withShelf(async (shelf) => {
      for (const [name, namespace] of [
        ["b", "shop"],
        ["a", "shop"],
        ["z", "bank"],
        ["gone", "bank"],
      ] as const) {
        await shelf.keep(object(pod(name, { namespace })));
      }
      await shelf.keep(object(workload("Deployment", "a")));
      await shelf.forget("Pod", "bank", "gone");
      const names = (await shelf.objects("Pod")).map(
        ({ metadata }) => `${metadata.namespace}/${metadata.name}`,
      );
      assert.deepEqual(names, ["bank/z", "shop/a", "shop/b"]);
    }));

  it("tells a workload that is gone from one that nobody heard of", () =>
    withShelf(async (shelf) => {
      assert.equal(await shelf.workload("StatefulSet", "shop", "mysql"), "unknown");
      await shelf.keep(
        object(
          workload("StatefulSet", "mysql", { uid: "u-1", replicas: 3, spec: { ordinals: { start: 2 } } }),
        ),
      );
      assert.deepEqual(await shelf.workload("StatefulSet", "shop", "mysql"), {
        kind: "StatefulSet",
        namespace: "shop",
        name: "mysql",
        uid: "u-1",
        replicas: 3,
        start: 2,
      });
      assert.equal(await shelf.workload("Deployment", "shop", "mysql"), "unknown");
      await shelf.forget("StatefulSet", "shop", "mysql");
      assert.equal(await shelf.workload("StatefulSet", "shop", "mysql"), undefined);
      await shelf.forget("Deployment", "shop", "never");
      assert.equal(await shelf.workload("Deployment", "shop", "never"), "unknown");
    }));

  it("knows a namespace that nobody described by its name", () =>
    withShelf(async (shelf) => {
      const bare = { name: "shop", labels: { "kubernetes.io/metadata.name": "shop" }, annotations: {} };
      assert.deepEqual(await shelf.namespace("shop"), bare);
      await shelf.keep(object(namespaceObject("shop", { "berth.dev/pools": "db" }, { team: "a" })));
      const described = await shelf.namespace("shop");
      assert.deepEqual(
        [described?.annotations, described?.labels["team"]],
        [{ "berth.dev/pools": "db" }, "a"],
      );
      await shelf.forget("Namespace", "", "shop");
      assert.deepEqual(await shelf.namespace("shop"), bare);
      assert.equal(await shelf.fenced("node-a"), false);
    }));

  it("takes name and namespace from where the object lies, whatever it says itself", () =>
    withShelf(async (shelf) => {
      const sent = object({ kind: "Pod", metadata: { annotations: { a: "b" } } });
      await shelf.keep({ ...sent, metadata: { ...sent.metadata, namespace: "shop", name: "a" } });
      const kept = await shelf.object("Pod", "shop", "a");
      assert.deepEqual(
        [kept?.metadata.name, kept?.metadata.namespace, kept?.metadata.annotations],
        ["a", "shop", { a: "b" }],
      );
    }));

  it("says which object cannot be read", () =>
    withShelf(async (shelf, database) => {
      await shelf.keep(object(pod("a")));
      for (const body of ["{", "7", "null", "{}"]) {
        await database.write((sql) => sql.run("UPDATE objects SET body = ?", body));
        const words = "the stored object Pod shop/a cannot be read; delete it and create it again";
        const damaged = new BerthError("STATE_CORRUPT", words, { details: { key: "Pod shop/a" } });
        await assert.rejects(shelf.pod("shop", "a"), damaged, body);
        await assert.rejects(shelf.objects("Pod"), damaged, body);
      }
    }));
});
