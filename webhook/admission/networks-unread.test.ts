// SPDX-License-Identifier: Apache-2.0
// Multus' networks in forms that Go's encoding/json reads, or that nobody can read, through the reviews of a cluster.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { deniedAs, pod, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";

const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const DEFAULT = "v1.multus-cni.io/default-network";

async function answered(world: World, name: string, annotations: Labels) {
  const { embedded: _, ...admission } = world.admission;
  const answer = await mutatePods({ ...admission, dialects: OWN_OF_EACH })(
    review(pod(name, { annotations }), "CREATE"),
    new AbortController().signal,
  );
  await world.settle();
  const claim = (await world.all("claim")).map(({ record }) => record).find((one) => one.name === name);
  return { answer, has: claim && formatHolding(claim) };
}

describe("Multus' networks", () => {
  it("are read as Go reads them: in any letter case, with escapes, and the last of several", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const read = {
      upper: '[{"name":"lan","IPs":["10.20.0.71/24"]}]',
      escaped: '[{"name":"lan","\\u0069ps":["10.20.0.72"]}]',
      folded: '[{"name":"lan","ip\u017f":["10.20.0.73"]}]',
      last: '[{"name":"lan","ips":["10.99.0.1"],"IPS":["10.20.0.74"]}]',
      place: '[{"Name":"lan","Interface":"net1","ips":["10.20.0.75"]}]',
    };
    for (const [name, value] of Object.entries(read)) {
      const { answer, has } = await answered(world, name, { [NETWORKS]: value });
      assert.equal(answer.allowed, true, answer.status?.message);
      assert.match(has?.join() ?? "", /^10\.20\.0\.7\d@net1$/, value);
    }
  });

  it("that cannot be read and name an address of Berth's are refused in words", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const element = /its ips are not addresses in a list, such as/;
    const list = /it is no JSON list of networks, such as/;
    const values: readonly (readonly [string, RegExp])[] = [
      ['[{"name":"lan","ips":"10.20.0.51"}]', element],
      ['[{"name":"lan","ips":{"a":"10.20.0.51"}}]', element],
      ['[{"name":"lan","ips":[" 10.20.0.51"]}]', element],
      ['[{"name":"lan","ips":["10.20.0.51-10.20.0.52"]}]', element],
      ['[{"name":"lan","ips":[["10.20.0.51"]]}]', element],
      ['{"name":"lan","ips":["10.20.0.51"]}', list],
      ['[{"name":"lan","ips":["10.20.0.51"]}', list],
      ['["lan",{"name":"lan","ips":["10.20.0.51"]}]', list],
    ];
    for (const key of [NETWORKS, DEFAULT])
      for (const [value, words] of values) {
        const { answer } = await answered(world, "a", { [key]: value });
        assert.match(deniedAs(answer) ?? "", words, `${key} ${value}`);
      }
  });

  it("that cannot be read and name none are left to Multus, and told of", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const value of [
      '[{"name":"lan","ips":"10.99.0.51"}]',
      '[{"name":"lan","ips":["10.99.0.51"]}',
      '[{"name":"lan","ips":["dhcp"]}]',
    ]) {
      const { answer, has } = await answered(world, "a", { [NETWORKS]: value });
      assert.deepEqual([answer.allowed, has], [true, undefined], value);
      assert.match(answer.warnings?.join() ?? "", /left to Multus/, value);
    }
  });

  it("without a MAC address or addresses ask for nothing", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const value of ['[{"name":"lan","ips":[],"mac":""}]', '[{"name":"lan","ips":null}]', "lan"]) {
      const { answer } = await answered(world, "b", { [NETWORKS]: value, "berth.dev/ips": "10.20.0.76" });
      assert.deepEqual([answer.allowed, answer.warnings], [true, undefined], value);
    }
  });
});

describe("Spiderpool's pools", () => {
  it("are read in any letter case", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { has } = await answered(world, "a", {
      "ipam.spidernet.io/ippools": '[{"Interface":"net1","IPv4":["db"]}]',
    });
    assert.match(has?.join() ?? "", /^10\.20\.0\.\d+@net1$/);
  });
});
