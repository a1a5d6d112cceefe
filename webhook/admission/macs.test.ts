// SPDX-License-Identifier: Apache-2.0
// MAC addresses in other systems' words, and how refusals name who has one.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import { addressOfMac } from "../../allocator/ip/mac.ts";
import type { ForeignChoice } from "../../allocator/manifest/foreign-requests.ts";
import { type Dialects, OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  deniedAs,
  type Json,
  pod,
  review,
  workload,
} from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validatePods } from "./validate-pod.ts";
import { validateWorkloads } from "./validate-workload.ts";

const NEVER = new AbortController().signal;
const [FIRST, LAST] = [addressOfMac("02:00:00:00:00:00"), addressOfMac("02:00:00:00:00:ff")];
const POOLS = [
  poolRecord("web", ["10.20.0.0/24", "fd00:20::/120"]),
  poolRecord("macs", [], {
    ranges: [{ cidr: "fe80::/64", from: FIRST, to: LAST }],
    reserved: [`${FIRST}-${LAST}`],
  }),
];
const OURS = "02:00:00:00:00:51";
const THEIRS = "04:00:00:00:00:51";
const HARDWARE = "cni.projectcalico.org/hwAddr";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const IP = { "berth.dev/ips": "10.20.0.7" };
const lan = (mac: string) => ({ [NETWORKS]: JSON.stringify([{ name: "lan", mac }]) });

async function asking(
  world: World,
  annotations: Labels,
  over: {
    readonly dialects?: Dialects;
    readonly foreignRequests?: ForeignChoice;
    readonly name?: string;
  } = {},
) {
  const { embedded: _, ...admission } = world.admission;
  const { name = "a", ...chosen } = { dialects: OWN_OF_EACH, ...over };
  return await mutatePods({ ...admission, ...chosen })(review(pod(name, { annotations }), "CREATE"), NEVER);
}

async function reported(world: World): Promise<readonly string[]> {
  await world.settle();
  return (await world.all("claim")).flatMap(({ record }) => formatHolding(record));
}

