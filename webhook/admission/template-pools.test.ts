// SPDX-License-Identifier: Apache-2.0
// Templates that ask for pools or addresses which no pod of theirs would get: said when they are applied.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, namespaceObject, pod, review, workload } from "../../test/support/objects.ts";
import { admitPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { createHandlers } from "./routes.ts";

const V6 = poolRecord("six", "fd00:30::/64");
const BANK = poolRecord("bank", "10.40.0.0/24", { namespaceSelector: { matchLabels: { team: "bank" } } });
const TINY = poolRecord("tiny", "10.80.0.0/30");
const GUARDED = poolRecord("guarded", "10.41.0.0/24", { authorization: "ServiceAccount" });
const LABELLED = poolRecord("labelled", "10.42.0.0/24", { podSelector: { matchLabels: { tier: "edge" } } });
const OFF = poolRecord("off", "10.43.0.0/24", { disabled: true });
const POOLS = [DB_POOL, V6, BANK, TINY, GUARDED, LABELLED, OFF];

const KINDS = [
  ...["Deployment", "ReplicaSet", "ReplicationController", "DaemonSet", "Job", "CronJob"],
  ...["CloneSet", "Rollout", "VirtualMachine"],
] as const;
type KindOfWorkload = (typeof KINDS)[number];

const VERSIONS: Readonly<Record<string, string>> = {
  ReplicationController: "v1",
  Job: "batch/v1",
  CronJob: "batch/v1",
  Rollout: "argoproj.io/v1alpha1",
  VirtualMachine: "kubevirt.io/v1",
};

function asking(kind: KindOfWorkload, annotations: Readonly<Record<string, string>>, spec: Json = {}): Json {
  const plain = workload(kind, "web", { annotations, spec });
  const apiVersion = VERSIONS[kind] ?? (plain["apiVersion"] as string);
  const own =
    kind === "CronJob" ? { schedule: "@daily", jobTemplate: { spec: plain["spec"] } } : plain["spec"];
  return { ...plain, apiVersion, spec: own };
}

async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, "/validate/workloads", object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

/** As in a cluster, where a person asks. */
async function saidWith(
  world: World,
  over: Partial<AdmissionContext>,
  object: Json,
  of: Parameters<typeof review>[2] = {},
): Promise<string> {
  const { embedded: _, ...admission } = world.admission;
  const handle = createHandlers({ ...admission, ...over })["/validate/workloads"];
  const operation = of.oldObject === undefined ? "CREATE" : "UPDATE";
  const response = await handle(review(object, operation, of), new AbortController().signal);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

const named = (pools: string) => ({ "berth.dev/pools": pools });

describe("a template whose pods no pool serves", () => {
  for (const kind of KINDS) {
    const now = `the pods of this ${kind} would be refused now: `;

    it(`is warned of what may come, and refused what cannot: ${kind}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const before = world.dump();
      for (const [annotations, words] of [
        [named("nosuch"), `${now}there is no pool "nosuch"; name one of "db", "six", "tiny"`],
        [named("labelled"), `${now}pool "labelled" takes only pods with other labels `],
        [named("guarded"), `${now}pool "guarded" is only for service accounts with the verb "use" on it`],
        [named("off"), `${now}pool "off" takes no new reservations`],
        [named("bank"), 'POOL_FORBIDDEN: pool "bank" is not open to namespace shop; open to it: '],
        [named("six/IPv4"), 'FAMILY_UNAVAILABLE: no IPv4 range in pool "six"'],
        [
          { ...named("six"), "berth.dev/families": "IPv4" },
          'FAMILY_UNAVAILABLE: no IPv4 range in pool "six"',
        ],
        [{ "berth.dev/ips": "192.0.2.1" }, "ADDRESS_OUTSIDE: address 192.0.2.1 is in no pool"],
        [{ "berth.dev/ips": "10.20.0.100" }, "ADDRESS_EXCLUDED: "],
      ] as const) {
        // of a Deployment's list each entry is looked at, and must be enough
        const isList = "berth.dev/ips" in annotations && (kind === "Deployment" || kind === "CloneSet");
        const reported = await said(world, asking(kind, annotations, isList ? { replicas: 1 } : {}), {
          dryRun: true,
        });
        assert.ok(reported.startsWith(words), `${JSON.stringify(annotations)}: ${reported}`);
      }
      assert.doesNotMatch(await said(world, asking(kind, named("db")), { dryRun: true }), /refused/);
      assert.equal(world.dump(), before, "and nothing is written");
    });
  }

  it("hears that a pool is full, and that an address is taken, when it asks for them", async () => {
    await using world = await openWorld({ pools: POOLS });
    for (const name of ["a", "b"]) await admitPod(world, pod(name, { annotations: named("tiny") }));
    await admitPod(world, pod("c", { annotations: { "berth.dev/ips": "10.20.0.70" } }));
    const full = asking("Deployment", named("tiny"));
    const words = /^the pods of this Deployment would be refused now: no free IPv4 address in pool "tiny"/;
    assert.match(await said(world, full), words);
    const changed = asking("Deployment", named("tiny"), { paused: true });
    assert.equal(
      await said(world, changed, { operation: "UPDATE", oldObject: full }),
      "",
      "its own may have them",
    );
    const fixed = asking("DaemonSet", { "berth.dev/ips": "10.20.0.70" });
    const held =
      /^the pods of this DaemonSet would be refused now: address 10\.20\.0\.70 in pool "db" is held by shop\/c/;
    assert.match(await said(world, fixed), held);
    await assertClean(world);
  });

  it("may be changed otherwise, as to have fewer pods", async () => {
    await using world = await openWorld({ pools: POOLS });
    const before = asking("Deployment", named("bank"), { replicas: 5 });
    const over = { operation: "UPDATE", oldObject: before } as const;
    assert.match(
      await said(world, asking("Deployment", named("bank"), { replicas: 0 }), over),
      /^the pods of this Deployment would be refused now: pool "bank" is not open to namespace shop/,
    );
    const relabelled = workload("Deployment", "web", {
      annotations: named("bank"),
      labels: { app: "other" },
    });
    assert.match(await said(world, relabelled, over), /^POOL_FORBIDDEN: /);
  });

  it("has the pools that its namespace is open to, and that its account may use", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/validate/namespaces", namespaceObject("shop", {}, { team: "bank" }));
    assert.equal(await said(world, asking("Job", named("bank"))), "");
    const access = { mayUse: async ({ name }: { readonly name: string }) => name === "robot" };
    const template = { metadata: { annotations: named("guarded") }, spec: { serviceAccountName: "robot" } };
    for (const kind of ["DaemonSet", "CronJob"] as const)
      assert.equal(await saidWith(world, { access }, asking(kind, named("guarded"), { template })), "");
  });

  it("is told of a pool that was made a moment before as soon as that is known", async () => {
    await using world = await openWorld({ pools: [] });
    const object = asking("DaemonSet", named("db"));
    assert.match(await said(world, object), /there are no pools yet/);
    const catchUp = async () => {
      await world.realStore.create("pool", DB_POOL);
      await world.settle();
      return true;
    };
    assert.equal(await saidWith(world, { catchUp }, object), "");
  });

  it("is told no more than who asks may know, and the difference tells nobody where pools are", async () => {
    await using world = await openWorld({ pools: [DB_POOL, BANK] });
    const readAccess = { mayRead: async () => false };
    const reported = new Set<string>();
    for (const annotations of [
      named("nosuch"),
      named("bank"),
      named("bank/IPv6"),
      { "berth.dev/ips": "10.40.0.7" },
      { "berth.dev/ips": "192.0.2.1" },
    ])
      reported.add(
        (await saidWith(world, { readAccess }, asking("DaemonSet", annotations))).split(" | ")[0] ?? "",
      );
    assert.deepEqual(
      [...reported],
      [
        'the pods of this DaemonSet would be refused now: what is asked for is in no pool that is open to it in namespace shop; open to all: "db"; ask whoever runs the network',
      ],
    );
  });
});
