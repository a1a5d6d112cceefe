// SPDX-License-Identifier: Apache-2.0
// Every annotation of other systems that Berth reads, and mixtures of them, through the reviews of a cluster.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Labels } from "../../allocator/base/ports.ts";
import { familyOf, parseAddress } from "../../allocator/ip/address.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { macOn } from "../../allocator/model/interface-macs.ts";
import { addressesOn, toldOf } from "../../allocator/model/interfaces.ts";
import { isIn, partOf } from "../../allocator/planning/pool-choice.ts";
import { DIALECT_CASES, DIALECT_POOLS, type DialectCase } from "../../test/support/dialect-cases.ts";
import { addr, parsed, poolRecord } from "../../test/support/fixtures.ts";
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
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionResponse } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validatePods } from "./validate-pod.ts";
import { validateWorkloads } from "./validate-workload.ts";

const NEVER = new AbortController().signal;
const OPTED_IN = { "berth.dev/admission": "enabled" };

function replica(world: World): AdmissionContext {
  const { embedded: _, ...admission } = world.admission;
  return { ...admission, dialects: OWN_OF_EACH };
}

async function namespace(world: World, annotations: Labels): Promise<void> {
  await send(world, "/validate/namespaces", namespaceObject("shop", annotations, OPTED_IN));
}

/** The claim of a pod that asks so. */
async function claimFor(world: World, { place, annotations, ordinal }: DialectCase): Promise<Claim> {
  const own = place === "pod" ? annotations : {};
  await namespace(world, place === "namespace" ? annotations : {});
  if (ordinal !== undefined) {
    const spec = { ordinals: { start: 1 } };
    const set = workload("StatefulSet", "web", {
      uid: "uid-of-web",
      annotations: own,
      replicas: ordinal,
      spec,
    });
    const judged = await validateWorkloads(replica(world))(review(set, "CREATE"), NEVER);
    assert.equal(judged.allowed, true, judged.status?.message);
    await send(world, "/validate/workloads", set);
  }
  const object =
    ordinal === undefined
      ? pod("a", { annotations: own })
      : statefulPod("web", ordinal, { annotations: own });
  const answer = await mutatePods(replica(world))(review(object, "CREATE"), NEVER);
  assert.equal(answer.allowed, true, answer.status?.message);
  await world.settle();
  const name = ordinal === undefined ? "a" : `web-${ordinal}`;
  const claims = (await world.all("claim")).map(({ record }) => record);
  return claims.find((claim) => claim.name === name) ?? assert.fail(`there is no claim: ${answer.warnings}`);
}

