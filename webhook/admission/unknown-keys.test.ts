// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import { type DialectChoice, type Dialects, OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  claimObject,
  deniedAs,
  type Json,
  namespaceObject,
  ownedBy,
  pod,
  poolObject,
  review,
  workload,
} from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { validatePods } from "./validate-pod.ts";

const STRANGE = { "berth.dev/ip": "10.20.0.51" };
const REFUSED =
  "REQUEST_INVALID: annotation berth.dev/ip: berth knows no such annotation; did you mean berth.dev/ips?";

const SPEC = { ranges: [{ cidr: "10.90.0.0/24" }] };

function annotated(object: Json, annotations: Json): Json {
  return { ...object, metadata: { ...(object["metadata"] as Json), annotations } };
}

/** What a replica in a cluster says of a change of a pod. */
async function updated(world: World, before: Json, now: Json, dialects?: Dialects) {
  const { embedded: _, ...admission } = world.admission;
  const request = review(now, "UPDATE", { oldObject: before });
  return await validatePods(dialects === undefined ? admission : { ...admission, dialects })(
    request,
    new AbortController().signal,
  );
}

describe("an unknown annotation of Berth's own", () => {
  const set = workload("StatefulSet", "mysql", { annotations: STRANGE });
  for (const [what, route, object] of [
    ["pod", "/mutate/pods", pod("a", { annotations: STRANGE })],
    ["template", "/validate/workloads", set],
  ] as const) {
    it(`on a ${what} is refused with the one that was meant`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      assert.equal(deniedAs(await send(world, route, object)), REFUSED);
    });
  }

  it("on a namespace is refused with what belongs there", async () => {
    await using world = await openWorld();
    const reported = await send(world, "/validate/namespaces", namespaceObject("shop", STRANGE));
    assert.match(
      deniedAs(reported),
      /^REQUEST_INVALID: annotation berth.dev.ip: an address belongs to one pod/,
    );
  });

  it("on a pool or claim is refused when it is brought", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claim = claimObject("a", { identity: { kind: "Pod" }, request: { pools: ["db"] } });
    for (const [route, object] of [
      ["/validate/pools", poolObject("web", SPEC)],
      ["/validate/claims", claim],
    ] as const) {
      const strange = annotated(object, STRANGE);
      assert.match(
        deniedAs(await send(world, route, strange)),
        /^REQUEST_INVALID: .* remove the annotation$/,
      );
    }
  });

  it("that stood there before is no reason to refuse a change", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const shop = namespaceObject("shop", STRANGE);
    const labelled = namespaceObject("shop", STRANGE, { team: "shop" });
    const reported = await send(world, "/validate/namespaces", labelled, {
      operation: "UPDATE",
      oldObject: shop,
    });
    assert.equal(reported.allowed, true);
    const scaled = workload("StatefulSet", "mysql", { annotations: STRANGE, replicas: 2 });
    const more = await send(world, "/validate/workloads", scaled, { operation: "UPDATE", oldObject: set });
    assert.equal(more.allowed, true);
    const old = pod("a", { annotations: STRANGE });
    assert.equal((await updated(world, old, old)).allowed, true);
    assert.equal(deniedAs(await updated(world, pod("a"), old)), REFUSED);
  });

  it("on a host's network, or on a workload itself, is no request", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const host = pod("a", { annotations: STRANGE, spec: { hostNetwork: true } });
    assert.equal((await send(world, "/mutate/pods", host)).allowed, true);
    const reported = await send(
      world,
      "/validate/workloads",
      annotated(workload("StatefulSet", "web", {}), STRANGE),
    );
    assert.equal(reported.allowed, true);
    assert.match(reported.warnings?.join() ?? "", /annotation berth.dev\/ip: berth knows no such annotation/);
  });
});

