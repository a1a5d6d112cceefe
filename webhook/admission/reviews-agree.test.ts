// SPDX-License-Identifier: Apache-2.0
// A pod that its first review accepts is what its second one asks for: what was left to another system, what its namespace added, and
// what its predecessor had are no reason to refuse it.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import { addressOfMac } from "../../allocator/ip/mac.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  deniedAs,
  type Json,
  namespaceObject,
  pod,
  review,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const NEVER = new AbortController().signal;
const [FIRST, LAST] = [addressOfMac("02:00:00:00:00:00"), addressOfMac("02:00:00:00:00:ff")];
const POOLS = [
  DB_POOL,
  poolRecord("dual", ["10.60.0.0/24", "fd00:60::/120"]),
  poolRecord("macs", [], {
    ranges: [{ cidr: "fe80::/64", from: FIRST, to: LAST }],
    reserved: [`${FIRST}-${LAST}`],
  }),
];
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const theirs = (...ips: readonly string[]) => ({ [NETWORKS]: JSON.stringify([{ name: "x", ips }]) });

/** One host, or a replica of a cluster, which keeps no objects of its own. */
function handlersOf(world: World, where: "cluster" | "host") {
  const { embedded, ...admission } = world.admission;
  const kept = where === "host" && embedded !== undefined ? { embedded } : {};
  const context = { ...world.context, dialects: OWN_OF_EACH };
  return createHandlers({ ...admission, ...kept, context, dialects: OWN_OF_EACH });
}

let uids = 0;

/** Through both reviews: its annotations, or what either says against it. */
async function reviewed(world: World, object: Json, where: "cluster" | "host" = "cluster") {
  const handlers = handlersOf(world, where);
  const first = await handlers["/mutate/pods"](review(object, "CREATE"), NEVER);
  if (!first.allowed) return { said: deniedAs(first), annotations: {} as Labels };
  const mutated = applied(object, first);
  const made = { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: `uid-${uids++}` } };
  const second = await handlers["/validate/pods"](review(made, "CREATE"), NEVER);
  await world.settle();
  return { said: deniedAs(second), annotations: annotationsOf(made) };
}

async function gone(world: World, object: Json): Promise<void> {
  await send(world, "/validate/pods", object, { operation: "DELETE", oldObject: object });
}