describe("the example of each system's own documents", () => {
  for (const one of DIALECT_CASES) {
    it(`is served: ${one.key} on a ${one.place}`, async () => {
      await using world = await openWorld({ pools: DIALECT_POOLS });
      const claim = await claimFor(world, one);
      const name = one.interface ?? "eth0";
      const addresses = addressesOn(claim, name) ?? claim.addresses;
      assert.equal(addresses.length, one.gets.length, claim.addresses.join());
      assert.equal(macOn(claim, name), one.mac);
      for (const [n, expected] of one.gets.entries()) {
        const address = addresses[n] ?? assert.fail();
        if (expected.includes("/")) assert.ok(isIn(parsed(poolRecord("of", expected)), address), address);
        else assert.equal(address, addr(expected));
      }
      assert.equal(claim.retention.whenDeleted, one.keeps ?? "Release");
    });
  }

  it("is counted by the ordinal in the name: a list that ends before the last one is refused at the workload", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    const annotations = { "ovn.kubernetes.io/ip_pool": "10.16.0.15,10.16.0.16" };
    const set = workload("StatefulSet", "web", {
      annotations,
      replicas: 2,
      spec: { ordinals: { start: 1 } },
    });
    const judged = await validateWorkloads(replica(world))(review(set, "CREATE"), NEVER);
    assert.match(
      deniedAs(judged),
      /^LIST_TOO_SHORT: the list has 2 entries, for ordinals 0 to 1, and none for ordinal 2/,
    );
  });

  it("of kube-ovn is a result, and no request, where kube-ovn has written it", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    const annotations = {
      "ovn.kubernetes.io/ip_address": "10.16.0.15",
      "ovn.kubernetes.io/allocated": "true",
    };
    const answer = await mutatePods(replica(world))(review(pod("a", { annotations }), "CREATE"), NEVER);
    assert.deepEqual([answer.allowed, (await world.all("claim")).length], [true, 0]);
  });

  it("of Spiderpool for several interfaces has an address of each, or is left to its system", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    const asking = async (...pools: readonly string[]) => {
      const value = JSON.stringify(pools.map((one, n) => ({ interface: `net${n}`, ipv4: [one] })));
      const object = pod("a", { annotations: { "ipam.spidernet.io/ippools": value } });
      return await mutatePods(replica(world))(review(object, "CREATE"), NEVER);
    };
    assert.match(deniedAs(await asking("demo-v4-ippool1", "theirs")), /"theirs"/);
    const left = await asking("theirs", "others");
    assert.deepEqual([left.allowed, /left to Spiderpool/.test(String(left.warnings))], [true, true]);
    assert.ok((await asking("demo-v4-ippool1", "subnet-demo-v4")).allowed);
    await world.settle();
    const [claim] = await world.all("claim");
    assert.match(
      toldOf(claim?.record ?? assert.fail()).join(),
      /^172\.22\.40\.\d+@net0,172\.22\.41\.\d+@net1$/,
    );
  });

  it("of Multus is Berth's by each network, whatever else the pod asks for", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    const networks = JSON.stringify([
      { name: "lan", ips: ["10.10.1.20/16"] },
      { name: "other", ips: ["10.99.0.7/24"] },
    ]);
    const annotations = { "k8s.v1.cni.cncf.io/networks": networks, "berth.dev/ips": "10.20.0.7" };
    const answer = await mutatePods(replica(world))(review(pod("a", { annotations }), "CREATE"), NEVER);
    assert.equal(answer.allowed, true, answer.status?.message);
    assert.match(
      String(answer.warnings),
      /annotation k8s\.v1\.cni\.cncf\.io\/networks asks for 10\.99\.0\.7, .* left to Multus, and berth gives its net2 no address/,
    );
    await world.settle();
    const [claim] = await world.all("claim");
    assert.deepEqual(toldOf(claim?.record ?? assert.fail()), ["10.10.1.20@net1", "10.20.0.7@eth0"]);
    const others = JSON.stringify([{ name: "other", ips: ["10.99.0.7/24"] }]);
    for (const value of [others, "lan, web@net5", '[{"name":"lan"}]']) {
      const plain = pod("b", { annotations: { "k8s.v1.cni.cncf.io/networks": value } });
      const left = await mutatePods(replica(world))(review(plain, "CREATE"), NEVER);
      assert.equal(left.allowed, true);
      assert.equal((left.warnings ?? []).length, value === others ? 1 : 0, String(left.warnings));
    }
  });
});

const MULTUS = "k8s.v1.cni.cncf.io/networks";
const OURS = ["10.20.0.7", "10.20.0.8", "fd00:20::7"];
const THEIRS = ["10.99.0.7", "fd00:99::7"];
const POOLS = ["green-pool", "green-v4-pool", "theirs"];
const address = fc.constantFrom(...OURS, ...THEIRS);
const name = fc.constantFrom(...POOLS);
const OUR_MAC = "e2:9c:30:38:52:61";
const mac = fc.constantFrom(OUR_MAC, "02:00:00:00:00:99");
const NIC = "lan.shop.kubernetes.io";
const names = fc.uniqueArray(name, { minLength: 1, maxLength: 2 });