describe("a MAC address in another system's words", () => {
  const KEYS = [
    HARDWARE,
    "ovn.kubernetes.io/mac_address",
    "networking.alibaba.com/mac-pool",
    "cni.cilium.io/mac-address",
  ];

  it("that a pool has is reserved with the pod's addresses, and written where Multus reads it", async () => {
    for (const key of KEYS) {
      await using world = await openWorld({ pools: POOLS });
      const answer = await asking(world, { ...IP, [key]: OURS, "v1.multus-cni.io/default-network": "lan" });
      assert.equal(answer.allowed, true, answer.status?.message);
      assert.equal(answer.warnings, undefined, key);
      assert.deepEqual(await reported(world), ["10.20.0.7@eth0", "fe80::ff:fe00:51@mac-eth0"]);
      const patch = Buffer.from(answer.patch ?? "", "base64").toString();
      assert.ok(patch.includes(`\\"mac\\":\\"${OURS}\\"`), patch);
    }
  });

  it("that a pool has is nobody else's, which is said as a MAC address: of a pod, and of a workload", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal((await asking(world, { ...IP, [HARDWARE]: OURS })).allowed, true);
    await world.settle();
    const words = /\(MAC address 02:00:00:00:00:51\) in pool "macs" is held by shop\/a/;
    const other = { "berth.dev/ips": "10.20.0.8", [HARDWARE]: OURS };
    assert.match(deniedAs(await asking(world, other, { name: "b" })), words);
    const { embedded: _, ...admission } = world.admission;
    const set = workload("StatefulSet", "web", { annotations: other, replicas: 1 });
    const judged = validateWorkloads({ ...admission, dialects: OWN_OF_EACH });
    assert.match(deniedAs(await judged(review(set, "CREATE"), NEVER)), words);
  });

  it("that no pool has is told of, and keeps nobody from an address", async () => {
    for (const annotations of [...KEYS.map((key) => ({ [key]: THEIRS })), lan(THEIRS), { [HARDWARE]: "x" }]) {
      await using world = await openWorld({ pools: POOLS });
      const [key = ""] = Object.keys(annotations);
      const alone = await asking(world, annotations, { name: "b", foreignRequests: "refuse" });
      const served = await asking(world, { ...IP, ...annotations }, { foreignRequests: "refuse" });
      for (const { allowed, warnings = [], status } of [alone, served]) {
        assert.equal(allowed, true, status?.message);
        assert.equal(warnings.length, 1, key);
        assert.ok(warnings[0]?.startsWith(`annotation ${key} is `) && warnings[0].length <= 256, warnings[0]);
      }
      assert.deepEqual(await reported(world), ["10.20.0.7"]);
    }
  });

  it("that no pool has is refused beside an address where every request is Berth's, but of Multus, who sets it", async () => {
    await using world = await openWorld({ pools: POOLS });
    const over = { dialects: {} };
    assert.match(
      deniedAs(await asking(world, { ...IP, [HARDWARE]: THEIRS }, over)),
      /^ADDRESS_OUTSIDE: MAC address 04:00:00:00:00:51 is in no pool; name one of a pool: "macs" 02:00:00:\S+-02:00:00:\S+; or write fe80::600:ff:fe00:51 \(MAC address 04:00:00:00:00:51\) into a pool's ranges/,
    );
    await using bare = await openWorld({ pools: POOLS.filter(({ name }) => name !== "macs") });
    assert.match(
      deniedAs(await asking(bare, { ...IP, [HARDWARE]: THEIRS }, over)),
      /^ADDRESS_OUTSIDE: MAC address 04:\S+ is in no pool; there is no pool of MAC addresses; create an IPPool with a range around fe80::600:ff:fe00:51 .*cluster\.md/,
    );
    assert.equal((await asking(world, { ...IP, ...lan(THEIRS) }, over)).allowed, true);
  });

  it("that a pool has is refused by itself, and beside what is left to another system", async () => {
    await using world = await openWorld({ pools: POOLS });
    for (const annotations of [
      { [HARDWARE]: OURS },
      lan(OURS),
      { [HARDWARE]: OURS, "cni.projectcalico.org/ipAddrs": '["10.99.0.1"]' },
    ])
      assert.match(
        deniedAs(await asking(world, annotations)),
        /MAC address 02:00:00:00:00:51 is of a pool of berth's, and is pinned with addresses alone; write berth\.dev\/ips/,
      );
    assert.deepEqual(await reported(world), []);
  });

  it("of Multus' list goes with the address of its interface, and must be the one that others say", async () => {
    await using world = await openWorld({ pools: POOLS });
    const ips = { "berth.dev/ips": "10.20.0.7@net1" };
    const both = { ...ips, ...lan(OURS) };
    const other = { ...both, "lan.shop.kubernetes.io/mac_address": "02:00:00:00:00:52" };
    assert.match(deniedAs(await asking(world, other)), /disagrees with/);
    assert.match(
      deniedAs(await asking(world, { ...ips, ...lan(OURS), "berth.dev/mac": `${THEIRS}@net1` })),
      /the pod's networks say another MAC address of net1/,
    );
    assert.equal((await asking(world, both)).allowed, true);
    assert.deepEqual(await reported(world), ["10.20.0.7@net1", "fe80::ff:fe00:51@mac-net1"]);
  });

  it("stands beside whatever asks for an address of its interface, in whoever's words", async () => {
    const mac = { "berth.dev/mac": OURS };
    for (const beside of [
      { "cni.projectcalico.org/ipAddrs": '["10.20.0.7"]' },
      { "berth.dev/pools": "web" },
      { "berth.dev/sticky": "true", "berth.dev/families": "IPv4" },
    ]) {
      await using world = await openWorld({ pools: POOLS });
      const answer = await asking(world, { ...mac, ...beside });
      assert.equal(answer.allowed, true, answer.status?.message);
      const [address, , ...rest] = (await reported(world)).toReversed();
      assert.deepEqual(
        [address, rest.length <= 1],
        ["fe80::ff:fe00:51@mac-eth0", true],
        Object.keys(beside)[0],
      );
    }
  });

  it("is refused on an interface for which nothing asks for an address", async () => {
    await using world = await openWorld({ pools: POOLS });
    const words =
      /MAC address 02:00:00:00:00:51 is pinned on (eth0|net1), for which nothing asks for an address; write one into berth\.dev\/ips/;
    for (const annotations of [
      { ...IP, "berth.dev/mac": `${OURS}@net1` },
      { "berth.dev/ips": "10.20.0.7@net1", "berth.dev/mac": OURS },
      { "berth.dev/ips": "10.20.0.7@net1", [HARDWARE]: OURS },
      { "berth.dev/sticky": "eth0", ...lan(OURS) },
    ])
      assert.match(deniedAs(await asking(world, annotations)), words);
    assert.deepEqual(await reported(world), []);
  });

  it("that is changed is written where Multus reads it, though the claim has the one before", async () => {
    await using world = await openWorld({ pools: POOLS });
    const annotations = (mac?: string) => ({
      "berth.dev/ips": "10.20.0.7@net1",
      [NETWORKS]: "lan",
      ...(mac === undefined ? {} : { "berth.dev/mac": `${mac}@net1` }),
    });
    const networksOf = async (mac?: string): Promise<string | undefined> => {
      const object = pod("a", { annotations: annotations(mac) });
      const { embedded: _, ...admission } = world.admission;
      const answer = await mutatePods(admission)(review(object, "CREATE"), NEVER);
      assert.equal(answer.allowed, true, answer.status?.message);
      await world.settle();
      const made = applied(object, answer);
      const seen = { ...made, metadata: { ...(made["metadata"] as Json), uid: "u" } };
      const second = await validatePods(admission)(review(seen, "CREATE"), NEVER);
      assert.equal(second.allowed, true, second.status?.message);
      return annotationsOf(made)[NETWORKS];
    };
    assert.match((await networksOf(OURS)) ?? "", /00:51/);
    // somebody made it so: it keeps what it has, until a pod that asks for something else is bound
    assert.match((await networksOf("02:00:00:00:00:52")) ?? "", /00:52/);
    assert.equal(await networksOf(), "lan");
    assert.match((await networksOf("02:00:00:00:00:53")) ?? "", /00:53/);
  });

  it("is not read where the administrator says so", async () => {
    await using world = await openWorld({ pools: POOLS });
    const dialects = { ...OWN_OF_EACH, calico: "none" } as const;
    assert.equal((await asking(world, { ...IP, [HARDWARE]: OURS }, { dialects })).allowed, true);
    assert.deepEqual(await reported(world), ["10.20.0.7"]);
  });
});

