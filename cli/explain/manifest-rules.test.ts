// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { DB_POOL, granted } from "../../test/support/fixtures.ts";
import { type Json, pod, workload } from "../../test/support/objects.ts";
import { openWorld } from "../../test/support/world.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { judgeManifest } from "./manifest-rules.ts";

const floating = (address: string) => ({
  annotations: { "cni.projectcalico.org/floatingIPs": `["${address}"]` },
});

describe("what admission says to a manifest", () => {
  it("refuses what another system would give of a pool of Berth's, as a review does", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const view = await loadCache(world.realStore);
    const judge = async (object: Json) =>
      (await judgeManifest(view, world.objects, granted(readObject(object)))).refusal;
    for (const object of [
      pod("web", floating("10.20.0.70")),
      workload("Deployment", "web", floating("10.20.0.70")),
    ])
      assert.match(
        (await judge(object))?.message ?? "",
        /floatingIPs is Calico's, which would give 10\.20\.0\.70/,
      );
    for (const object of [
      pod("web", floating("203.0.113.7")),
      workload("Deployment", "web", floating("203.0.113.7")),
    ])
      assert.equal(await judge(object), undefined);
  });
});