describe("what a pod asks of another system", () => {
  const one = { "berth.dev/ips": "10.20.0.70" };
  const fallback = { ...one, "berth.dev/fallback": "any" };
  const many = Array.from({ length: 17 }, (_, n) => `172.31.9.${n + 1}`);
  const twice = JSON.stringify(["x", "y"].map((name) => ({ name, ips: ["172.31.9.9"] })));
  const single: Readonly<Record<string, Labels>> = {
    "two addresses of a family beside a fallback": { ...fallback, ...theirs("172.31.9.9", "172.31.9.10") },
    "more addresses than a pod can have": { ...one, ...theirs(...many) },
    "one address on two interfaces": { ...one, [NETWORKS]: twice },
    "what is no address": { ...one, ...theirs("dhcp") },
    "a key of a network": { ...one, [NETWORKS]: "x", "x.shop.kubernetes.io/ip_address": "172.31.9.9" },
    "an address of a family that it is not to have": {
      ...one,
      "berth.dev/families": "IPv4",
      ...theirs("fd11::9"),
    },
  };
  for (const [what, annotations] of Object.entries(single))
    it(`is no reason to refuse it: ${what}`, async () => {
      for (const where of ["cluster", "host"] as const) {
        await using world = await openWorld({ pools: POOLS });
        await send(world, "/validate/namespaces", namespaceObject("shop", {}));
        const { said, annotations: has } = await reviewed(world, pod("a", { annotations }), where);
        assert.equal(said, "", where);
        assert.equal(has["berth.dev/addresses"]?.split("@")[0], "10.20.0.70");
      }
    });

  const foreign = theirs("172.31.9.9");
  const nic = { [NETWORKS]: "x", "x.shop.kubernetes.io/ip_address": "172.31.9.9" };
  const lists: readonly Labels[] = [
    { "berth.dev/ips": "10.20.0.70;10.20.0.71", ...foreign },
    { "berth.dev/ips": "10.20.0.70;10.20.0.71", ...nic },
    { "ovn.kubernetes.io/ip_pool": "10.20.0.70,10.20.0.71", ...foreign },
    { "networking.alibaba.com/ip-pool": "10.20.0.70,10.20.0.71", ...foreign },
  ];
  for (const annotations of lists)
    it(`is none beside a list: ${Object.keys(annotations).join(" and ")}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      await send(world, "/validate/namespaces", namespaceObject("shop", {}));
      const set = workload("StatefulSet", "db", { uid: "uid-of-db", annotations, replicas: 2 });
      const judged = await handlersOf(world, "host")["/validate/workloads"](review(set, "CREATE"), NEVER);
      assert.equal(deniedAs(judged), "");
      for (const [ordinal, address] of ["10.20.0.70", "10.20.0.71"].entries()) {
        const { said, annotations: has } = await reviewed(world, statefulPod("db", ordinal, { annotations }));
        assert.equal(said, "");
        assert.equal(has["berth.dev/addresses"]?.split("@")[0], address);
      }
    });
});

describe("two systems that ask for one interface", () => {
  const foreign = theirs("172.31.9.9");
  const asked: readonly (readonly [Labels, RegExp])[] = [
    [{ "berth.dev/pools": "db@net1", ...foreign }, /^ADDRESS_OUTSIDE: address 172\.31\.9\.9/],
    [
      { "berth.dev/ips": "10.20.0.70@net1", ...foreign },
      /^REQUEST_INVALID: .* disagrees with berth\.dev\/ips/,
    ],
    [{ "berth.dev/sticky": "net1", ...foreign }, /^ADDRESS_OUTSIDE: address 172\.31\.9\.9/],
    [
      { "networking.alibaba.com/ip-retain": "true", "berth.dev/sticky": "false", "berth.dev/pools": "db" },
      /^REQUEST_INVALID: .*ip-retain: it disagrees with berth\.dev\/sticky/,
    ],
  ];
  const ours = (...elements: readonly Json[]) => ({ [NETWORKS]: JSON.stringify(elements) });
  for (const [annotations, words] of [
    ...asked,
    [
      ours({ name: "x", interface: "net1", ips: ["10.20.0.70"] }, { name: "y", interface: "net1" }),
      /two of its elements make "net1"/,
    ],
    [ours({ name: "x", interface: "net2", ips: ["10.20.0.70"] }, { name: "y" }), /elements make "net2"/],
    [ours({ name: "x", interface: "eth0", ips: ["10.20.0.70"] }), /eth0 is the pod's first interface/],
    [
      { "v1.multus-cni.io/default-network": '[{"name":"x","ips":["10.20.0.70"]},{"name":"y"}]' },
      /elements make "eth0"/,
    ],
  ] as const)
    it(`are refused where they contradict each other: ${JSON.stringify(annotations)}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      await send(world, "/validate/namespaces", namespaceObject("shop", {}));
      assert.match((await reviewed(world, pod("a", { annotations }))).said, words);
      const set = workload("StatefulSet", "db", { annotations, replicas: 1 });
      const judged = await handlersOf(world, "cluster")["/validate/workloads"](review(set, "CREATE"), NEVER);
      assert.equal(judged.allowed, false);
    });
});

