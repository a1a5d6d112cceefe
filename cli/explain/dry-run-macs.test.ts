// SPDX-License-Identifier: Apache-2.0
// `explain -f` of pods whose networks say MAC addresses.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { addressOfMac } from "../../allocator/ip/mac.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { granted, poolRecord } from "../../test/support/fixtures.ts";
import { deploymentPod, type Json, pod, statefulPod, workload } from "../../test/support/objects.ts";
import { openWorld } from "../../test/support/world.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { ManifestDryRun } from "./dry-run.ts";
import { judgeBeside } from "./manifest-aside.ts";

const [FIRST, LAST] = [addressOfMac("02:00:00:00:00:00"), addressOfMac("02:00:00:00:00:ff")];
const POOLS = [
  poolRecord("web", ["10.20.0.0/24"]),
  poolRecord("macs", [], {
    ranges: [{ cidr: "fe80::/64", from: FIRST, to: LAST }],
    reserved: [`${FIRST}-${LAST}`],
  }),
];
const OTHER =
  "REQUEST_INVALID the pod's networks say another MAC address of net1 than berth.dev/mac; take one of the two out";

/** Asks for three entries, and says the MAC address of the networks. */
function saying(mac: string, over: Readonly<Record<string, string>> = {}) {
  return {
    annotations: {
      "berth.dev/ips": "10.20.0.7-10.20.0.9@net1",
      "berth.dev/mac": "02:00:00:00:00:50-02:00:00:00:00:52@net1",
      "k8s.v1.cni.cncf.io/networks": JSON.stringify([{ name: "lan", mac }]),
      ...over,
    },
  };
}

async function foretold(...objects: readonly Json[]): Promise<readonly string[]> {
  await using world = await openWorld({ pools: POOLS });
  const view = await loadCache(world.realStore);
  const forecast = new ManifestDryRun({ ...world.context, view }, world.objects);
  const lines: string[] = [];
  for (const object of objects)
    for (const { subject, outcome } of await forecast.of(granted(readObject(object)))) {
      if (isRefusal(outcome)) lines.push(`${subject}: ${outcome.code} ${outcome.message}`);
      else if (outcome.kind === "dry-run")
        lines.push(`${subject}: ${outcome.addresses.map(({ address }) => address).join(" ")}`);
      else lines.push(`${subject}: ${outcome.kind}`);
    }
  return lines;
}

describe("explain -f, where a pod's networks say a MAC address", () => {
  it("names the entry of a Deployment's list that has it", async () => {
    assert.deepEqual(await foretold(deploymentPod("web", saying("02:00:00:00:00:51"))), [
      "pod/shop/web-5d9c7b-*: 10.20.0.8 fe80::ff:fe00:51",
    ]);
  });

  it("refuses what admission refuses, and keeps nothing for it", async () => {
    const one = { "berth.dev/ips": "10.20.0.7@net1", "berth.dev/mac": "02:00:00:00:00:50@net1" };
    const said = saying("02:00:00:00:00:51");
    assert.deepEqual(
      await foretold(
        deploymentPod("web", saying("02:00:00:00:00:60")),
        pod("a", saying("02:00:00:00:00:51", one)),
        statefulPod("mysql", 0, said),
        statefulPod("mysql", 1, said),
        pod("b", saying("02:00:00:00:00:50", one)),
      ),
      [
        `pod/shop/web-5d9c7b-*: ${OTHER}`,
        `pod/shop/a: ${OTHER}`,
        `pod/shop/mysql-0: ${OTHER}`,
        "pod/shop/mysql-1: 10.20.0.8 fe80::ff:fe00:51",
        "pod/shop/b: 10.20.0.7 fe80::ff:fe00:50",
      ],
    );
  });

  it("says so of a workload's pods, too", async () => {
    const set = (mac: string) => workload("StatefulSet", "mysql", { replicas: 2, ...saying(mac) });
    assert.deepEqual(await foretold(set("02:00:00:00:00:51")), [
      `pod/shop/mysql-0: ${OTHER}`,
      "pod/shop/mysql-1: 10.20.0.8 fe80::ff:fe00:51",
    ]);
    const deployment = workload("Deployment", "web", saying("02:00:00:00:00:60"));
    assert.deepEqual(await foretold(deployment, set("x")), [
      `deployment/shop/web, each pod: ${OTHER}`,
      `statefulset/shop/mysql, each pod: ${OTHER}`,
    ]);
  });

  it("gives a Deployment no slot that none of its pods can have", async () => {
    assert.deepEqual(await foretold(workload("Deployment", "web", saying("02:00:00:00:00:51"))), [
      "deployment/shop/web, slot 0: nothing",
      "deployment/shop/web, slot 1: 10.20.0.8 fe80::ff:fe00:51",
      "deployment/shop/web, slot 2: nothing",
    ]);
  });

  it("counts those of a Deployment that its pods can have", async () => {
    await using world = await openWorld({ pools: POOLS });
    const view = await loadCache(world.realStore);
    const spec = { strategy: { type: "Recreate" } };
    const web = granted(readObject(workload("Deployment", "web", { ...saying("02:00:00:00:00:51"), spec })));
    const rows = await new ManifestDryRun({ ...world.context, view }, world.objects).of(web);
    const judged = (replicas: number, more: { readonly there?: KubeObject } = {}) =>
      judgeBeside({ view, place: "cluster", isThere: false, replicas, ...more }, web, rows);
    assert.equal(isRefusal(judged(1)), false);
    assert.deepEqual(
      [judged(2)].flat().map((one) => (typeof one === "string" ? one : one.message)),
      [
        "the list has 1 entry (of 3) with the MAC address that the pods' networks say for 2 replicas; take the MAC address out of the networks or lower replicas",
      ],
    );
    const two = workload("Deployment", "web", { replicas: 2, ...saying("02:00:00:00:00:51"), spec });
    const was = judged(2, { there: granted(readObject(two)) });
    assert.match([was].flat().join(), /^pods of this Deployment are refused as before: the list has 1 entry/);
  });

  it("refuses a Deployment each of whose entries has another one on one interface", async () => {
    const crossed = {
      "berth.dev/ips": "10.20.0.7@net1,10.20.0.17@net2;10.20.0.8@net1,10.20.0.18@net2",
      "berth.dev/mac":
        "02:00:00:00:00:50@net1,02:00:00:00:00:60@net2;02:00:00:00:00:51@net1,02:00:00:00:00:61@net2",
      "k8s.v1.cni.cncf.io/networks":
        '[{"name":"lan","mac":"02:00:00:00:00:50"},{"name":"wan","mac":"02:00:00:00:00:61"}]',
    };
    assert.deepEqual(await foretold(workload("Deployment", "web", { annotations: crossed })), [
      "deployment/shop/web, each pod: REQUEST_INVALID the pod's networks say another MAC address of net2 than berth.dev/mac; take one of the two out",
    ]);
  });
});
