// SPDX-License-Identifier: Apache-2.0
// Claims of different kinds that have one name: whoever comes second is refused in words, and nobody has another's address.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  claimObject,
  deniedAs,
  deploymentPod,
  type Json,
  ownedBy,
  pod,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const POOLS = [DB_POOL];
const INDEX = "batch.kubernetes.io/job-completion-index";

interface Kind {
  readonly what: string;
  /** Pods of its kinds have names of their own: of one name there is one pod. */
  readonly named?: true;
  readonly podOf: (ips: string) => Json;
}

/** Everything whose claim is called web-slot-0. */
const KINDS: readonly Kind[] = [
  { what: "a pod", named: true, podOf: (ips) => pod("web-slot-0", asking(ips)) },
  { what: "an ordinal", named: true, podOf: (ips) => statefulPod("web-slot", 0, asking(ips)) },
  {
    what: "an ordinal of another group",
    named: true,
    podOf: (ips) => owned("web-slot-0", ips, ownedBy("StatefulSet", "web-slot", "apps.kruise.io/v1beta1")),
  },
  {
    what: "an index of a Job",
    podOf: (ips) =>
      pod("web-slot-0-x7k2p", {
        annotations: { ...asking(ips).annotations, [INDEX]: "0" },
        owner: ownedBy("Job", "web-slot", "batch/v1"),
      }),
  },
  {
    what: "a machine",
    podOf: (ips) =>
      owned("virt-launcher-x", ips, ownedBy("VirtualMachineInstance", "web-slot-0", "kubevirt.io/v1")),
  },
  { what: "a slot of a Deployment", podOf: (ips) => deploymentPod("web", asking(ips)) },
  {
    what: "a slot of a ReplicaSet",
    podOf: (ips) => owned("web-x", ips, ownedBy("ReplicaSet", "web", "apps/v1")),
  },
  {
    what: "a slot of a CloneSet",
    podOf: (ips) => owned("web-y", ips, ownedBy("CloneSet", "web", "apps.kruise.io/v1alpha1")),
  },
  {
    what: "a slot of a Rollout",
    podOf: (ips) =>
      pod("web-z", {
        ...asking(ips),
        labels: { "rollouts-pod-template-hash": "6b" },
        owner: ownedBy("ReplicaSet", "web-6b"),
      }),
  },
];

function asking(ips: string): { readonly annotations: Readonly<Record<string, string>> } {
  return { annotations: { "berth.dev/ips": ips } };
}

function owned(name: string, ips: string, owner: Json): Json {
  return pod(name, { ...asking(ips), owner });
}

/** What the second comer is told: a code and words, or the address that it got. */
async function second(world: World, { podOf }: Kind, ips: string): Promise<string> {
  return await admitPod(world, podOf(ips));
}

const REFUSED = /^(CLAIM_BUSY|SET_EXHAUSTED): .*claim shop\/web-slot-0/;

describe("claims of one name", () => {
  for (const first of KINDS) {
    for (const other of KINDS.filter((kind) => kind !== first && !(kind.named && first.named))) {
      it(`${first.what} first, then ${other.what}: that one is refused`, async () => {
        await using world = await openWorld({ pools: POOLS });
        await createPod(world, first.podOf("10.20.0.70"), podName(first));
        const before = world.dump();
        for (const ips of ["10.20.0.70", "10.20.0.80"])
          assert.match(await second(world, other, ips), REFUSED);
        assert.equal(world.dump(), before);
        await assertClean(world);
      });
    }
  }

  it("of a pod that nothing tells from its like is not for a pod that is called like it", async () => {
    await using world = await openWorld({ pools: POOLS });
    const annotations = { "berth.dev/pools": "db" };
    const made = await createPod(world, pod("", { generateName: "etl-", annotations }), "etl-x7k2p");
    const { "berth.dev/claim": name = "", "berth.dev/addresses": address } = annotationsOf(made);
    const before = world.dump();
    for (const asks of [annotations, { "berth.dev/ips": String(address) }, asking("10.20.0.80").annotations])
      assert.match(
        await admitPod(world, pod(name, { annotations: asks })),
        /^CLAIM_BUSY: claim shop\/c-\w+ belongs to /,
      );
    assert.equal(world.dump(), before);
    assert.equal(await admitPod(world, pod(name)), "", "nor for one that asks for nothing");
  });
});

function podName({ podOf }: Kind): string {
  const { name = "web-5d9c7b-x" } = podOf("10.20.0.70")["metadata"] as Readonly<Record<string, string>>;
  return name;
}

describe("a workload whose places have the names of a Deployment's slots", () => {
  const LIST = { "berth.dev/ips": "10.20.0.70;10.20.0.71" };
  const web = workload("Deployment", "web", { replicas: 1, annotations: LIST });
  const set = (replicas = 1) =>
    workload("StatefulSet", "web-slot", { replicas, annotations: { "berth.dev/pools": "db" }, spec: {} });
  const taken =
    "CLAIM_BUSY: pod web-slot-0: the name of ordinal 0 is taken by claim shop/web-slot-0 of Deployment web, slot 0: " +
    "rename or delete Deployment web; if it is gone, the claim is released when its pods are gone: try again in a moment";

  it("is refused while the Deployment is there, before any of its pods", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(deniedAs(await send(world, "/validate/workloads", web)), "");
    const before = world.dump();
    for (const dryRun of [true, false])
      assert.equal(deniedAs(await send(world, "/validate/workloads", set(), { dryRun })), taken);
    assert.equal(world.dump(), before);
    assert.equal(await admitPod(world, deploymentPod("web", { annotations: LIST })), "10.20.0.70");
    await assertClean(world);
  });

  it("may be of a Job or a machine, whose pods are refused", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/validate/workloads", web);
    const before = world.dump();
    for (const kind of KINDS.filter(({ what }) => !what.startsWith("a slot")))
      assert.match(await second(world, kind, "10.20.0.80"), REFUSED, kind.what);
    assert.equal(world.dump(), before);
  });

  it("keeps them from a Deployment that comes later, which is refused", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(deniedAs(await send(world, "/validate/workloads", set())), "");
    const words =
      /^CLAIM_BUSY: the name of slot 0 is taken by claim shop\/web-slot-0 of StatefulSet web-slot, ordinal 0/;
    assert.match(deniedAs(await send(world, "/validate/workloads", web)), words);
    assert.match(
      await admitPod(world, statefulPod("web-slot", 0, { annotations: { "berth.dev/pools": "db" } })),
      /^10\.20\.0\./,
    );
  });
});

describe("a claim made by hand", () => {
  const machine = { kind: "VirtualMachineInstance", apiVersion: "kubevirt.io/v1", name: "win11" };
  const job = { kind: "Job", apiVersion: "batch/v1", name: "train", ordinal: 0 };

  for (const [title, name, identity] of [
    ["a machine", "win11", machine],
    ["an index of a Job", "train-0", job],
  ] as const) {
    it(`for ${title} is not for a pod that is called like it`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const claim = claimObject(name, { request: { addresses: ["10.20.0.70"] }, identity });
      assert.equal(deniedAs(await send(world, "/validate/claims", claim)), "");
      assert.match(await admitPod(world, pod(name, asking("10.20.0.70"))), /^CLAIM_BUSY: /);
      assert.equal(await admitPod(world, pod(name)), "");
    });
  }
});
