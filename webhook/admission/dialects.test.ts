// SPDX-License-Identifier: Apache-2.0
// Every annotation of other systems that Berth reads, through the reviews of a cluster.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../allocator/model/claim.ts";
import { macOn } from "../../allocator/model/interface-macs.ts";
import { addressesOn, formatHolding } from "../../allocator/model/interfaces.ts";
import { isIn } from "../../allocator/planning/pool-sources.ts";
import { DIALECT_CASES, DIALECT_POOLS, type DialectCase } from "../../test/support/dialect-cases.ts";
import { addr, parsed, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, pod, review, statefulPod, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { NEVER, namespace, replica } from "../testing/dialect-replica.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validateWorkloads } from "./validate-workload.ts";

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
      formatHolding(claim?.record ?? assert.fail()).join(),
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
    assert.deepEqual(formatHolding(claim?.record ?? assert.fail()), ["10.10.1.20@net1", "10.20.0.7@eth0"]);
    const others = JSON.stringify([{ name: "other", ips: ["10.99.0.7/24"] }]);
    for (const value of [others, "lan, web@net5", '[{"name":"lan"}]']) {
      const plain = pod("b", { annotations: { "k8s.v1.cni.cncf.io/networks": value } });
      const left = await mutatePods(replica(world))(review(plain, "CREATE"), NEVER);
      assert.equal(left.allowed, true);
      assert.equal((left.warnings ?? []).length, value === others ? 1 : 0, String(left.warnings));
    }
  });
});