describe("a namespace's annotations", () => {
  it("that say how addresses are kept need one that asks", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const idle = await send(
      world,
      "/validate/namespaces",
      namespaceObject("shop", { "berth.dev/ttl": "1h" }),
    );
    assert.deepEqual(idle.warnings, [
      'annotation berth.dev/ttl has no effect while the namespace asks for no address: write berth.dev/pools or berth.dev/sticky: "true" beside it',
    ]);
    const both = namespaceObject("shop", { "berth.dev/ttl": "1h", "berth.dev/pools": "db" });
    assert.equal((await send(world, "/validate/namespaces", both)).warnings, undefined);
  });
});

describe("what a pod asks for", () => {
  it("cannot be changed, and who owns the pod is told where to change it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const at = (address: string) => pod("a", { annotations: { "berth.dev/ips": address } });
    assert.equal(
      deniedAs(await updated(world, at("10.20.0.51"), at("10.20.0.52"))),
      "REQUEST_INVALID: annotation berth.dev/ips of pod shop/a is read when the pod is created, and a change would do nothing; delete the pod and create it again with what you want",
    );
    assert.equal((await updated(world, at("10.20.0.51"), at("10.20.0.51"))).allowed, true);
  });

  for (const [kind, remedy] of [
    ["CloneSet", "updateStrategy.type to ReCreate"],
    ["StatefulSet", "updateStrategy.rollingUpdate.podUpdatePolicy to ReCreate"],
    ["DaemonSet", "updateStrategy.rollingUpdate.rollingUpdateType to Standard"],
  ] as const) {
    it(`cannot be changed by OpenKruise's ${kind}, which updates its pods in place`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      const owner = ownedBy(kind, "web", "apps.kruise.io/v1beta1");
      const at = (list: string) => pod("web-0", { owner, annotations: { "berth.dev/ips": list } });
      assert.equal(
        deniedAs(await updated(world, at("10.20.0.51;10.20.0.52"), at("10.20.0.53;10.20.0.52"))),
        `REQUEST_INVALID: annotation berth.dev/ips of pod shop/web-0 is read when the pod is created, and a change would do nothing; change it in the template of ${kind} web, which cannot update its pods in place by it: set spec.${remedy}, or delete its pods one by one`,
      );
    });
  }

  it("cannot be changed in Calico's annotations either, if it has a claim of Berth's", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const key = "cni.projectcalico.org/ipAddrs";
    const at = (address: string, more: Labels) =>
      pod("a", { annotations: { [key]: JSON.stringify([address]), ...more } });
    const ours = { "berth.dev/claim": "a" };
    assert.match(
      deniedAs(await updated(world, at("10.20.0.51", ours), at("10.20.0.52", ours))),
      /^REQUEST_INVALID: annotation cni\.projectcalico\.org\/ipAddrs of pod shop\/a is read when the pod is created/,
    );
    const isAllowed = async (calico: DialectChoice, [before, now]: readonly [Json, Json]) =>
      (await updated(world, before, now, { calico })).allowed;
    const others = [at("10.9.0.51", {}), at("10.9.0.52", {})] as const;
    assert.equal(await isAllowed("own", others), true);
    assert.equal(await isAllowed("all", others), false, "there Berth answers every one of them");
    assert.equal(await isAllowed("all", [others[0], pod("a")]), true, "and what is gone asks for nothing");
    assert.equal(await isAllowed("none", [at("10.20.0.51", ours), at("10.20.0.52", ours)]), true);
  });

  it("cannot be asked for of a pod that is there, in whoever's words: what is Berth's, and not what is another's", async () => {
    const macs = poolRecord("macs", [], {
      ranges: [{ cidr: "fe80::/64", from: "fe80::ff:fe00:0", to: "fe80::ff:fe00:ff" }],
      reserved: ["fe80::ff:fe00:0-fe80::ff:fe00:ff"],
    });
    await using world = await openWorld({ pools: [DB_POOL, macs] });
    const networks = "k8s.v1.cni.cncf.io/networks";
    const ours: readonly Labels[] = [
      { [networks]: '[{"name":"lan","ips":["10.20.0.70"]}]' },
      { [networks]: "lan", "lan.shop.kubernetes.io/ip_address": "10.20.0.70" },
      { "static-ipam.ipv4": "10.20.0.70" },
      { "cni.projectcalico.org/hwAddr": "02:00:00:00:00:51" },
      { "cni.projectcalico.org/ipv4pools": '["db"]' },
      { "cni.projectcalico.org/ipAddrsNoIpam": '["10.20.0.70"]' },
      { "cni.projectcalico.org/floatingIPs": '["10.20.0.70"]' },
      { "networking.alibaba.com/ip": "10.20.0.70" },
      { [networks]: "lan", "lan.shop.kubernetes.io/mac_address": "02:00:00:00:00:51" },
    ];
    const theirs: readonly Labels[] = [
      { [networks]: '[{"name":"lan","ips":["172.31.9.9"]}]' },
      { "cni.projectcalico.org/hwAddr": "04:00:00:00:00:51" },
      { "cni.projectcalico.org/floatingIPs": '["10.9.0.70"]' },
      { "ovn.kubernetes.io/ip_address": "10.20.0.70", "ovn.kubernetes.io/allocated": "true" },
    ];
    for (const [asked, isRefused] of [
      ...ours.map((one) => [one, true] as const),
      ...theirs.map((one) => [one, false] as const),
    ])
      for (const claim of isRefused ? [{}, { "berth.dev/claim": "a" }] : [{}]) {
        const [plain, asking] = [claim, { ...claim, ...asked }].map((annotations) =>
          pod("a", { annotations }),
        );
        const said = deniedAs(
          await updated(world, plain ?? assert.fail(), asking ?? assert.fail(), OWN_OF_EACH),
        );
        assert.equal(
          /is read when the pod is created|in a pool of berth's, which may give it to another pod/.test(said),
          isRefused,
          `${JSON.stringify(asked)}: ${said}`,
        );
      }
  });

  it("does not change when other networks come and go, with MAC addresses of their own", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const key = "k8s.v1.cni.cncf.io/networks";
    const has = {
      "berth.dev/claim": "a",
      "berth.dev/addresses": "10.20.0.51",
      "berth.dev/ips": "10.20.0.51",
    };
    const own = { name: "a", interface: "pod1", mac: "02:00:00:00:00:01" };
    const [one, two] = [[own], [own, { name: "b", interface: "pod2", ips: ["172.31.9.9"] }]].map((networks) =>
      pod("a", { annotations: { ...has, [key]: JSON.stringify(networks) } }),
    );
    for (const [before, now] of [
      [one, two],
      [two, one],
      [pod("a", { annotations: has }), one],
    ] as const)
      assert.equal(
        deniedAs(await updated(world, before ?? assert.fail(), now ?? assert.fail(), OWN_OF_EACH)),
        "",
      );
    const ours = pod("a", { annotations: { ...has, [key]: '[{"name":"b","ips":["10.20.0.70"]}]' } });
    assert.match(
      deniedAs(await updated(world, one ?? assert.fail(), ours, OWN_OF_EACH)),
      /is read when the pod is created/,
    );
  });

  for (const [annotations, words] of [
    [
      { "berth.dev/families": "IPv6" },
      'berth.dev/families asks for no address; write berth.dev/ips, berth.dev/pools or berth.dev/sticky: "true" beside it',
    ],
    [
      { "berth.dev/ttl": "2h", "berth.dev/when-deleted": "Retain" },
      'berth.dev/when-deleted, berth.dev/ttl ask for no address; write berth.dev/ips, berth.dev/pools or berth.dev/sticky: "true" beside it',
    ],
  ] as const) {
    it(`is nothing, with a warning: ${Object.keys(annotations).join(", ")} alone`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      const alone = await send(world, "/mutate/pods", pod("a", { annotations }));
      assert.deepEqual([alone.allowed, alone.warnings], [true, [words]]);
      const template = workload("StatefulSet", "db", { replicas: 1, annotations });
      assert.deepEqual((await send(world, "/validate/workloads", template)).warnings, [words]);
      await send(world, "/validate/namespaces", namespaceObject("shop", { "berth.dev/pools": "db" }));
      assert.equal((await send(world, "/mutate/pods", pod("b", { annotations }))).warnings, undefined);
    });
  }
});