describe("Calico's pools of one family on a pod, and of the other on its namespace", () => {
  const V4 = "cni.projectcalico.org/ipv4pools";
  const V6 = "cni.projectcalico.org/ipv6pools";
  const LIST = '["dual"]';

  it("are both served, whatever the namespace says by then", async () => {
    for (const where of ["cluster", "host"] as const)
      for (const [own, others] of [
        [V4, V6],
        [V6, V4],
      ] as const) {
        await using world = await openWorld({ pools: POOLS });
        await send(world, "/validate/namespaces", namespaceObject("shop", { [others]: LIST }));
        const { said, annotations } = await reviewed(
          world,
          pod("a", { annotations: { [own]: LIST } }),
          where,
        );
        assert.equal(said, "");
        assert.match(annotations["berth.dev/addresses"] ?? "", /^10\.60\.0\.\d+,fd00:60::/);
      }
  });

  it("are compared with what the pod asks for itself", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/validate/namespaces", namespaceObject("shop", { [V4]: LIST }));
    const handlers = handlersOf(world, "cluster");
    const object = pod("a", { annotations: {} });
    const first = applied(object, await handlers["/mutate/pods"](review(object, "CREATE"), NEVER));
    await world.settle();
    const annotations = { ...annotationsOf(first), [V6]: LIST };
    const changed = { ...first, metadata: { ...(first["metadata"] as Json), annotations } };
    const second = await handlers["/validate/pods"](review(changed, "CREATE"), NEVER);
    assert.match(deniedAs(second), /belongs to pool "dual", and the request names "dual\/IPv6"/);
  });
});

describe("a pod that only asks to keep its address, in another system's word", () => {
  it("has one of what its namespace asks for, whatever that says by then", async () => {
    const pools = [poolRecord("other", "10.1.0.0/24"), poolRecord("team", "10.9.0.0/24")];
    for (const [where, then] of [
      ["cluster", "team"],
      ["cluster", "other"],
      ["host", "team"],
    ] as const) {
      await using world = await openWorld({ pools });
      const handlers = handlersOf(world, where);
      await send(world, "/validate/namespaces", namespaceObject("shop", { "berth.dev/pools": "team" }));
      const object = pod("a", { annotations: { "networking.alibaba.com/ip-retain": "true" } });
      const made = applied(object, await handlers["/mutate/pods"](review(object, "CREATE"), NEVER));
      assert.match(annotationsOf(made)["berth.dev/addresses"] ?? "", /^10\.9\.0\.\d+$/);
      await send(world, "/validate/namespaces", namespaceObject("shop", { "berth.dev/pools": then }));
      const second = await handlers["/validate/pods"](review(made, "CREATE"), NEVER);
      assert.equal(deniedAs(second), "");
    }
  });
});

describe("a MAC address that the template changes", () => {
  const [A, B] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
  const asking = (list: string, macs: string): Labels => ({
    "berth.dev/ips": list,
    [NETWORKS]: "lan",
    ...(macs === "" ? {} : { "berth.dev/mac": macs }),
  });
  const onLan = (mac: string) => (mac === "" ? "" : `${mac}@net1`);
  const LONG = "10.20.0.70@net1;10.20.0.71@net1;10.20.0.72@net1";
  const listed = (first: string) => [`${first}@net1`, ...["11", "12"].map((n) => `02:00:00:00:00:${n}@net1`)];

  for (const where of ["cluster", "host"] as const)
    for (const [before, after] of [
      [A, B],
      ["", B],
      [A, ""],
    ] as const)
      for (const isList of [false, true])
        it(`is the one that the next pod is told and its networks say (${where}, ${before || "none"} to ${after || "none"}, ${isList ? "list" : "one"})`, async () => {
          await using world = await openWorld({ pools: POOLS });
          await send(world, "/validate/namespaces", namespaceObject("shop", {}));
          const saying = (mac: string) =>
            isList
              ? asking(LONG, mac === "" ? "" : listed(mac).join(";"))
              : asking("10.20.0.70@net1", onLan(mac));
          const first = statefulPod("db", 0, { annotations: saying(before) });
          assert.equal((await reviewed(world, first, "host")).said, "");
          await gone(world, first);
          const second = statefulPod("db", 0, { annotations: saying(after) });
          const { said, annotations } = await reviewed(world, second, where);
          assert.equal(said, "");
          const has = JSON.stringify(annotations);
          assert.equal(has.includes(A), false, has);
          assert.equal(annotations[NETWORKS]?.includes(B) === true, after === B, has);
          assert.equal(annotations["berth.dev/addresses"]?.includes("@mac-net1"), after === B, has);
          if (where === "cluster") return;
          const [claim] = (await world.all("claim")).map(({ record }) => formatHolding(record).join());
          assert.equal(claim, annotations["berth.dev/addresses"]);
        });
});
