// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ForeignChoice } from "../../allocator/manifest/foreign-requests.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, namespaceObject, pod, review, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Operation } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { validateNamespaces } from "./validate-namespace.ts";
import { validatePods } from "./validate-pod.ts";
import { validateWorkloads } from "./validate-workload.ts";

const ASKING = { "cni.projectcalico.org/ipAddrsNoIpam": '["10.0.0.1"]' };
const WORDS =
  "annotation cni.projectcalico.org/ipAddrsNoIpam is Calico's: berth gives no address that no pool has; put it into a pool and write berth.dev/ips";

/** What a replica in a cluster says. */
async function said(
  world: World,
  object: Json,
  foreignRequests: ForeignChoice,
  [operation, oldObject]: readonly [Operation, Json | null] = ["CREATE", null],
) {
  const { embedded: _, ...admission } = world.admission;
  const validate = object["kind"] === "Pod" ? validatePods : validateWorkloads;
  const request = review(object, operation, { oldObject });
  return await validate({ ...admission, foreignRequests })(request, new AbortController().signal);
}

describe("a request to another system", () => {
  const asking = pod("a", { annotations: ASKING });
  const set = workload("StatefulSet", "mysql", { annotations: ASKING, replicas: 1 });

  it("of a pod or template is told, refused or let be", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const object of [asking, set]) {
      assert.deepEqual((await said(world, object, "warn")).warnings, [WORDS]);
      assert.equal(deniedAs(await said(world, object, "refuse")), `REQUEST_INVALID: ${WORDS}, or remove it`);
      assert.equal((await said(world, object, "ignore")).warnings, undefined);
    }
  });

  it("that stood in the template before is no reason to refuse a change of it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const more = workload("StatefulSet", "mysql", { annotations: ASKING, replicas: 2 });
    assert.equal((await said(world, more, "refuse", ["UPDATE", set])).allowed, true);
    const moved = workload("StatefulSet", "mysql", {
      annotations: { "cni.projectcalico.org/ipAddrsNoIpam": '["10.0.0.2"]' },
    });
    assert.equal((await said(world, moved, "refuse", ["UPDATE", set])).allowed, false);
  });

  it("alone gets no default of a namespace that does not send its pods through berth", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const [labels, admitted] of [
      [{}, true],
      [{ "berth.dev/admission": "enabled" }, false],
    ] as const) {
      await send(world, "/validate/namespaces", namespaceObject("shop", { "berth.dev/pools": "db" }, labels));
      assert.equal((await said(world, asking, "warn")).allowed, admitted);
    }
  });

  it("is told on one host, too, and not of a pod on the host's network", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    assert.deepEqual((await send(world, "/validate/pods", asking)).warnings, [WORDS]);
    const host = pod("b", { annotations: ASKING, spec: { hostNetwork: true } });
    assert.equal((await send(world, "/validate/pods", host)).warnings, undefined);
  });

  it("of a namespace, in words that are for pods, is told and refused too, and not for what stood there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { embedded: _, ...admission } = world.admission;
    const asks = { "networking.alibaba.com/specified-network": "underlay" };
    const judged = async (foreignRequests: ForeignChoice, before: Json | null) => {
      const request = review(namespaceObject("shop", asks), before === null ? "CREATE" : "UPDATE", {
        oldObject: before,
      });
      const handle = validateNamespaces({ ...admission, foreignRequests });
      return await handle(request, new AbortController().signal);
    };
    const words =
      "annotation networking.alibaba.com/specified-network is HybridNet's, and berth reads it on pods and templates alone, not on a namespace; write berth.dev/pools here, or it into them";
    assert.deepEqual((await judged("warn", null)).warnings, [words]);
    assert.equal(deniedAs(await judged("refuse", null)), `REQUEST_INVALID: ${words}, or remove it`);
    assert.equal((await judged("refuse", namespaceObject("shop", asks))).allowed, true);
    assert.equal((await judged("ignore", null)).warnings, undefined);
  });

  it("of a workload itself is told, whoever reads it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const own = { ...ASKING, "cni.projectcalico.org/ipAddrs": '["10.20.0.70"]' };
    const web = workload("Deployment", "web", { own });
    const told = async (over: Partial<AdmissionContext>) => {
      const { embedded: _, ...admission } = world.admission;
      const handle = validateWorkloads({ ...admission, ...over });
      return (await handle(review(web), new AbortController().signal)).warnings ?? [];
    };
    const words = (key: string) =>
      `annotation cni.projectcalico.org/${key} on the Deployment itself is nothing to berth, and Calico looks at pods; what they ask for stands in spec.template.metadata.annotations`;
    assert.deepEqual((await told({})).slice(1), [words("ipAddrsNoIpam")]);
    assert.deepEqual(await told({ dialects: { calico: "none" } }), [
      words("ipAddrs"),
      words("ipAddrsNoIpam"),
    ]);
    assert.equal((await told({ foreignRequests: "ignore" })).length, 1);
  });
});