describe("kube-ovn's keys of an interface", () => {
  const KEY = "lan.shop.kubernetes.io/ip_address";

  it("are Berth's by each network, whatever else the pod asks for", async () => {
    await using world = await openWorld({ pools: POOLS });
    const networks = { [NETWORKS]: "lan,other" };
    const keys = { [KEY]: "10.20.0.9", "other.shop.kubernetes.io/logical_switch": "theirs" };
    const answer = await asking(world, { ...IP, ...networks, ...keys });
    assert.equal(answer.allowed, true, answer.status?.message);
    assert.match(
      String(answer.warnings),
      /other\.shop\.kubernetes\.io\/logical_switch asks for theirs, .* left to kube-ovn, and berth gives the interface of other\.shop no address/,
    );
    assert.deepEqual(await reported(world), ["10.20.0.7@eth0", "10.20.0.9@net1"]);
    assert.match(
      deniedAs(await asking(world, { [KEY]: "10.20.0.8" }, { name: "b" })),
      /has no network "lan\.shop"/,
    );
    const left = await asking(world, { ...networks, [KEY]: "10.99.0.1" }, { name: "c" });
    assert.deepEqual([left.allowed, /left to kube-ovn/.test(String(left.warnings))], [true, true]);
  });

  it("name interfaces by the pod's networks where Multus' own requests are not read, too", async () => {
    await using world = await openWorld({ pools: POOLS });
    const dialects = { ...OWN_OF_EACH, multus: "none" } as const;
    const networks = { [NETWORKS]: '[{"name":"lan","ips":["10.20.0.10/24"]}]' };
    assert.equal((await asking(world, { ...networks, [KEY]: "10.20.0.9" }, { dialects })).allowed, true);
    assert.deepEqual(await reported(world), ["10.20.0.9@net1"]);
  });

  it("of the first interface is told of on a workload, whose pods nobody reads the warnings of", async () => {
    await using world = await openWorld({ pools: POOLS });
    const annotations = { "berth.dev/ips": "10.20.0.60", "berth.dev/mac": OURS };
    const { warnings = [] } = await send(
      world,
      "/validate/workloads",
      workload("StatefulSet", "web", { replicas: 1, annotations }),
    );
    assert.match(
      warnings.join(),
      /no network annotation of the pod makes eth0, .*without it the pod does not start/,
    );
  });

  it("has its MAC address with space behind it, too", async () => {
    await using world = await openWorld({ pools: POOLS });
    const networks = JSON.stringify([{ name: "lan", mac: `${OURS} ` }]);
    const annotations = { "berth.dev/ips": "10.20.0.60@net1", [NETWORKS]: networks };
    const answer = await send(world, "/mutate/pods", pod("a", { annotations }));
    assert.equal(deniedAs(answer), "");
    const written = annotationsOf(applied(pod("a", { annotations }), answer))[NETWORKS] ?? "";
    assert.equal(JSON.parse(written)[0].mac, OURS);
  });
});
