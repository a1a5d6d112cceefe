// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  deploymentPod,
  type Json,
  namespaceObject,
  opsOf,
  ownedBy,
  pod,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { admitPod, send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";

const POOLS = [DB_POOL, poolRecord("web", "10.30.0.1/32")];
const IPS = "berth.dev/ips";
const CALICO = "cni.projectcalico.org/ipAddrs";

describe("/mutate/pods", () => {
  it("pins a bare pod to its address, and patches exactly that", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = pod("licence", { annotations: { [IPS]: "10.20.0.70" } });
    const response = await send(world, "/mutate/pods", object);
    assert.deepEqual(opsOf(response), [
      { op: "add", path: "/metadata/annotations/berth.dev~1claim", value: "licence" },
      { op: "add", path: "/metadata/annotations/berth.dev~1addresses", value: "10.20.0.70" },
    ]);
    assert.deepEqual(
      [response.uid, response.patchType, response.warnings],
      ["review-1", "JSONPatch", undefined],
    );
    const meta = object["metadata"] as Json;
    assert.deepEqual(applied(object, response), {
      ...object,
      metadata: {
        ...meta,
        annotations: {
          [IPS]: "10.20.0.70",
          "berth.dev/claim": "licence",
          "berth.dev/addresses": "10.20.0.70",
        },
      },
    });
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
    await assertClean(world);
  });

  it("answers the same again for the same pod, and writes nothing", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = statefulPod("mysql", 0, { annotations: { "berth.dev/pools": "db" } });
    const first = await send(world, "/mutate/pods", object);
    const before = world.dump();
    assert.deepEqual(opsOf(await send(world, "/mutate/pods", object)), opsOf(first));
    assert.equal(world.dump(), before);
  });

  const asked: readonly (readonly [string, Json, string | RegExp])[] = [
    [
      "Calico's annotation",
      pod("a", { annotations: { "cni.projectcalico.org/ipAddrs": '["10.20.0.70"]' } }),
      "10.20.0.70",
    ],
    [
      "Calico's pools",
      pod("a", { annotations: { "cni.projectcalico.org/ipv4pools": '["web"]' } }),
      "10.30.0.1",
    ],
    ["both families", pod("a", { annotations: { [IPS]: "fd00:20::7/10.20.0.70" } }), "10.20.0.70,fd00:20::7"],
    [
      "an address for explicit requests only",
      pod("a", { annotations: { [IPS]: "10.20.0.50" } }),
      "10.20.0.50",
    ],
    ["the range of a pool", pod("a", { annotations: { "berth.dev/pools": "10.30.0.1/32" } }), "10.30.0.1"],
    [
      "stickiness",
      statefulPod("mysql", 0, { annotations: { "berth.dev/sticky": "true" } }),
      /^10\.20\.0\.\d+,fd00:20::[0-9a-f:]+$/,
    ],
    [
      "one family",
      pod("a", { annotations: { "berth.dev/sticky": "true", "berth.dev/families": "IPv6" } }),
      /^fd00:20::[0-9a-f:]+$/,
    ],
    [
      "the third of a list",
      statefulPod("mysql", 2, { annotations: { [IPS]: "10.20.0.70-10.20.0.75" } }),
      "10.20.0.72",
    ],
    ["nothing", pod("a"), ""],
    ["nothing but retention", pod("a", { annotations: { "berth.dev/ttl": "5m" } }), ""],
  ];
  for (const [title, object, addresses] of asked) {
    it(`understands ${title}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const got = await admitPod(world, object);
      if (typeof addresses === "string") assert.equal(got, addresses);
      else assert.match(got, addresses);
      await assertClean(world);
    });
  }

  it("counts a list from ordinals.start", async () => {
    await using world = await openWorld({ pools: POOLS });
    const annotations = { [IPS]: "10.20.0.70;10.20.0.71" };
    const set = workload("StatefulSet", "mysql", {
      replicas: 2,
      annotations,
      spec: { ordinals: { start: 5 } },
    });
    await send(world, "/validate/workloads", set);
    assert.equal(await admitPod(world, statefulPod("mysql", 6, { annotations })), "10.20.0.71");
    assert.equal(await admitPod(world, statefulPod("mysql", 5, { annotations })), "10.20.0.70");
    assert.equal(
      await admitPod(world, statefulPod("mysql", 0, { annotations })),
      "LIST_TOO_SHORT: the list has 2 entries, for ordinals 5 to 6, and none for ordinal 0; add an entry or lower replicas",
    );
  });

  it("gives a pod that nothing tells from its like a token to be found by", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = pod("", {
      generateName: "etl-",
      annotations: { "berth.dev/pools": "db" },
      owner: ownedBy("Workflow", "etl"),
    });
    const response = await send(world, "/mutate/pods", object);
    const written = annotationsOf(applied(object, response));
    const claim = (await world.all("claim"))[0]?.record;
    assert.ok(claim);
    assert.match(claim.name, /^c-[a-z2-7]{12}$/);
    assert.match(written["berth.dev/token"] ?? "", /^[a-z2-7]{26}$/);
    assert.deepEqual(written, {
      "berth.dev/pools": "db",
      "berth.dev/claim": claim.name,
      "berth.dev/addresses": claim.addresses.join(","),
      "berth.dev/token": claim.binding?.token,
    });
    const again = await send(world, "/mutate/pods", object);
    assert.notEqual(annotationsOf(applied(object, again))["berth.dev/claim"], claim.name);
  });
});

describe("what Berth writes", () => {
  it("is taken off a pod that brought it along, and not believed", async () => {
    await using world = await openWorld({ pools: POOLS });
    const annotations = {
      app: "shell",
      "berth.dev/claim": "mysql-0",
      "berth.dev/addresses": "10.20.0.70",
      "berth.dev/token": "stolen",
    };
    const copy = pod("debug", { annotations });
    const response = await send(world, "/mutate/pods", copy);
    assert.deepEqual(annotationsOf(applied(copy, response)), { app: "shell" });
    assert.deepEqual(response.warnings, [
      "annotations that berth alone writes ask for nothing, and are removed from this pod: berth.dev/claim, berth.dev/addresses, berth.dev/token; for an address write berth.dev/ips or berth.dev/pools",
    ]);
    assert.deepEqual(await world.holdings(), {});
    const pinned = pod("debug", { annotations: { ...annotations, [IPS]: "10.20.0.71" } });
    const asked = await send(world, "/mutate/pods", pinned);
    assert.equal(asked.warnings, undefined);
    assert.deepEqual(annotationsOf(applied(pinned, asked)), {
      app: "shell",
      [IPS]: "10.20.0.71",
      "berth.dev/claim": "debug",
      "berth.dev/addresses": "10.20.0.71",
    });
  });

  it("goes into a pod that has no annotations at all", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/validate/namespaces", namespaceObject("shop", { "berth.dev/pools": "web" }));
    const response = await send(world, "/mutate/pods", pod("a"));
    assert.deepEqual(opsOf(response), [
      {
        op: "add",
        path: "/metadata/annotations",
        value: { "berth.dev/claim": "a", "berth.dev/addresses": "10.30.0.1" },
      },
    ]);
  });

  it("includes where the addresses are routed, beside what the pod asks for itself", async () => {
    const zone = {
      matchLabels: { zone: "beijing" },
      matchExpressions: [{ key: "underlay", operator: "Exists" as const }],
    };
    const rack = { matchLabels: { rack: "r1" } };
    const pools = [
      poolRecord("four", "10.1.0.0/24", { nodeSelector: zone }),
      poolRecord("six", "fd01::/64", { nodeSelector: rack }),
    ];
    await using world = await openWorld({ pools });
    const annotations = { [IPS]: "10.1.0.7,fd01::7" };
    const affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "disk", operator: "Exists" }] },
            { matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }] },
          ],
        },
      },
    };
    const wanted = [
      { key: "zone", operator: "In", values: ["beijing"] },
      { key: "underlay", operator: "Exists" },
      { key: "rack", operator: "In", values: ["r1"] },
    ];
    const terms = (object: Json) => {
      const spec = object["spec"] as { affinity: typeof affinity };
      return spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    };
    const plain = pod("a", { annotations });
    assert.deepEqual(terms(applied(plain, await send(world, "/mutate/pods", plain))), [
      { matchExpressions: wanted },
    ]);
    const own = pod("a", { annotations, spec: { affinity } });
    assert.deepEqual(terms(applied(own, await send(world, "/mutate/pods", own))), [
      { matchExpressions: [{ key: "disk", operator: "Exists" }, ...wanted] },
      { matchFields: [{ key: "metadata.name", operator: "In", values: ["n1"] }], matchExpressions: wanted },
    ]);
  });
});

describe("pods that are let through untouched", () => {
  const annotations = { [IPS]: "10.20.0.70", "berth.dev/claim": "stolen" };
  const cases: readonly (readonly [string, Json, Json])[] = [
    ["of the host's network", pod("a", { annotations: { app: "a" }, spec: { hostNetwork: true } }), {}],
    [
      "mirrors of static pods",
      pod("a", { annotations: { ...annotations, "kubernetes.io/config.mirror": "x" } }),
      {},
    ],
    ["on an update", pod("a", { annotations }), { operation: "UPDATE" }],
    ["that are bound by the scheduler", pod("a", { annotations }), { subResource: "binding" }],
    ["that are deleted", pod("a", { annotations }), { operation: "DELETE" }],
    ["that ask for nothing", deploymentPod("web", { annotations: { app: "web" } }), {}],
  ];
  for (const [title, object, over] of cases) {
    it(title, async () => {
      await using world = await openWorld({ pools: POOLS });
      const before = world.dump();
      assert.deepEqual(await send(world, "/mutate/pods", object, over), { uid: "review-1", allowed: true });
      assert.equal(world.dump(), before);
    });
  }

  it("of the host's network, but for what Berth alone writes, and told that their requests ask for nothing there", async () => {
    await using world = await openWorld({ pools: POOLS });
    const before = world.dump();
    const forged = { ...annotations, "berth.dev/addresses": "10.20.0.70", "berth.dev/token": "t" };
    const copied = pod("a", { annotations: { app: "a", ...forged }, spec: { hostNetwork: true } });
    const response = await send(world, "/mutate/pods", copied);
    assert.deepEqual(applied(copied, response), {
      ...copied,
      metadata: { ...(copied["metadata"] as Json), annotations: { app: "a", [IPS]: "10.20.0.70" } },
    });
    assert.match(
      response.warnings?.[1] ?? "",
      /are removed from this pod: berth.dev.claim, berth.dev.addresses/,
    );
    const asking = { [IPS]: "10.20.0.70", "berth.dev/ip": "x", [CALICO]: '["10.20.0.70"]' };
    const object = pod("a", { annotations: asking, spec: { hostNetwork: true } });
    assert.deepEqual(await send(world, "/mutate/pods", object), {
      uid: "review-1",
      allowed: true,
      warnings: [
        `${IPS}, berth.dev/ip, ${CALICO} ask for nothing beside hostNetwork: such a pod has the addresses of its node; take one of the two away`,
      ],
    });
    assert.equal(world.dump(), before);
  });

  it("of kube-system, and told that their request asks for nothing there", async () => {
    await using world = await openWorld({ pools: POOLS });
    const before = world.dump();
    const { allowed, patch, warnings } = await send(
      world,
      "/mutate/pods",
      pod("a", { annotations, namespace: "kube-system" }),
    );
    assert.deepEqual(
      { allowed, patch, warnings },
      {
        allowed: true,
        patch: undefined,
        warnings: [
          "berth.dev/ips asks for nothing in kube-system: berth reserves no address for its pods; use another namespace",
        ],
      },
    );
    assert.equal(world.dump(), before);
  });

  it("with a request among their labels, and told where it belongs", async () => {
    await using world = await openWorld({ pools: POOLS });
    const labels = { "berth.dev/ips": "10.20.0.70", app: "web" };
    const { warnings } = await send(world, "/mutate/pods", pod("a", { labels }));
    assert.deepEqual(warnings, [
      "label berth.dev/ips has no effect: it is an annotation; write it under metadata.annotations",
    ]);
  });
});
