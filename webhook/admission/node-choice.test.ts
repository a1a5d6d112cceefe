// SPDX-License-Identifier: Apache-2.0
// A pod with a fixed address runs where that address is routed, so the pool is chosen by where the pod may run.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NodeFacts } from "../../allocator/model/node-terms.ts";
import { poolRecord } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  deniedAs,
  deploymentPod,
  type Json,
  pod,
  review,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { createHandlers } from "./routes.ts";

const ZONE = "topology.kubernetes.io/zone";
const zone = (name: string) => ({ matchLabels: { [ZONE]: name } });
const BEIJING = poolRecord("beijing", "10.1.0.0/24", { nodeSelector: zone("beijing") });
const SHANGHAI = poolRecord("shanghai", "10.2.0.0/24", { nodeSelector: zone("shanghai") });
const STICKY = { "berth.dev/sticky": "true" };

const inZone = (name: string) => ({ nodeSelector: { [ZONE]: name } });
const required = (...nodeSelectorTerms: readonly Json[]) => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});
const node = (name: string, labels: NodeFacts["labels"]): NodeFacts => ({ name, labels });
const NODES = [
  node("node-b", { [ZONE]: "beijing", disk: "hdd" }),
  node("node-s", { [ZONE]: "shanghai", disk: "ssd" }),
];

/** As in a cluster, whose nodes the webhook watches. */
function admissionOf(world: World, nodes: readonly NodeFacts[] = NODES): AdmissionContext {
  const { embedded: _, ...admission } = world.admission;
  const { objects } = world;
  const inventory = {
    pod: objects.pod.bind(objects),
    workload: objects.workload.bind(objects),
    namespace: objects.namespace.bind(objects),
    fenced: objects.fenced.bind(objects),
    nodes: () => nodes,
  };
  return { ...admission, inventory };
}

/** The addresses that the pod is told, or the words of the refusal. */
async function given(
  world: World,
  object: Json,
  admission: AdmissionContext = admissionOf(world),
): Promise<string> {
  const handler = createHandlers(admission)["/mutate/pods"];
  const response = await handler(review(object), new AbortController().signal);
  await world.settle();
  if (!response.allowed) return deniedAs(response);
  return annotationsOf(applied(object, response))["berth.dev/addresses"] ?? "none";
}

let names = 0;
const sticky = (spec: Json, annotations: Readonly<Record<string, string>> = STICKY) =>
  pod(`p-${++names}`, { annotations, spec });

describe("the pool of a pod that names none", () => {
  it("is one of the nodes that its nodeSelector, affinity or nodeName allows", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    const only = (key: string, operator: string, ...values: string[]) => ({ key, operator, values });
    const shanghai: Json[] = [
      inZone("shanghai"),
      required({ matchExpressions: [only(ZONE, "In", "shanghai", "shenzhen")] }),
      required({ matchExpressions: [only(ZONE, "NotIn", "beijing")] }),
      required({ matchExpressions: [only("disk", "In", "ssd")] }),
      required({ matchFields: [only("metadata.name", "In", "node-s")] }),
      { nodeSelector: { disk: "ssd" } },
      { nodeName: "node-s" },
    ];
    for (const spec of shanghai) assert.match(await given(world, sticky(spec)), /^10\.2\.0\./);
    const either = required(
      { matchExpressions: [only(ZONE, "In", "shanghai")] },
      { matchExpressions: [only(ZONE, "In", "beijing")] },
    );
    for (const spec of [{}, either, inZone("beijing")])
      assert.match(await given(world, sticky(spec)), /^10\.1\.0\./);
  });

  it("has a node of the pod's now rather than later, when nodes are added", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    const gpu = { nodeSelector: { gpu: "yes" } };
    assert.match(await given(world, sticky(gpu)), /^10\.1\.0\./);
    const more = admissionOf(world, [...NODES, node("node-g", { [ZONE]: "shanghai", gpu: "yes" })]);
    assert.match(await given(world, sticky(gpu), more), /^10\.2\.0\./);
    const unknown = { ...more, inventory: { ...more.inventory, nodes: () => undefined } };
    assert.match(await given(world, sticky(gpu), unknown), /^10\.1\.0\./);
    assert.match(await given(world, sticky(inZone("shanghai")), unknown), /^10\.2\.0\./);
  });

  it("is refused in words where there is none", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    assert.equal(
      await given(world, sticky(inZone("shenzhen"))),
      `NODE_MISMATCH: pool "beijing" is for nodes with ${ZONE}=beijing, pool "shanghai" is for nodes with ${ZONE}=shanghai, where this pod cannot run by its own nodeName, nodeSelector or node affinity; name a pool of the pod's nodes, or change where the pod may run`,
    );
  });
});

