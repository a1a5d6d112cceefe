// SPDX-License-Identifier: Apache-2.0
// Every annotation of other systems that Berth reads, and mixtures of them, through the reviews of a cluster.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Labels } from "../../allocator/base/ports.ts";
import { familyOf, parseAddress } from "../../allocator/ip/address.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { isIn, partOf } from "../../allocator/planning/pool-choice.ts";
import { DIALECT_CASES, DIALECT_POOLS, type DialectCase } from "../../test/support/dialect-cases.ts";
import { addr, parsed, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, namespaceObject, pod, review, statefulPod, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { mutatePods } from "./mutate-pod.ts";
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
      assert.equal(claim.addresses.length, one.gets.length, claim.addresses.join());
      for (const [n, expected] of one.gets.entries()) {
        const address = claim.addresses[n] ?? assert.fail();
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

  it("for several interfaces is refused if a pool of berth's is named, and left to its system otherwise", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    const asking = async (pool: string) => {
      const value = `[{"interface":"eth0","ipv4":["${pool}"]},{"interface":"net1","ipv4":["x"]}]`;
      const object = pod("a", { annotations: { "ipam.spidernet.io/ippools": value } });
      return await mutatePods(replica(world))(review(object, "CREATE"), NEVER);
    };
    assert.match(deniedAs(await asking("demo-v4-ippool1")), /further interfaces/);
    const left = await asking("theirs");
    assert.deepEqual([left.allowed, /left to Spiderpool/.test(String(left.warnings))], [true, true]);
  });
});

const OURS = ["10.20.0.7", "10.20.0.8", "fd00:20::7"];
const THEIRS = ["10.99.0.7", "fd00:99::7"];
const POOLS = ["green-pool", "green-v4-pool", "theirs"];
const address = fc.constantFrom(...OURS, ...THEIRS);
const name = fc.constantFrom(...POOLS);
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
};

const mixtures = fc
  .subarray(Object.keys(VALUES), { minLength: 1, maxLength: 3 })
  .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, VALUES[key] ?? fc.constant("")]))));

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

/** All that is asked for is served, or nothing of it is Berth's and each annotation is told of. */
function judge(annotations: Labels, addresses: readonly string[] | undefined, told: string): void {
  const isExact = Object.values(annotations).some((value) => /\d\.\d|::/.test(value));
  for (const [key, value] of Object.entries(annotations)) {
    if (addresses !== undefined) {
      assert.ok(isServed(key, value, addresses, isExact), `${key}=${value} got ${addresses.join()}`);
      continue;
    }
    assert.ok(told.includes(key), `${key} is not told of: ${told}`);
    assert.ok(!/green/.test(value) && !OURS.some((one) => value.includes(one)), `${key}=${value} was left`);
  }
}

describe("mixtures of systems' annotations", () => {
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
        const [claim] = await world.all("claim");
        for (const one of await world.all("reservation")) await world.store.remove("reservation", one);
        if (claim !== undefined) await world.store.remove("claim", claim);
        await world.settle();
        judge(annotations, claim?.record.addresses, String(answer.warnings));
      }),
      { numRuns: runsOf(600, 60) },
    );
  });
});