/** A value, and whether addresses and pools are what it asks for. */
const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "cni.projectcalico.org/ipAddrs": address.map((one) => JSON.stringify([one])),
  "cni.projectcalico.org/ipv4pools": names.map((list) => JSON.stringify(list)),
  "cni.projectcalico.org/ipv6pools": names.map((list) => JSON.stringify(list)),
  "cni.projectcalico.org/ipFamilies": fc.constantFrom('["IPv4"]', '["IPv6"]', '["IPv4","IPv6"]'),
  "ovn.kubernetes.io/ip_address": address,
  "ovn.kubernetes.io/logical_switch": name,
  "ovn.kubernetes.io/ip_family": fc.constantFrom("ipv4", "ipv6", "dual"),
  "ipam.antrea.io/pod-ips": address,
  "ipam.antrea.io/ippools": names.map((list) => list.join(",")),
  "ipam.spidernet.io/ippool": names.map((list) => JSON.stringify({ ipv4: list })),
  "networking.alibaba.com/ip-pool": address,
  "networking.alibaba.com/specified-subnet": name,
  "ipam.cilium.io/ip-pool": name,
  "ipam.cilium.io/ipv6-pool": name,
  "static-ipam.ipv4": address,
  "kube-ipam.ip": address,
  "berth.dev/pools": names.map((list) => list.join(",")),
  "berth.dev/ips": address,
  [`${NIC}/ip_address`]: address,
  [`${NIC}/logical_switch`]: name,
  "cni.projectcalico.org/hwAddr": mac,
  "ovn.kubernetes.io/mac_address": mac,
  [MULTUS]: address.map((one) => JSON.stringify([{ name: "lan", ips: [`${one}/24`] }])),
};

/** Elements whose addresses are of no pool, however they are written, and a key of such a network. */
const foreign = fc.constantFrom<Labels>(
  {},
  { [MULTUS]: '[{"name":"x","ips":["10.99.0.7"]}]' },
  { [MULTUS]: '[{"name":"x","ips":["10.99.0.7","10.99.0.8"]}]' },
  { [MULTUS]: '[{"name":"x","ips":["dhcp"]}]' },
  { [MULTUS]: '[{"name":"x","ips":["fd00:99::7"]},{"name":"y","ips":["fd00:99::7"]}]' },
  { [MULTUS]: "x", "x.shop.kubernetes.io/ip_address": "10.99.0.7" },
);
const pair = ["10.20.0.7", "10.20.0.8"];
const OUR_PAIR = ["00:00:00:53:6b:b6", "00:00:00:53:6b:b7"];
/** What a StatefulSet of two asks of Berth, and what a template may say of MAC addresses. */
const lists = fc.constantFrom<Labels>(
  { "berth.dev/ips": pair.join(";") },
  { "berth.dev/ips": pair.join(";"), "berth.dev/fallback": "any" },
  { "ovn.kubernetes.io/ip_pool": pair.join() },
  { "networking.alibaba.com/ip-pool": pair.join() },
);
const macsOfSet = fc.constantFrom("", OUR_PAIR.join(";"), OUR_PAIR.toReversed().join(";"));

const mixtures = fc
  .subarray(Object.keys(VALUES), { minLength: 1, maxLength: 3 })
  .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, VALUES[key] ?? fc.constant("")]))))
  // the network that kube-ovn's keys of an interface name
  .map((all): Labels => (Object.keys(all).some(isNic) ? { [MULTUS]: "lan", ...all } : all));

function isNic(key: string): boolean {
  return key.startsWith(NIC);
}

const isMac = (key: string) => /hwAddr|mac_address/.test(key);

const FAMILY_ONLY: Readonly<Record<string, string>> = {
  "cni.projectcalico.org/ipv4pools": "IPv4",
  "cni.projectcalico.org/ipv6pools": "IPv6",
  "ipam.spidernet.io/ippool": "IPv4",
  "ipam.cilium.io/ipv6-pool": "IPv6",
};

