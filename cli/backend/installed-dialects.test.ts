// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { installedDialects } from "./installed-dialects.ts";

function webhook(name: string, env: readonly object[]): KubeObject {
  const labels = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": "webhook" };
  const template = { spec: { containers: [{ name: "webhook", env }] } };
  const metadata = { namespace: "net", name, uid: "u", labels };
  return readObject({ kind: "Deployment", metadata, spec: { template } }) as KubeObject;
}

const ALL = { name: "BERTH_DIALECTS", value: "calico=all" };

describe("what the installation reads of other systems", () => {
  it("is what its Deployment says, under its usual name or another", async () => {
    const usual = { object: async () => webhook("berth-webhook", [ALL]), objects: async () => [] };
    assert.deepEqual(await installedDialects(usual), { ...OWN_OF_EACH, calico: "all" });
    const named = { object: async () => undefined, objects: async () => [webhook("ours-webhook", [ALL])] };
    assert.deepEqual(await installedDialects(named), { ...OWN_OF_EACH, calico: "all" });
    const silent = { object: async () => webhook("berth-webhook", []), objects: async () => [] };
    assert.deepEqual(await installedDialects(silent), OWN_OF_EACH);
  });

  it("is not known where there is none, or this user may not read it", async () => {
    assert.equal(
      await installedDialects({ object: async () => undefined, objects: async () => [] }),
      undefined,
    );
    const refused = async () => {
      throw new BerthError("STORE_READ_ONLY", "forbidden");
    };
    assert.equal(await installedDialects({ object: refused, objects: async () => [] }), undefined);
  });
});
