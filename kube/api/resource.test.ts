// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  apiVersionOf,
  asItem,
  CLAIMS,
  collectionPath,
  describeObject,
  itemKey,
  itemPath,
  PODS,
  RESERVATIONS,
} from "./resource.ts";

describe("resources", () => {
  it("have paths by group, scope and name", () => {
    assert.equal(collectionPath(PODS), "/api/v1/pods");
    assert.equal(collectionPath(PODS, "shop"), "/api/v1/namespaces/shop/pods");
    assert.equal(
      itemPath(CLAIMS, { namespace: "shop", name: "mysql-0" }),
      "/apis/berth.dev/v1alpha1/namespaces/shop/ipclaims/mysql-0",
    );
    assert.equal(
      itemPath(RESERVATIONS, { name: "10.20.0.51" }),
      "/apis/berth.dev/v1alpha1/ipreservations/10.20.0.51",
    );
  });

  it("let no name leave its place in a path", () => {
    const path = itemPath(CLAIMS, { namespace: "../../x?", name: "a/b#c" });
    assert.equal(path, "/apis/berth.dev/v1alpha1/namespaces/..%2F..%2Fx%3F/ipclaims/a%2Fb%23c");
  });

  it("are named in words and keys", () => {
    assert.equal(apiVersionOf(PODS), "v1");
    assert.equal(apiVersionOf(CLAIMS), "berth.dev/v1alpha1");
    assert.equal(describeObject(CLAIMS, { namespace: "shop", name: "mysql-0" }), "ipclaims shop/mysql-0");
    const metadata = { name: "a", uid: "u", resourceVersion: "1" };
    assert.equal(itemKey({ metadata }), "a");
    assert.equal(itemKey({ metadata: { ...metadata, namespace: "shop" } }), "shop/a");
  });

  it("are given as objects with name, uid and resourceVersion, and nothing else passes for one", () => {
    const item = { metadata: { name: "a", uid: "u", resourceVersion: "1" }, spec: {} };
    assert.equal(asItem(item), item);
    const others = [null, "text", {}, { metadata: null }, { metadata: { name: "a", uid: "u" } }];
    for (const other of others) {
      assert.throws(() => asItem(other), { code: "STORE_UNAVAILABLE" });
    }
  });
});
