// SPDX-License-Identifier: Apache-2.0
// Owners whose pods' identity Berth does not know: what they ask to keep and will not is said when they are applied.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addressOfMac } from "../../allocator/ip/mac.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { attachmentOf, bindingTo, DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  claimObject,
  deniedAs,
  type Json,
  ownedBy,
  pod,
  workload,
} from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";

const POOLS = [DB_POOL];
const [FIRST, LAST] = [addressOfMac("02:00:00:00:00:00"), addressOfMac("02:00:00:00:00:ff")];
const MACS = poolRecord("macs", [], {
  ranges: [{ cidr: "fe80::/64", from: FIRST, to: LAST }],
  reserved: [`${FIRST}-${LAST}`],
});
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const lan = (mac: string) => ({ [NETWORKS]: JSON.stringify([{ name: "lan", mac }]) });
const PINNED = { "berth.dev/ips": "10.20.0.70" };
const STICKY = { "berth.dev/sticky": "true" };
const VMI = "kubevirt.io/v1";

function owner(kind: string, apiVersion: string, annotations: Readonly<Record<string, string>>): Json {
  return { ...workload(kind, "edge", { annotations }), apiVersion };
}

/** The warnings, or the refusal. */
async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, "/validate/workloads", object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

function launcher(id: string, annotations: Readonly<Record<string, string>>): Json {
  const instance = ownedBy("VirtualMachineInstance", "win", VMI);
  return pod(`virt-launcher-win-${id}`, { annotations, owner: instance });
}

async function toldOf(world: World, object: Json): Promise<string> {
  return ((await send(world, "/mutate/pods", object)).warnings ?? []).join(" | ");
}

/** The launcher comes, runs on a node, and is over. Its address, and what its review said. */
async function lives(
  world: World,
  object: Json,
): Promise<{ readonly address: string; readonly said: string }> {
  const reviewed = await send(world, "/mutate/pods", object);
  assert.equal(deniedAs(reviewed), "");
  const mutated = applied(object, reviewed);
  const { name } = object["metadata"] as { readonly name: string };
  const made = { ...mutated, metadata: { ...(mutated["metadata"] as Json), uid: `uid-of-${name}` } };
  assert.equal(deniedAs(await send(world, "/validate/pods", made)), "");
  const annotations = annotationsOf(made);
  const [claim] = await world.all("claim");
  assert.ok(claim !== undefined);
  const binding = bindingTo(name, "node-a", { token: annotations["berth.dev/token"] ?? "" });
  const bound = await world.realStore.replace("claim", claim, { ...claim.record, binding });
  assert.ok(bound.kind === "replaced");
  const attachment = attachmentOf(name, { detached: true });
  await world.realStore.report(bound.stored, { attachment });
  await send(world, "/validate/pods", made, { operation: "DELETE" });
  await settleDown(world);
  return {
    address: annotations["berth.dev/addresses"] ?? "",
    said: (reviewed.warnings ?? []).join(" | "),
  };
}

/** Nothing is waited for any more. */
async function settleDown(world: World): Promise<void> {
  for (let pass = 0; pass < 4; pass++) {
    world.clock.advance(100_000);
    await world.settle();
    await world.collector().pass();
  }
  await world.settle();
}