/** Whether the addresses are what the annotation asks for, judged from its text alone. */
function isServed(key: string, value: string, addresses: readonly string[], isExact: boolean): boolean {
  const named = [...value.matchAll(/[\da-f]*[.:][\da-f.:]+/g)].map(([text]) => text);
  const families = new Set(addresses.map((one) => String(familyOf(addr(one)))));
  if (/famil/i.test(key)) {
    const wanted = ["IPv4", "IPv6"].filter(
      (one) => value === "dual" || value.toLowerCase().includes(one.toLowerCase()),
    );
    return wanted.length === families.size && wanted.every((one) => families.has(one));
  }
  if (named.some((one) => parseAddress(one) !== undefined))
    return named.every((one) => addresses.includes(one));
  const only = FAMILY_ONLY[key];
  const pools = DIALECT_POOLS.filter((one) => new RegExp(`(^|[",])${one.name}($|[",])`).test(value)).map(
    parsed,
  );
  const inPool = (one: string) => pools.some((pool) => isIn(partOf(pool, pool.name), addr(one)));
  const of = addresses.filter((one) => only === undefined || familyOf(addr(one)) === only);
  // beside addresses by name, pools say where these are
  return (isExact || of.length > 0) && of.every(inPool);
}

/** A MAC address of a pool is the pod's, with its addresses; any other is told of. */
function judgeMacs(all: Labels, given: readonly string[] | undefined, told: string): void {
  for (const [key, value] of Object.entries(all).filter(([one]) => isMac(one))) {
    const has = given?.some((one) => one.endsWith("@mac-eth0")) === true;
    assert.ok(value === OUR_MAC ? has : told.includes(key), `${key}=${value} got ${given?.join()}: ${told}`);
  }
}

/** All that is asked for is served, or nothing of it is Berth's and each annotation is told of. */
function judge(all: Labels, given: readonly string[] | undefined, told: string): void {
  const { [MULTUS]: networks = "lan", ...others } = all;
  const annotations = Object.fromEntries(Object.entries(others).filter(([key]) => !isMac(key)));
  const isOurs = OURS.some((one) => networks.includes(`"${one}/`));
  const isOn = (one: string, name: string) => !one.includes("@") || one.endsWith(`@${name}`);
  const addressesOf = (name: string) =>
    given?.filter((one) => isOn(one, name)).map((one) => one.split("@")[0] ?? "");
  if (networks !== "lan") {
    const has = addressesOf("net1")?.some((one) => networks.includes(`"${one}/`)) === true;
    assert.equal(has, isOurs, `${networks} got ${given?.join()}`);
    assert.ok(isOurs || told.includes(MULTUS), `${networks} is not told of: ${told}`);
  }
  const eth0 = addressesOf("eth0");
  const addresses = eth0?.length === 0 ? undefined : eth0;
  const named = given?.filter((one) => one.endsWith("@net1")).map((one) => one.split("@")[0] ?? "");
  const ofNet1 = named?.length === 0 ? undefined : named;
  const families = eth0?.length === 0 ? addressesOf("net1") : eth0; // are of each interface
  const isExact = Object.values(annotations).some((value) => /\d\.\d|::/.test(value));
  for (const [key, value] of Object.entries(annotations)) {
    const served = isNic(key) ? ofNet1 : /famil/i.test(key) ? families : addresses;
    if (served !== undefined) {
      assert.ok(isServed(key, value, served, isExact), `${key}=${value} got ${served.join()}`);
      continue;
    }
    assert.ok(told.includes(key), `${key} is not told of: ${told}`);
    assert.ok(!/green/.test(value) && !OURS.some((one) => value.includes(one)), `${key}=${value} was left`);
  }
}

/** What the first review wrote into the pod, as the second one has it. */
async function secondReview(
  admission: AdmissionContext,
  object: Json,
  first: AdmissionResponse,
): Promise<Json> {
  const made = applied(object, first);
  const answer = await validatePods(admission)(review(made, "CREATE"), NEVER);
  assert.equal(deniedAs(answer), "", JSON.stringify(annotationsOf(made)));
  return made;
}

async function emptied(world: World): Promise<void> {
  for (const one of await world.all("reservation")) await world.store.remove("reservation", one);
  for (const one of await world.all("claim")) await world.store.remove("claim", one);
  await world.settle();
}

