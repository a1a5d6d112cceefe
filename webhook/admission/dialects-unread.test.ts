// SPDX-License-Identifier: Apache-2.0
// Values in other systems' words that ask for nothing, or that Berth cannot read.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Labels } from "../../allocator/base/ports.ts";
import { type Dialects, OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, namespaceObject, pod, review } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";

const POOL = poolRecord("web", ["10.20.0.0/24", "fd00:20::/120"]);
const OPTED_IN = { "berth.dev/admission": "enabled" };

async function asking(
  world: World,
  annotations: Labels,
  { name = "a", dialects = OWN_OF_EACH }: { name?: string; dialects?: Dialects } = {},
) {
  const { embedded: _, ...admission } = world.admission;
  const request = review(pod(name, { annotations }), "CREATE");
  return await mutatePods({ ...admission, dialects })(request, new AbortController().signal);
}

const EMPTY: readonly Labels[] = [
  { "cni.projectcalico.org/ipAddrs": "" },
  { "cni.projectcalico.org/ipAddrs": "", "cni.projectcalico.org/ipAddrsNoIpam": "" },
  { "cni.projectcalico.org/ipv4pools": "" },
  { "cni.projectcalico.org/ipv4pools": "[]" },
  { "cni.projectcalico.org/ipv6pools": " [ ] " },
  { "ovn.kubernetes.io/ip_address": "" },
  { "ovn.kubernetes.io/logical_switch": "" },
  { "ipam.antrea.io/ippools": "" },
  { "networking.alibaba.com/ip-pool": "" },
];

describe("an empty value in another system's words", () => {
  it("asks for nothing, whoever is to answer", async () => {
    await using world = await openWorld({ pools: [POOL] });
    for (const annotations of EMPTY) {
      for (const dialects of [OWN_OF_EACH, {}]) {
        const answer = await asking(world, annotations, { dialects });
        const said = [answer.allowed, answer.warnings, answer.status?.message];
        assert.deepEqual(said, [true, undefined, undefined], JSON.stringify(annotations));
      }
    }
    assert.equal((await world.all("claim")).length, 0);
  });

  it("keeps nobody from what the pod asks berth for, or its namespace does", async () => {
    await using world = await openWorld({ pools: [POOL] });
    for (const [n, annotations] of EMPTY.entries()) {
      const both = { ...annotations, "berth.dev/ips": `10.20.0.${n + 1}` };
      assert.equal((await asking(world, both, { name: `p-${n}` })).allowed, true);
    }
    const key = "cni.projectcalico.org/ipv4pools";
    await send(world, "/validate/namespaces", namespaceObject("shop", { [key]: '["web"]' }, OPTED_IN));
    assert.equal((await asking(world, { [key]: "" }, { name: "q" })).allowed, true);
    await world.settle();
    assert.equal((await world.all("claim")).length, EMPTY.length + 1);
  });
});

describe("a value that berth cannot read", () => {
  const UNREADABLE = (address: string, other: string): readonly Labels[] => [
    { "cni.projectcalico.org/ipAddrs": address },
    { "cni.projectcalico.org/ipAddrs": JSON.stringify([other, address]) },
    { "ovn.kubernetes.io/ip_address": `${address}/16` },
    { "ovn.kubernetes.io/ip_address": `${other},${address}` },
    { "networking.alibaba.com/ip-pool": `${other}-${address}` },
    { "ipam.antrea.io/pod-ips": `[${address}]` },
    { "static-ipam.ipv4": `ip=${address}.` },
    { "v1.multus-cni.io/default-network": `[{"name":"macvlan","ips":["${address} /24"]}]` },
  ];

  it("is left to its system, which is told, where no address of berth's is in it", async () => {
    await using world = await openWorld({ pools: [POOL] });
    for (const annotations of UNREADABLE("10.99.0.5", "10.99.0.4")) {
      const answer = await asking(world, annotations);
      assert.equal(answer.allowed, true, `${JSON.stringify(annotations)}: ${answer.status?.message}`);
      const [key] = Object.keys(annotations);
      assert.match(
        String(answer.warnings),
        new RegExp(`^annotation ${key} cannot be read by berth, and is left to `),
      );
    }
    assert.equal((await world.all("claim")).length, 0);
  });

  it("is refused where one is, where a pool is named, and where berth is asked, too", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const all = [
      ...UNREADABLE("10.20.0.5", "10.99.0.4"),
      { "static-ipam.ipv4": "010.020.000.005" },
      { "kube-ipam.ip": "FD00:20:0::7/64" },
      { "cni.projectcalico.org/ipv4pools": "web" },
      { "cni.projectcalico.org/ipv4pools": "10.20.0.0/24" },
      { "ipam.spidernet.io/ippool": '{"ipv4":"web"}' },
      { "cni.projectcalico.org/ipAddrs": "10.99.0.5", "berth.dev/pools": "web" },
    ];
    for (const annotations of all) {
      const answer = await asking(world, annotations);
      assert.equal(answer.allowed, false, JSON.stringify(annotations));
      assert.match(deniedAs(answer), /^REQUEST_INVALID: /);
    }
  });

  it("is never let through with an address of berth's, however it is written", async () => {
    await using world = await openWorld({ pools: [POOL] });
    const part = fc.constantFrom("10.20.0.7", "fd00:20::7", "web", "10.99.0.7", "fd00:99::7", "theirs");
    const before = fc.constantFrom(",", ";", "/", " ", '"', "[", "|", "=", "(", "");
    const after = fc.constantFrom(",", ";", "/", " ", '"', "]", "|", "/24", "-", ".", "");
    const text = fc.array(fc.tuple(before, part, after), { minLength: 1, maxLength: 3 });
    const keys = EMPTY.flatMap((one) => Object.keys(one).slice(0, 1));
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...keys), text, async (key, parts) => {
        const value = parts.map((one) => one.join("")).join("|");
        const answer = await asking(world, { [key]: value });
        const reported = String(answer.warnings);
        const isOurs = parts.some(([, one]) => ["10.20.0.7", "fd00:20::7", "web"].includes(one));
        assert.ok(!(isOurs && /cannot be read/.test(reported)), `${key}=${value} was left`);
        if (!isOurs)
          assert.ok(answer.allowed && /left to/.test(reported), `${key}=${value}: ${answer.status?.message}`);
      }),
      { numRuns: runsOf(600, 100) },
    );
  });
});
