// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { kindOf } from "../../cli/apply/kinds.ts";
import { wrongField } from "../../cli/apply/object-fields.ts";
import type { Json } from "../../cli/apply/object-ref.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { collectionPath } from "../../kube/api/resource.ts";
import { workload } from "../support/objects.ts";
import { havePartsOrSkip } from "./binaries.ts";
import type { ControlPlane } from "./plane.ts";
import { openControlPlane } from "./shared-plane.ts";

interface Schemas {
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties: object }>> };
}

const IPS = "berth.dev/ips";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("fields of applied objects on one host", () => {
    let plane: ControlPlane;
    let connection: Connection;
    before(async () => {
      plane = await openControlPlane();
      connection = plane.connect();
    });
    after(() => plane?.close());

    /** Every field that the API server has of the type, without a value. */
    const allOf = async (group: string, type: string): Promise<Json> => {
      const { body } = await connection.call({ method: "GET", path: `/openapi/v3/${group}` });
      const schema = (body as Schemas).components.schemas[type];
      assert.ok(schema, `${group} has no ${type}`);
      return Object.fromEntries(Object.keys(schema.properties).map((field) => [field, null]));
    };
    const wrongIn = (apiVersion: string, kind: string, json: Json) => {
      const facts = kindOf(apiVersion, kind);
      assert.ok(facts);
      return wrongField({ kind: facts, json: { apiVersion, kind, ...json } })?.message;
    };

    it("are all that the API server knows", async () => {
      const [core, apps] = ["io.k8s.api.core.v1", "io.k8s.api.apps.v1"];
      const metadata = await allOf("api/v1", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
      const pod = await allOf("api/v1", `${core}.PodSpec`);
      assert.ok("hostNetwork" in pod && "annotations" in metadata);
      const ordinals = await allOf("apis/apps/v1", `${apps}.StatefulSetOrdinals`);
      const template = { ...(await allOf("api/v1", `${core}.PodTemplateSpec`)), metadata, spec: pod };
      for (const [apiVersion, kind, group, type, more] of [
        ["v1", "Namespace", "api/v1", core, {}],
        ["v1", "Pod", "api/v1", core, {}],
        ["apps/v1", "StatefulSet", "apis/apps/v1", apps, { template, ordinals }],
        ["apps/v1", "Deployment", "apis/apps/v1", apps, { template }],
      ] as const) {
        const spec = { ...(await allOf(group, `${type}.${kind}Spec`)), ...more };
        const top = await allOf(group, `${type}.${kind}`);
        assert.equal(wrongIn(apiVersion, kind, { ...top, metadata, spec }), undefined, kind);
      }
    });

    for (const change of [
      { metadata: { name: "web", annotation: { [IPS]: "10.20.0.51" } } },
      { metadata: { name: "web", annotations: { [IPS]: 5 } } },
      { metadata: { name: "web", annotations: { [IPS]: ["10.20.0.51"] } } },
      { metadata: { name: "web", labels: { tier: true } } },
      { spec: { replicas: "2" } },
      { spec: { replica: 2 } },
      { spec: { templat: {} } },
      { spec: { ordinals: { strat: 1 } } },
      { spec: { template: { annotations: {} } } },
      { spec: { template: { spec: { hostnetwork: true } } } },
      { spec: { template: { spec: { hostNetwork: "true" } } } },
      { spec: { template: { spec: { annotations: {} } } } },
    ]) {
      it(`are refused as the API server refuses them: ${JSON.stringify(change)}`, async () => {
        const object = { ...workload("StatefulSet", "web"), ...change };
        assert.notEqual(wrongIn("apps/v1", "StatefulSet", object), undefined);
        const kind = kindOf("apps/v1", "StatefulSet");
        assert.ok(kind);
        const { status } = await connection.call({
          method: "POST",
          path: collectionPath(kind, "default"),
          query: { dryRun: "All", fieldValidation: "Strict" },
          body: { apiVersion: "apps/v1", kind: "StatefulSet", ...object },
        });
        assert.equal(status, 400);
      });
    }
  });
}