describe("a workload that is not read", () => {
  for (const [kind, apiVersion] of [
    ["DaemonSet", "apps/v1"],
    ["ReplicaSet", "apps/v1"],
    ["Rollout", "argoproj.io/v1alpha1"],
    ["StatefulSet", "apps.pingcap.com/v1alpha1"],
    ["VirtualMachine", VMI],
  ] as const) {
    it(`is told what it will not keep: ${kind} of ${apiVersion}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const before = world.dump();
      assert.match(await said(world, owner(kind, apiVersion, PINNED)), /held only while|goes with its pod/);
      assert.notEqual(await said(world, owner(kind, apiVersion, STICKY)), "");
      assert.equal(await said(world, owner(kind, apiVersion, {})), "");
      assert.equal(world.dump(), before, "and nothing is reserved for it, or kept");
    });
  }

  it("is refused what all its pods would be refused for", async () => {
    await using world = await openWorld({ pools: POOLS });
    const list = { "berth.dev/ips": "10.20.0.70;10.20.0.71" };
    assert.match(
      await said(world, owner("DaemonSet", "apps/v1", list)),
      /^REQUEST_INVALID: the request lists addresses for 2 pods, and this pod has no ordinal to choose by/,
    );
    assert.doesNotMatch(
      await said(world, owner("Rollout", "argoproj.io/v1alpha1", list)),
      /^REQUEST_INVALID/,
    );
    assert.match(
      await said(world, owner("DaemonSet", "apps/v1", { "berth.dev/ips": "10.20.0" })),
      /^REQUEST_INVALID: /,
    );
  });

  it("is told how many of its pods a list is for", async () => {
    await using world = await openWorld({ pools: POOLS });
    const wait = "the pods without one are refused until another is gone";
    const few = async (kind: string, apiVersion: string, spec: Json) => {
      const made = owner(kind, apiVersion, PINNED);
      const words = await said(world, { ...made, spec: { ...(made["spec"] as Json), ...spec } });
      return words.split(" | ").find((one) => one.startsWith("the list has"));
    };
    const job = `the list has 1 entry for 3 pods at once: ${wait}; lower parallelism, ask by berth.dev/pools, or write completionMode: Indexed and an entry for each index`;
    assert.equal(await few("Job", "batch/v1", { parallelism: 3 }), job);
    assert.equal(await few("Job", "batch/v1", { parallelism: 9, completions: 3 }), job);
    assert.equal(await few("Job", "batch/v1", { completions: 3 }), undefined);
    const replicas = `the list has 1 entry for 2 pods at once: ${wait}; lower replicas, or ask by berth.dev/pools`;
    for (const [kind, apiVersion] of [
      ["ReplicationController", "v1"],
      ["ReplicaSet", "apps/v1"],
      ["Rollout", "argoproj.io/v1alpha1"],
    ] as const) {
      assert.equal(await few(kind, apiVersion, { replicas: 2 }), replicas);
      assert.equal(await few(kind, apiVersion, { replicas: 1 }), undefined);
    }
    assert.equal(
      await few("DaemonSet", "apps/v1", {}),
      `the list has 1 entry for a pod on each node: ${wait}; ask by berth.dev/pools`,
    );
  });

  it("is refused where its pods' networks say another MAC address than it asks for", async () => {
    await using world = await openWorld({ pools: [...POOLS, MACS] });
    const refused =
      "the pod's networks say another MAC address of net1 than berth.dev/mac; take one of the two out";
    const one = { "berth.dev/ips": "10.20.0.70@net1", "berth.dev/mac": "02:00:00:00:00:50@net1" };
    const list = {
      "berth.dev/ips": "10.20.0.70-10.20.0.72@net1",
      "berth.dev/mac": "02:00:00:00:00:50-02:00:00:00:00:52@net1",
    };
    for (const [kind, apiVersion, asked] of [
      ["DaemonSet", "apps/v1", one],
      ["ReplicaSet", "apps/v1", one],
      ["Rollout", "argoproj.io/v1alpha1", list],
      ["VirtualMachine", VMI, one],
    ] as const) {
      const made = (mac: string) => owner(kind, apiVersion, { ...asked, ...lan(mac) });
      const other = made("06:00:00:00:00:50");
      assert.equal(await said(world, other), `REQUEST_INVALID: ${refused}`, kind);
      assert.doesNotMatch(await said(world, made("02:00:00:00:00:50")), /MAC address of net1/);
      const spec = { ...(other["spec"] as Json), replicas: 7 };
      const changed = await said(world, { ...other, spec }, { operation: "UPDATE", oldObject: other });
      assert.ok(changed.startsWith(`pods of this ${kind} are refused as before: ${refused}`), changed);
    }
    const rollout = owner("Rollout", "argoproj.io/v1alpha1", { ...list, ...lan("02:00:00:00:00:51") });
    const two = { ...rollout, spec: { ...(rollout["spec"] as Json), replicas: 2 } };
    assert.match(
      await said(world, two),
      /^the list has 1 entry \(of 3\) with the MAC address that the pods' networks say for 2 pods at once: /,
    );
    const crossed = {
      "berth.dev/ips": "10.20.0.70@net1,10.20.0.80@net2;10.20.0.71@net1,10.20.0.81@net2",
      "berth.dev/mac":
        "02:00:00:00:00:50@net1,02:00:00:00:00:60@net2;02:00:00:00:00:51@net1,02:00:00:00:00:61@net2",
      [NETWORKS]: JSON.stringify([
        { name: "lan", mac: "02:00:00:00:00:50" },
        { name: "wan", mac: "02:00:00:00:00:61" },
      ]),
    };
    assert.match(
      await said(world, owner("Rollout", "argoproj.io/v1alpha1", crossed)),
      /^REQUEST_INVALID: the pod's networks say another MAC address of net2 than/,
    );
    for (const kind of ["Job", "CronJob"] as const) {
      const indexed = (mac: string) =>
        jobOf(kind, { ...list, ...lan(mac) }, { completionMode: "Indexed", completions: 3 });
      assert.equal(
        await said(world, indexed("02:00:00:00:00:50")),
        `REQUEST_INVALID: pod of index 1: ${refused}`,
      );
      assert.equal(
        await said(world, indexed("02:00:00:00:00:52")),
        `REQUEST_INVALID: pod of index 0: ${refused}`,
      );
      const single = jobOf(kind, { ...one, ...lan("06:00:00:00:00:50") });
      assert.equal(await said(world, single), `REQUEST_INVALID: ${refused}`);
    }
    assert.deepEqual(await world.holdings(), {});
  });

  it("has pods that are told the same, unless their namespace asks for them", async () => {
    await using world = await openWorld({ pools: POOLS });
    const made = (annotations: Readonly<Record<string, string>>) =>
      pod("", { generateName: "edge-", annotations, owner: ownedBy("DaemonSet", "edge") });
    assert.match(
      await toldOf(world, made(STICKY)),
      /^berth.dev\/sticky has no effect on the pods of a DaemonSet/,
    );
    assert.match(await toldOf(world, made(PINNED)), /^an address is held only while a pod of the DaemonSet/);
    const rehearsed = await send(world, "/mutate/pods", made(STICKY), { dryRun: true });
    assert.match(
      (rehearsed.warnings ?? []).join(" | "),
      /^this pod would get .* \| berth.dev\/sticky has no/,
    );
    await assertClean(world);
  });
});

function jobOf(
  kind: "Job" | "CronJob",
  annotations: Readonly<Record<string, string>>,
  spec: Json = {},
): Json {
  const job = { template: { metadata: { annotations } }, ...spec };
  const its = kind === "Job" ? job : { schedule: "@daily", jobTemplate: { spec: job } };
  return { apiVersion: "batch/v1", kind, metadata: { name: "sums", namespace: "shop" }, spec: its };
}

describe("a Job and a CronJob", () => {
  for (const kind of ["Job", "CronJob"] as const) {
    it(`hear what their pods would be refused for, or would not keep: ${kind}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const before = world.dump();
      assert.equal(await said(world, jobOf(kind, {})), "");
      assert.equal(await said(world, jobOf(kind, { "berth.dev/pools": "db" })), "");
      assert.match(
        await said(world, jobOf(kind, STICKY)),
        /^berth.dev\/sticky has no effect on the pods of a Job/,
      );
      assert.match(
        await said(world, jobOf(kind, PINNED)),
        /^an address is held only while a pod of the Job has it/,
      );
      assert.match(
        await said(world, jobOf(kind, { "berth.dev/ip": "10.20.0.70" })),
        /^REQUEST_INVALID: annotation berth.dev\/ip: .*did you mean berth.dev\/ips\?$/,
      );
      assert.match(
        await said(world, jobOf(kind, { "ovn.kubernetes.io/vip": "x" })),
        /^annotation ovn.kubernetes.io\/vip is kube-ovn's: berth has no Vip/,
      );
      assert.equal(world.dump(), before, "and nothing is reserved or kept");
    });

    it(`whose pods have an index need an entry for each: ${kind}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const list = { "berth.dev/ips": "10.20.0.70;10.20.0.71", ...STICKY };
      const indexed = (completions: number) => ({ completionMode: "Indexed", completions });
      assert.equal(await said(world, jobOf(kind, list, indexed(2))), "");
      assert.match(
        await said(world, jobOf(kind, list, indexed(3))),
        /^LIST_TOO_SHORT: the list has 2 entries, for ordinals 0 to 1, and none for ordinal 2/,
      );
      assert.match(
        await said(world, jobOf(kind, list)),
        /^REQUEST_INVALID: the request lists addresses for 2/,
      );
    });
  }

  it("say where an annotation belongs that stands on the object", async () => {
    await using world = await openWorld({ pools: POOLS });
    const cron = jobOf("CronJob", {});
    const metadata = { name: "sums", namespace: "shop", annotations: STICKY };
    assert.match(
      await said(world, { ...cron, metadata }),
      /on the CronJob itself has no effect; move it to spec.jobTemplate.spec.template.metadata.annotations$/,
    );
  });

  it("say where an annotation belongs that stands on the Jobs of a CronJob", async () => {
    await using world = await openWorld({ pools: POOLS });
    const onJobs = (annotations: Readonly<Record<string, string>>) => {
      const spec = { schedule: "@daily", jobTemplate: { metadata: { annotations }, spec: { template: {} } } };
      return { ...jobOf("CronJob", {}), spec };
    };
    const place = "spec.jobTemplate.spec.template.metadata.annotations";
    assert.equal(
      await said(world, onJobs({ ...PINNED, app: "sums" })),
      `annotation berth.dev/ips on spec.jobTemplate.metadata has no effect; move it to ${place}`,
    );
    assert.equal(
      await said(world, onJobs({ "berth.dev/ipz": "10.20.0.70" })),
      `annotation berth.dev/ipz: berth knows no such annotation; did you mean berth.dev/ips? (on spec.jobTemplate.metadata, where it has no effect; move it to ${place})`,
    );
  });
});

describe("a template with annotations that Berth alone writes", () => {
  const ASSIGNED = { "berth.dev/addresses": "10.20.0.70", "berth.dev/claim": "licence" };
  const words = (effect: string) =>
    `annotations that berth alone writes ask for nothing, and ${effect}: berth.dev/claim, berth.dev/addresses; for an address write berth.dev/ips or berth.dev/pools`;

  for (const kind of ["StatefulSet", "Deployment", "DaemonSet", "CloneSet"]) {
    it(`is told that they ask for nothing: ${kind}`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const asking = workload(kind, "web", { annotations: ASSIGNED });
      assert.equal(await said(world, asking), words("are removed from its pods"));
      const before = { operation: "UPDATE", oldObject: asking } as const;
      assert.equal(await said(world, asking, before), "", "and no more once it is there");
      assert.deepEqual(await world.holdings(), {});
      const copied = workload(kind, "web", { annotations: { ...ASSIGNED, "berth.dev/pools": "db" } });
      assert.equal(await said(world, copied), "", "and not if it asks as well");
      const own = workload(kind, "web", { own: ASSIGNED });
      assert.equal(await said(world, own), words(`do nothing on a ${kind}`));
    });
  }

  it("is told of a Job, too", async () => {
    await using world = await openWorld({ pools: POOLS });
    for (const kind of ["Job", "CronJob"] as const)
      assert.equal(await said(world, jobOf(kind, ASSIGNED)), words("are removed from its pods"));
  });
});

describe("a virtual machine that is stopped", () => {
  it("loses its address, and its launcher is told so", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { said: reported } = await lives(world, launcher("a", PINNED));
    assert.match(reported, /^the address of virtual machine win is held only while it runs; /);
    assert.deepEqual(await world.holdings(), {});
  });

  it("keeps it when it is told to, as the warning says, for the next launcher", async () => {
    await using world = await openWorld({ pools: POOLS });
    const annotations = { "berth.dev/pools": "db", "berth.dev/when-deleted": "Retain" };
    const first = await lives(world, launcher("a", annotations));
    assert.match(first.said, /^the address of virtual machine win stays for limits.retention of its pool /);
    assert.deepEqual(Object.keys(await world.holdings()), ["shop/win"]);
    assert.equal((await lives(world, launcher("b", annotations))).address, first.address);
  });

  it("keeps it for good by a claim that a person made, and nothing is said", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/validate/claims", claimObject("win", { request: { addresses: ["10.20.0.70"] } }));
    for (const id of ["a", "b"]) {
      assert.deepEqual(await lives(world, launcher(id, PINNED)), { address: "10.20.0.70", said: "" });
    }
    assert.deepEqual(Object.keys(await world.holdings()), ["shop/win"]);
  });
});
