// SPDX-License-Identifier: Apache-2.0
// What the first review of a pod admits, the second one lets in: whatever was left to other systems, and wherever the pools were named.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Labels } from "../../allocator/base/ports.ts";
import { type Dialects, OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { DIALECT_POOLS } from "../../test/support/dialect-cases.ts";
import {
  annotationsOf,
  applied,
  deniedAs,
  type Json,
  namespaceObject,
  pod,
  review,
  statefulPod,
} from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validatePods } from "./validate-pod.ts";

const NEVER = new AbortController().signal;
const OPTED_IN = { "berth.dev/admission": "enabled" };
const MULTUS = "k8s.v1.cni.cncf.io/networks";
const POOLS = "cni.projectcalico.org";

/** What both reviews say, in turn, as the API server sends them: "", or the words of the one that refuses. */
async function reviews(world: World, object: Json, dialects: Dialects): Promise<readonly [string, string]> {
  const { embedded: _, ...admission } = world.admission;
  const replica = { ...admission, dialects };
  const first = await mutatePods(replica)(review(object, "CREATE"), NEVER);
  if (!first.allowed) return [deniedAs(first), ""];
  await world.settle();
  const mutated = applied(object, first);
  const made = { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: "u" } };
  const second = await validatePods(replica)(review(made, "CREATE"), NEVER);
  return ["", second.allowed ? "" : deniedAs(second)];
}

async function space(world: World, annotations: Labels): Promise<void> {
  await send(world, "/validate/namespaces", namespaceObject("shop", annotations, OPTED_IN));
}

const element = (name: string, ...ips: readonly string[]) => ({ name, ips });
const LIST = { "berth.dev/ips": "10.20.0.7;10.20.0.8" };
const many = Array.from({ length: 17 }, (_, n) => `10.99.0.${n + 1}`);
/** In no pool of Berth's: each is left to its network. */
const FOREIGN: readonly (readonly object[])[] = [
  [element("x", "10.99.0.9")],
  [element("x", "10.99.0.9", "10.99.0.10")],
  [element("x", ...many)],
  [element("x", "10.99.0.9"), element("y", "10.99.0.9")],
  [element("x", "dhcp")],
];

describe("a pod that is admitted is let in", () => {
  for (const [n, elements] of FOREIGN.entries())
    for (const [what, annotations] of Object.entries({
      list: LIST,
      "list of kube-ovn": { "ovn.kubernetes.io/ip_pool": "10.20.0.7,10.20.0.8" },
      "address, or any": { "berth.dev/ips": "10.20.0.7", "berth.dev/fallback": "any" },
    }))
      it(`beside what is left to another network (${n}): ${what}`, async () => {
        await using world = await openWorld({ pools: DIALECT_POOLS });
        await space(world, {});
        const asked = { annotations: { ...annotations, [MULTUS]: JSON.stringify(elements) } };
        const object = what.startsWith("list") ? statefulPod("web", 1, asked) : pod("a", asked);
        assert.deepEqual(await reviews(world, object, OWN_OF_EACH), ["", ""]);
      });

  it("whose pools of one family it names, and its namespace those of the other", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await space(world, { [`${POOLS}/ipv4pools`]: '["green-pool"]' });
    const asked = { annotations: { [`${POOLS}/ipv6pools`]: '["green-pool"]' } };
    for (let n = 0; n < 4; n++)
      assert.deepEqual(await reviews(world, pod(`p${n}`, asked), OWN_OF_EACH), ["", ""]);
  });

  it("and not where what it was given is of neither", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await space(world, { [`${POOLS}/ipv4pools`]: '["green-pool"]' });
    const { embedded: _, ...admission } = world.admission;
    const asked = { annotations: { "berth.dev/ips": "10.16.0.15" } };
    const mutated = applied(
      pod("a", asked),
      await mutatePods(admission)(review(pod("a", asked), "CREATE"), NEVER),
    );
    await world.settle();
    const { "berth.dev/ips": __, ...rest } = annotationsOf(mutated);
    const annotations = { ...rest, [`${POOLS}/ipv6pools`]: '["green-pool"]' };
    const other = { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: "u", annotations } };
    assert.match(deniedAs(await validatePods(admission)(review(other, "CREATE"), NEVER)), /10\.16\.0\.15/);
  });

  const families = fc.constantFrom("ipv4pools", "ipv6pools");
  const calico = fc
    .dictionary(families, fc.constantFrom('["green-pool"]', '["green-v4-pool"]', '["theirs"]'), {
      maxKeys: 2,
    })
    .map((all) => Object.fromEntries(Object.entries(all).map(([key, value]) => [`${POOLS}/${key}`, value])));
  const cilium = fc
    .dictionary(
      fc.constantFrom("ip-pool", "ipv4-pool", "ipv6-pool"),
      fc.constantFrom("green-pool", "green-v4-pool", "theirs"),
      { maxKeys: 3 },
    )
    .map((all) =>
      Object.fromEntries(Object.entries(all).map(([key, value]) => [`ipam.cilium.io/${key}`, value])),
    );
  const ofFamilies = fc.oneof(calico, cilium);
  const own = fc.constantFrom<Labels>(
    {},
    LIST,
    { "berth.dev/ips": "10.20.0.7" },
    { "berth.dev/pools": "green-pool" },
  );
  const networks = fc.constantFrom<Labels>({}, ...FOREIGN.map((all) => ({ [MULTUS]: JSON.stringify(all) })));
  const asked = fc.record({
    defaults: fc.oneof(ofFamilies, fc.constantFrom<Labels>({ "berth.dev/pools": "green-pool" })),
    annotations: fc.tuple(ofFamilies, own, networks).map((all) => Object.assign({}, ...all) as Labels),
    ordinal: fc.boolean(),
    dialects: fc.constantFrom<Dialects>(OWN_OF_EACH, {}),
  });

  it("whatever it and its namespace ask for, in any mixture", async () => {
    await fc.assert(
      fc.asyncProperty(asked, async ({ defaults, annotations, ordinal, dialects }) => {
        await using world = await openWorld({ pools: DIALECT_POOLS });
        await space(world, defaults);
        const object = ordinal ? statefulPod("web", 1, { annotations }) : pod("a", { annotations });
        const [, second] = await reviews(world, object, dialects);
        assert.equal(second, "");
      }),
      { numRuns: runsOf(600, 60) },
    );
  });
});