describe("pools that are named", () => {
  const from = (pools: string) => ({ "berth.dev/pools": pools });

  it("are alternatives in their order: one of other nodes is passed over", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    assert.match(await given(world, sticky(inZone("shanghai"), from("beijing,shanghai"))), /^10\.2\.0\.\d+$/);
    assert.match(
      await given(world, sticky(inZone("shanghai"), from("beijing"))),
      /^NODE_MISMATCH: pool "bei/,
    );
    assert.match(await given(world, sticky({}, from("shanghai,beijing"))), /^10\.2\.0\./);
  });

  it("do not give an address by name to a pod of other nodes", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    const pin = { "berth.dev/ips": "10.1.0.9" };
    assert.match(
      await given(world, sticky(inZone("shanghai"), pin)),
      /^NODE_MISMATCH: pool "beijing" is for/,
    );
    assert.equal(await given(world, sticky(inZone("beijing"), pin)), "10.1.0.9");
  });
});

describe("an address that a pod has already", () => {
  it("is kept, and its pod refused where it cannot run: no other address is given in its place", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    const mysql = (spec: Json) => statefulPod("mysql", 0, { annotations: STICKY, spec });
    const address = await given(world, mysql({}));
    assert.match(address, /^10\.1\.0\./);
    assert.match(
      await given(world, mysql(inZone("shanghai"))),
      new RegExp(`^NODE_MISMATCH: address ${address}, which is kept for this pod, is of pool "beijing"`),
    );
    assert.equal(await given(world, mysql(inZone("beijing"))), address);
  });

  it("moves when the pod names the other pool as well", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    const mysql = (annotations: Readonly<Record<string, string>>, spec: Json) =>
      statefulPod("mysql", 0, { annotations, spec });
    await given(world, mysql(STICKY, {}));
    assert.match(
      await given(world, mysql({ "berth.dev/pools": "shanghai" }, inZone("shanghai"))),
      /^10\.2\.0\./,
    );
  });
});

describe("a workload", () => {
  it("is told at once that its template asks for other nodes than its addresses are for", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    const handler = createHandlers(admissionOf(world))["/validate/workloads"];
    const judged = async (object: Json) => {
      const response = await handler(review(object), new AbortController().signal);
      return response.allowed ? "allowed" : deniedAs(response);
    };
    const template = { ...inZone("shanghai"), containers: [] };
    const annotations = { "berth.dev/ips": "10.1.0.9;10.1.0.10" };
    for (const kind of ["StatefulSet", "Deployment"]) {
      const set = workload(kind, "web", { replicas: 1, annotations });
      const made = set["spec"] as { template: Json };
      const moved = { ...set, spec: { ...made, template: { ...made.template, spec: template } } };
      assert.equal(await judged(set), "allowed");
      assert.match(await judged(moved), /NODE_MISMATCH: .*pool "beijing" is for nodes/);
    }
  });

  it("has a slot for each pod where that pod may run", async () => {
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI] });
    const annotations = { "berth.dev/ips": "10.1.0.9;10.2.0.9" };
    const web = (spec: Json) => deploymentPod("web", { annotations, spec });
    assert.equal(await given(world, web(inZone("shanghai"))), "10.2.0.9");
    assert.match(
      await given(world, web(inZone("shanghai"))),
      /^SET_EXHAUSTED: none of the 2 entries of the list can be used: /,
    );
    assert.equal(await given(world, web({})), "10.1.0.9");
  });
});

