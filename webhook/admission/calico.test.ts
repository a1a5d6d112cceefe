// SPDX-License-Identifier: Apache-2.0
// Pods in Calico's words in a cluster that may have a Calico of its own.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Labels } from "../../allocator/base/ports.ts";
import type { ForeignChoice } from "../../allocator/manifest/foreign-requests.ts";
import { type DialectChoice, type Dialects, SYSTEM_NAMES } from "../../allocator/model/dialect.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { namespaceObject, pod, review, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validateNamespaces } from "./validate-namespace.ts";
import { validatePods } from "./validate-pod.ts";
import { validateWorkloads } from "./validate-workload.ts";

const ADDRESSES = "cni.projectcalico.org/ipAddrs";
const POOLS = "cni.projectcalico.org/ipv4pools";
const THEIRS = { [ADDRESSES]: '["10.244.0.5"]' };
const OURS = { [ADDRESSES]: '["10.20.0.70"]' };
const LEFT =
  "annotation cni.projectcalico.org/ipAddrs asks for 10.244.0.5, and berth has no such address in its pools: it is left to Calico, and berth gives this pod no address; write berth.dev/ips to get one from berth";
const OUTSIDE = 'address 10.244.0.5 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199';

/** The same of every system. */
const each = (choice: DialectChoice): Dialects =>
  Object.fromEntries(SYSTEM_NAMES.map((system) => [system, choice]));

interface Wanted {
  readonly dialects?: Dialects;
  readonly foreignRequests?: ForeignChoice;
  readonly catchUp?: () => Promise<boolean>;
}

/** A replica of a cluster. Namespace shop is there. */
async function replica(world: World, wanted: Wanted): Promise<AdmissionContext> {
  await send(world, "/validate/namespaces", namespaceObject("shop", {}, {}));
  const { embedded: _, ...admission } = world.admission;
  return { ...admission, ...wanted };
}

async function mutated(world: World, annotations: Labels, wanted: Wanted = { dialects: each("own") }) {
  const admission = await replica(world, wanted);
  const request = review(pod("a", { annotations }), "CREATE", { oldObject: null });
  const answer = await mutatePods(admission)(request, new AbortController().signal);
  const validated = await validatePods(admission)(request, new AbortController().signal);
  await world.settle();
  return { answer, validated, claims: [...world.cache.claims()].length };
}

describe("a request in Calico's words", () => {
  it("for no address of berth's is Calico's matter, with a warning, and takes nothing", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const [annotations, words] of [
      [THEIRS, LEFT],
      [
        { [POOLS]: '["default-ipv4-ippool"]' },
        "annotation cni.projectcalico.org/ipv4pools asks for default-ipv4-ippool, and berth has no such pool: it is left to Calico, and berth gives this pod no address; write berth.dev/pools to get one from berth",
      ],
    ] as const) {
      const { answer, validated, claims } = await mutated(world, annotations);
      assert.deepEqual([answer.allowed, answer.warnings, claims], [true, [words], 0]);
      assert.equal(validated.allowed, true);
      assert.equal(answer.patch, undefined);
    }
  });

  it("for an address of berth's is served by berth, and not without a claim", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { answer, validated, claims } = await mutated(world, OURS);
    assert.deepEqual([answer.allowed, claims], [true, 1]);
    assert.equal(validated.allowed, false);
  });

  it("is berth's all the same beside a request to berth, or to be sticky, or in a namespace of berth's", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const annotations of [
      { ...THEIRS, "berth.dev/pools": "db" },
      { ...THEIRS, "berth.dev/sticky": "true" },
    ])
      assert.equal((await mutated(world, annotations)).answer.allowed, false);
    await send(world, "/validate/namespaces", namespaceObject("shop", { "berth.dev/pools": "db" }, {}));
    const { embedded: _, ...admission } = world.admission;
    const request = review(pod("a", { annotations: THEIRS }), "CREATE", { oldObject: null });
    const answer = await mutatePods({ ...admission, dialects: each("own") })(
      request,
      new AbortController().signal,
    );
    assert.equal(answer.allowed, false);
  });

  it("is refused as the administrator says: for other systems, or in all words of Calico", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const strict = await mutated(world, THEIRS, { dialects: each("own"), foreignRequests: "refuse" });
    assert.equal(strict.answer.status?.message?.includes(LEFT), true, strict.answer.status?.message);
    const quiet = await mutated(world, THEIRS, { dialects: each("own"), foreignRequests: "ignore" });
    assert.deepEqual([quiet.answer.allowed, quiet.answer.warnings], [true, undefined]);
    const all = await mutated(world, THEIRS, { dialects: each("all") });
    assert.equal(all.answer.allowed, false);
    assert.equal(all.answer.status?.message?.includes(OUTSIDE), true, all.answer.status?.message);
  });

  it("that is not read is another system's, whatever it asks for", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { answer, validated, claims } = await mutated(world, OURS, { dialects: each("none") });
    assert.deepEqual([answer.allowed, answer.warnings, claims], [true, undefined, 0]);
    assert.deepEqual(
      [validated.allowed, validated.warnings],
      [
        true,
        [
          "annotation cni.projectcalico.org/ipAddrs is Calico's, and berth does not read it; write berth.dev/ips for an address of berth's",
        ],
      ],
    );
  });

  it("is left to nobody before the view has heard of every pool", async () => {
    await using world = await openWorld({ pools: [] });
    const catchUp = async () => {
      await world.realStore.create("pool", DB_POOL);
      await world.settle();
      return true;
    };
    const { answer, claims } = await mutated(world, OURS, { dialects: each("own"), catchUp });
    assert.deepEqual([answer.allowed, claims], [true, 1]);
  });

  it("in a template is told at the workload, and reserves nothing", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const admission = await replica(world, { dialects: each("own") });
    const set = workload("StatefulSet", "mysql", { annotations: THEIRS, replicas: 1 });
    const answer = await validateWorkloads(admission)(review(set, "CREATE"), new AbortController().signal);
    assert.deepEqual([answer.allowed, answer.warnings], [true, [LEFT]]);
  });

  it("on a namespace is told of; what is not JSON is Calico's to refuse", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const admission = await replica(world, { dialects: each("own") });
    const space = namespaceObject("shop", { [POOLS]: "nonsense", "ipam.antrea.io/ippools": "x" }, {});
    const ask = async (over: Wanted) =>
      await validateNamespaces({ ...admission, ...over })(
        review(space, "CREATE"),
        new AbortController().signal,
      );
    assert.deepEqual((await ask({})).warnings, [
      "annotation cni.projectcalico.org/ipv4pools cannot be read by berth, and is left to Calico; write berth.dev/pools to get an address from berth",
      "annotation ipam.antrea.io/ippools asks for x, and berth has no such pool: it is left to Antrea, and berth gives its pods no address; write berth.dev/pools to get one from berth",
    ]);
    const words = ["cni.projectcalico.org/ipv4pools is Calico's", "ipam.antrea.io/ippools is Antrea's"].map(
      (what) =>
        `annotation ${what}, and berth does not read it; write berth.dev/pools for an address of berth's`,
    );
    assert.deepEqual((await ask({ dialects: each("none") })).warnings, words);
    assert.equal((await ask({ foreignRequests: "refuse" })).allowed, false);
    assert.equal((await ask({ foreignRequests: "ignore" })).warnings, undefined);
  });
});
