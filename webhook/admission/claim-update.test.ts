// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { BERTHS_FIELDS } from "../../allocator/manifest/claim-spec.ts";
import { MAPPINGS } from "../../allocator/store/kubernetes/crd-mapping.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, pod, review } from "../../test/support/objects.ts";
import { createPod } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const POLICY = new URL("../../charts/berth/files/policies/claims.yaml", import.meta.url);

describe("a claim whose interfaces Berth chose", () => {
  it("is edited by a person as any, and keeps them", async () => {
    await using world = await openWorld({ pools: [DB_POOL, poolRecord("web", "10.30.0.0/24")] });
    await createPod(world, pod("a", { annotations: { "berth.dev/pools": "db/IPv4,web@net1" } }), "a");
    const stored = await world.realStore.get("claim", "shop/a");
    assert.ok(stored !== undefined);
    const spec = JSON.parse(JSON.stringify(MAPPINGS.claim.spec(stored.record))) as Json;
    assert.ok(spec["interfaces"] !== undefined);
    const { embedded: _, ...cluster } = world.admission;
    const { "/validate/claims": handle } = createHandlers(cluster);
    const object = (said: Json) => ({
      ...{ apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", spec: said },
      metadata: { name: "a", namespace: "shop", uid: "u" },
    });
    const update = async (now: Json) => {
      const request = review(object(now), "UPDATE", { oldObject: object(spec) });
      return deniedAs(await handle(request, new AbortController().signal));
    };
    const retention = { ...(spec["retention"] as Json), whenDeleted: "Retain" };
    assert.equal(await update({ ...spec, retention }), "", "allowed");
    const { interfaces: __, ...without } = spec;
    assert.equal(
      await update(without),
      "REQUEST_INVALID: spec.interfaces is written by berth; leave it as it is",
    );
  });
});

describe("the policy on claims", () => {
  it("keeps the fields that Berth alone writes", () => {
    const list = /name: own\s+expression: "\[(.*)\]"/.exec(readFileSync(POLICY, "utf8"))?.[1];
    assert.deepEqual(list?.split(", ").sort(), BERTHS_FIELDS.map((field) => `'${field}'`).sort());
  });
});