/** Two families of a pod's addresses, where pools of each zone have both, or one each. */
describe("the pools of a pod with both families", () => {
  const both = (name: string, n: number, over: Json = {}) => ({
    ...poolRecord(name, `10.${n}.0.0/24`, {
      ranges: [{ cidr: `10.${n}.0.0/24` }, { cidr: `fd00:${n}::/64`, ...over }],
      nodeSelector: zone(name),
    }),
  });
  const ONE = { from: "fd00:1::10", to: "fd00:1::10" };
  const families = { "berth.dev/families": "IPv4,IPv6" };
  const DUAL = { ...STICKY, ...families };

  it("are of one zone, also when the first one has no IPv6 address left", async () => {
    await using world = await openWorld({ pools: [both("beijing", 1, ONE), both("shanghai", 2)] });
    assert.match(await given(world, sticky({}, DUAL)), /^10\.1\.0\.\d+,fd00:1::/);
    assert.match(await given(world, sticky({}, DUAL)), /^10\.2\.0\.\d+,fd00:2::/);
    assert.match(await given(world, sticky({}, STICKY)), /^10\.2\.0\.\d+,fd00:2::/);
    const named = { "berth.dev/pools": "beijing,shanghai", ...families };
    assert.match(await given(world, sticky({}, named)), /^10\.2\.0\.\d+,fd00:2::/);
    assert.match(
      await given(world, sticky({}, { ...STICKY, "berth.dev/families": "IPv4" })),
      /^10\.1\.0\.\d+$/,
    );
    assert.match(await given(world, sticky(inZone("beijing"), DUAL)), /^POOL_EXHAUSTED: .*"beijing"/);
  });

  it("go together where one of them is for all nodes", async () => {
    const all = poolRecord("all", "fd00:9::/64");
    await using world = await openWorld({ pools: [BEIJING, SHANGHAI, all] });
    assert.match(await given(world, sticky({}, DUAL)), /^10\.1\.0\.\d+,fd00:9::/);
    assert.match(await given(world, sticky(inZone("shanghai"), DUAL)), /^10\.2\.0\.\d+,fd00:9::/);
  });

  it("are refused in words where no node is of both", async () => {
    const six = poolRecord("six", "fd00:2::/64", { nodeSelector: zone("shanghai") });
    await using world = await openWorld({ pools: [BEIJING, six] });
    const words = `NODE_MISMATCH: pool "beijing" is for nodes with ${ZONE}=beijing, pool "six" is for nodes with ${ZONE}=shanghai, and no node is of both; name addresses or pools of the same nodes, or one family`;
    const named = { "berth.dev/pools": "beijing,six" };
    for (const asks of [DUAL, named, { "berth.dev/ips": "10.1.0.7,fd00:2::7" }])
      assert.equal(await given(world, sticky({}, asks)), words);
  });
});

describe("a pool that no node is of now", () => {
  const WEB = poolRecord("web", "10.3.0.0/24");
  const none = [node("node-a", {})];
  const pending = `pool "beijing" is for nodes with ${ZONE}=beijing, and no node has that now: the pod stays Pending until one has`;

  async function warned(admission: AdmissionContext, object: Json): Promise<readonly string[]> {
    const route = object["kind"] === "Pod" ? "/mutate/pods" : "/validate/workloads";

    const response = await createHandlers(admission)[route](review(object), new AbortController().signal);
    assert.equal(response.allowed, true);
    return response.warnings ?? [];
  }

  it("serves no pod that another pool serves, though it may run anywhere", async () => {
    await using world = await openWorld({ pools: [BEIJING, WEB] });
    const admission = admissionOf(world, none);
    assert.match(await given(world, sticky({}), admission), /^10\.3\.0\./);
    const named = { "berth.dev/pools": "beijing,web" };
    assert.match(await given(world, sticky({}, named), admission), /^10\.3\.0\./);
    assert.deepEqual(await warned(admission, sticky({}, named)), []);
    const unknown = { ...admission, inventory: { ...admission.inventory, nodes: () => undefined } };
    assert.match(await given(world, sticky({}, named), unknown), /^10\.1\.0\./);
  });

  it("serves one that names no other, with a warning", async () => {
    await using world = await openWorld({ pools: [BEIJING, WEB] });
    const admission = admissionOf(world, none);
    const named = sticky({}, { "berth.dev/pools": "beijing" });
    assert.match(await given(world, named, admission), /^10\.1\.0\./);
    assert.deepEqual(await warned(admission, named), [pending]);
    const pinned = sticky({ nodeSelector: { disk: "ssd" } }, { "berth.dev/ips": "10.1.0.9" });
    assert.deepEqual(await warned(admission, pinned), [
      pending.replace("no node has", "no node where the pod may run has"),
    ]);
    assert.deepEqual(await warned(admissionOf(world), named), []);
  });

  it("is named to the author of a template, unless he may not read pools", async () => {
    await using world = await openWorld({ pools: [BEIJING, WEB] });
    const admission = admissionOf(world, none);
    for (const kind of ["StatefulSet", "Deployment", "DaemonSet"]) {
      const set = (annotations: Readonly<Record<string, string>>) =>
        workload(kind, "db", { replicas: 1, annotations });
      assert.deepEqual(await warned(admission, set({ "berth.dev/pools": "beijing" })), [pending]);
      assert.deepEqual(await warned(admission, set({ "berth.dev/pools": "beijing,web" })), []);
    }
    const list = workload("StatefulSet", "db", {
      replicas: 1,
      annotations: { "berth.dev/ips": "10.3.0.9;10.1.0.9" },
    });
    assert.deepEqual(await warned(admission, list), [pending]);
    const closed = { ...admission, readAccess: { mayRead: async () => false } };
    assert.deepEqual(await warned(closed, list), [
      "no node where the pod may run is now one of those that its address is for: it stays Pending",
    ]);
  });
});
