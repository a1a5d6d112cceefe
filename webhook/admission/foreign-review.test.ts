// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import type { ForeignChoice } from "../../allocator/manifest/foreign-requests.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, namespaceObject, pod, review, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Operation } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { mutatePods } from "./mutate-pod.ts";
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

  it("for an address of Berth's that the other system would give is refused, whatever is told, unless that is not read", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const giving = {
      "cni.projectcalico.org/ipAddrsNoIpam": '["10.20.0.128"]',
      "cni.projectcalico.org/floatingIPs": '["10.20.0.128"]',
      "networking.alibaba.com/ip": "10.20.0.128",
    };
    for (const [key, value] of Object.entries(giving)) {
      const annotations = { [key]: value };
      const web = workload("Deployment", "web", { annotations });
      for (const object of [pod("a", { annotations }), web])
        for (const choice of ["warn", "ignore"] as const)
          assert.match(
            deniedAs(await said(world, object, choice)) ?? "",
            /would give 10\.20\.0\.128: that is in a pool of berth's, .*; write it into berth\.dev\/ips/,
          );
      const more = workload("Deployment", "web", { annotations, replicas: 2 });
      assert.equal((await said(world, more, "warn", ["UPDATE", web])).allowed, true);
      const { embedded: _, ...admission } = world.admission;
      const dialects = { calico: "none", hybridnet: "none" } as const;
      const handle = validatePods({ ...admission, dialects });
      assert.equal(
        (await handle(review(pod("a", { annotations })), new AbortController().signal)).allowed,
        true,
      );
    }
  });

  it("that names a pool of Berth's where it does not count, or in a form that is not read, is not left to that system", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { embedded: _, ...admission } = world.admission;
    const mutate = mutatePods({ ...admission, dialects: OWN_OF_EACH });
    const asked = async (annotations: Labels) =>
      await mutate(review(pod("a", { annotations })), new AbortController().signal);
    const [network, subnet] = ["specified-network", "specified-subnet"].map(
      (key) => `networking.alibaba.com/${key}`,
    ) as [string, string];
    assert.match(deniedAs(await asked({ [network]: "db", [subnet]: "zzz" })) ?? "", /"zzz"/);
    assert.match(
      (await asked({ [network]: "theirs", [subnet]: "zzz" })).warnings?.join() ?? "",
      /asks for theirs, zzz, .* left to HybridNet/,
    );
    for (const key of ["ipam.cilium.io/ip-pool", "ipam.antrea.io/ippools", subnet])
      assert.match(
        deniedAs(await asked({ [key]: '["db"]' })) ?? "",
        /is no name of a pool; write the name alone/,
      );
  });

  it("that writes addresses of Berth's as a pool's name is refused, and left where they are not Berth's", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { embedded: _, ...admission } = world.admission;
    const mutate = mutatePods({ ...admission, dialects: OWN_OF_EACH });
    const asked = async (key: string, value: string) =>
      await mutate(review(pod("a", { annotations: { [key]: value } })), new AbortController().signal);
    for (const key of ["ovn.kubernetes.io/ip_pool", "ipam.antrea.io/ippools", "ipam.cilium.io/ip-pool"]) {
      for (const own of ["10.20.0.70-10.20.0.72", "10.19.0.1-10.21.0.1", "10.20.0.70/24", "010.20.0.70"])
        assert.match(deniedAs(await asked(key, own)) ?? "", /no name of a pool/, `${key}: ${own}`);
      assert.equal((await asked(key, "172.31.0.70-172.31.0.72")).allowed, true, key);
    }
  });

  it("that is a CIDR with addresses of Berth's in it is refused as an address, and as a pool of theirs said to have them", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { embedded: _, ...admission } = world.admission;
    const mutate = mutatePods({ ...admission, dialects: OWN_OF_EACH });
    const asked = async (key: string, value: string) =>
      await mutate(review(pod("a", { annotations: { [key]: value } })), new AbortController().signal);
    const calico = "cni.projectcalico.org/";
    for (const own of ["10.20.0.0/16", "10.0.0.0/8", "10.20.0.128/25"]) {
      for (const key of ["ipam.antrea.io/pod-ips", "ovn.kubernetes.io/ip_address"])
        assert.match(deniedAs(await asked(key, own)) ?? "", /has a prefix; write/, `${key}: ${own}`);
      assert.match(deniedAs(await asked(`${calico}ipAddrs`, `["${own}"]`)) ?? "", /is not an IP address/);
      const pools = await asked(`${calico}ipv4pools`, `["172.31.0.0/16","${own}"]`);
      assert.deepEqual(pools.warnings, [
        `annotation ${calico}ipv4pools asks for 172.31.0.0/16, ${own}: that is left to Calico, which may give addresses of berth's pool "db" there; take those out of Calico's pool, or write berth.dev/pools to get one from berth`,
      ]);
    }
    assert.match(
      (await asked(`${calico}ipv4pools`, '["172.31.0.0/16"]')).warnings?.join() ?? "",
      /berth has no such pool: it is left to Calico/,
    );
    assert.equal((await asked("ipam.antrea.io/pod-ips", "172.31.0.0/16")).allowed, true);
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

  it("in a label that is its annotation, too, is told where it names a pool of Berth's", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const labelled = (value: string) =>
      pod("a", { labels: { "networking.alibaba.com/specified-subnet": value } });
    assert.deepEqual((await said(world, labelled("db"), "warn")).warnings, [
      "label networking.alibaba.com/specified-subnet is HybridNet's, and berth reads it as an annotation alone; write it under metadata.annotations to get an address of pool db",
    ]);
    assert.equal((await said(world, labelled("theirs"), "warn")).warnings, undefined);
  });

  it("of a workload itself is told, whoever reads it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const own = { ...ASKING, "cni.projectcalico.org/ipAddrs": '["10.20.0.70"]' };
    const web = workload("Deployment", "web", { own });
    const reported = async (over: Partial<AdmissionContext>) => {
      const { embedded: _, ...admission } = world.admission;
      const handle = validateWorkloads({ ...admission, ...over });
      return (await handle(review(web), new AbortController().signal)).warnings ?? [];
    };
    const words = (key: string) =>
      `annotation cni.projectcalico.org/${key} on the Deployment itself is nothing to berth, and Calico looks at pods; what they ask for stands in spec.template.metadata.annotations`;
    assert.deepEqual((await reported({})).slice(1), [words("ipAddrsNoIpam")]);
    assert.deepEqual(await reported({ dialects: { calico: "none" } }), [
      words("ipAddrs"),
      words("ipAddrsNoIpam"),
    ]);
    assert.equal((await reported({ foreignRequests: "ignore" })).length, 1);
  });
});