describe("mixtures of systems' annotations", () => {
  it("of a StatefulSet are those of its pods: a list beside what is left to others, and MAC addresses that change", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    const context = { ...world.context, dialects: OWN_OF_EACH };
    const host = { ...world.admission, context, dialects: OWN_OF_EACH };
    const handled = async (annotations: Labels, uid: string) => {
      const object = statefulPod("web", 1, { annotations });
      const first = await mutatePods(host)(review(object, "CREATE"), NEVER);
      if (!first.allowed) return undefined;
      await world.settle();
      const metadata = (one: Json) => ({ ...one, metadata: { ...(one["metadata"] as Json), uid } });
      const made = metadata(applied(object, first));
      const second = await validatePods(host)(review(made, "CREATE"), NEVER);
      assert.equal(deniedAs(second), "", JSON.stringify(annotationsOf(made)));
      await world.settle();
      return made;
    };
    await fc.assert(
      fc.asyncProperty(lists, foreign, macsOfSet, macsOfSet, async (list, others, before, after) => {
        const asking = (macs: string): Labels => ({
          ...list,
          ...others,
          ...(macs === "" || list["berth.dev/ips"] === undefined ? {} : { "berth.dev/mac": macs }),
        });
        const set = workload("StatefulSet", "web", { uid: "u", annotations: asking(before), replicas: 2 });
        const judged = await validateWorkloads(replica(world))(review(set, "CREATE"), NEVER);
        assert.equal(deniedAs(judged), "");
        for (const [n, macs] of [before, after].entries()) {
          const made = (await handled(asking(macs), `u${n}`)) ?? assert.fail("it was refused");
          const told = annotationsOf(made)["berth.dev/addresses"]?.split(",") ?? [];
          assert.ok(
            told.some((one) => one.split("@")[0] === pair[1]),
            told.join(),
          );
          const claim = (await world.all("claim")).find(({ record }) => record.name === "web-1");
          assert.deepEqual(toldOf(claim?.record ?? assert.fail()), told);
          const mac = asking(macs)["berth.dev/mac"]?.split(";")[1];
          assert.equal(macOn(claim?.record ?? assert.fail(), "eth0"), mac);
          await validatePods(host)(review(made, "DELETE", { object: null, oldObject: made }), NEVER);
        }
        await emptied(world);
      }),
      { numRuns: runsOf(200, 40) },
    );
  });

  it("of a pod and its namespace are served together: Calico's pools of each family", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    const keys = ["cni.projectcalico.org/ipv4pools", "cni.projectcalico.org/ipv6pools"] as const;
    const value = fc.option(
      names.map((list) => JSON.stringify(list)),
      { nil: undefined },
    );
    const side = fc
      .tuple(value, value)
      .map(
        (values): Labels =>
          Object.fromEntries(keys.flatMap((key, n) => (values[n] === undefined ? [] : [[key, values[n]]]))),
      );
    let count = 0;
    await fc.assert(
      fc.asyncProperty(side, side, foreign, async (own, space, others) => {
        await namespace(world, space);
        const object = pod(`c-${count++}`, { annotations: { ...own, ...others } });
        const first = await mutatePods(replica(world))(review(object, "CREATE"), NEVER);
        await world.settle();
        if (first.allowed) await secondReview(replica(world), object, first);
        await emptied(world);
      }),
      { numRuns: runsOf(200, 40) },
    );
  });

  it("are served exactly as all of them say, are left with each of them told, or are refused", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    let count = 0;
    await fc.assert(
      fc.asyncProperty(mixtures, async (annotations) => {
        const object = pod(`p-${count++}`, { annotations });
        const answer = await mutatePods(replica(world))(review(object, "CREATE"), NEVER);
        await world.settle();
        if (!answer.allowed) {
          assert.match(deniedAs(answer), /^[A-Z_]+: .{20}/);
          return;
        }
        await secondReview(replica(world), object, answer);
        const [claim] = await world.all("claim");
        for (const one of await world.all("reservation")) await world.store.remove("reservation", one);
        if (claim !== undefined) await world.store.remove("claim", claim);
        await world.settle();
        const given = claim && toldOf(claim.record);
        judgeMacs(annotations, given, String(answer.warnings));
        judge(annotations, given, String(answer.warnings));
      }),
      { numRuns: runsOf(600, 60) },
    );
  });
});
