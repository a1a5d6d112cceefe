// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { claimObject, type Json, pod, poolObject } from "../support/objects.ts";
import type { kubectlOn } from "./kubectl-calls.ts";
import { statefulSet } from "./manifests.ts";

export const asking = (name: string, ips: string) => pod(name, { annotations: { "berth.dev/ips": ips } });

/** What people read whom Berth refuses or warns, where pod licence has 10.20.0.70. */
export function refusalCases({ apply, kubectl }: ReturnType<typeof kubectlOn>): void {
  it("refuses what cannot be had, in words that say what to do", async () => {
    const refused = (what: string) =>
      `Error from server (Forbidden): error when creating "STDIN": admission webhook "${what}.berth.dev" denied the request: `;
    const nearby = "free nearby: 10.20.0.72, 10.20.0.73, 10.20.0.74";
    const held = `address 10.20.0.70 in pool "db" is held by shop/licence (Pod licence); ${nearby}; or delete pod licence, and if its claim stays: berthctl release shop/licence`;
    const refusals = {
      "10.20.0.70": held,
      "192.0.2.1": 'address 192.0.2.1 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199',
      "10.20.0.65": `address 10.20.0.65 is excluded from pool "db"; ${nearby}`,
      "10.20.0.100":
        'address 10.20.0.100 is the gateway of pool "db"; free nearby: 10.20.0.99, 10.20.0.101, 10.20.0.98',
      "10.50.0.3": 'pool "vault" is not open to namespace shop; open to it: "db"',
      "10.20.0.300":
        'annotation berth.dev/ips: entry 1, "10.20.0.300", is not an IP address (write 10.20.0.51 or fd00:20::51, no prefix)',
    };
    for (const [ips, words] of Object.entries(refusals)) {
      assert.equal(await apply(asking("wrong", ips)), refused("pods") + words);
    }
    assert.equal(
      await apply(claimObject("mine", { request: { addresses: ["10.20.0.70"] } })),
      refused("claims") + held,
    );
    assert.equal(
      await apply(statefulSet("short", 3, { "berth.dev/ips": "10.20.0.90" })),
      `${refused("workloads")}the list has 1 entry, for ordinals 0 to 0, and none for ordinal 1; write berth.dev/ips alone, with an entry for each ordinal, or lower replicas`,
    );
    assert.equal(
      await apply(statefulSet("misplaced", 1, {}, { "berth.dev/ips": "10.20.0.90" })),
      "Warning: annotation berth.dev/ips on the StatefulSet itself has no effect; move it to spec.template.metadata.annotations",
    );
    assert.match(
      await apply(unread("DaemonSet", "edge", { "berth.dev/sticky": "true" })),
      /^Warning: berth.dev\/sticky has no effect on the pods of a DaemonSet, which Berth cannot tell from each other; /,
    );
    assert.match(
      await apply(unread("ReplicaSet", "bare", { "berth.dev/ips": "10.20.0.91" })),
      /^Warning: an address is held only while a pod of the ReplicaSet has it, /,
    );
    assert.match(
      await apply(
        unread("ReplicaSet", "stuck", { "berth.dev/ips": "10.20.0.91", "berth.dev/sticky": "true" }),
      ),
      /^Warning: berth.dev\/sticky has no effect on the pods of a ReplicaSet: .*\nWarning: an address is held only /,
    );
    assert.equal(
      await apply(poolObject("db2", { ranges: [{ cidr: "10.20.0.192/28" }] })),
      `${refused("pools")}pools db2 and db both contain 10.20.0.193-10.20.0.199; change from, to or cidr of one of them`,
    );
    const removed = await kubectl(["delete", "ippool", "db", "--wait=false"]);
    assert.match(
      removed.stderr,
      /"pools\.berth\.dev" denied the request: pool db is in use: it still holds 10\.20\.0\.70 \(shop\/licence\), /,
    );
  });

  it("hears of the templates of a Job and a CronJob what their pods' controller would not pass on", async () => {
    const jobs = (annotations: Readonly<Record<string, string>>): readonly Json[] => {
      const containers = [{ name: "app", image: "registry.example/app:1" }];
      const template = { metadata: { annotations }, spec: { restartPolicy: "Never", containers } };
      const metadata = { name: `sums-${Object.keys(annotations).join("").length}`, namespace: "shop" };
      const spec = { schedule: "@yearly", jobTemplate: { spec: { template } } };
      return [
        { apiVersion: "batch/v1", kind: "Job", metadata, spec: { template } },
        { apiVersion: "batch/v1", kind: "CronJob", metadata, spec },
      ];
    };
    for (const job of jobs({ "berth.dev/ip": "10.20.0.70" }))
      assert.match(
        await apply(job),
        /"workloads\.berth\.dev" denied the request: annotation berth\.dev\/ip: .*did you mean berth\.dev\/ips\?$/,
      );
    for (const job of jobs({ "ovn.kubernetes.io/mac_address": "00:00:00:53:00:01" }))
      assert.match(await apply(job), /^Warning: annotation ovn\.kubernetes\.io\/mac_address is kube-ovn's, /);
    for (const job of jobs({ "berth.dev/addresses": "10.20.0.70" }))
      assert.match(
        await apply(job),
        /^Warning: annotations that berth alone writes ask for nothing, and are removed from its pods: berth\.dev\/addresses; /,
      );
    for (const job of jobs({ note: "x" })) assert.equal(await apply(job), "");
  });
}

/** Of a kind whose pods Berth cannot tell from each other. */
function unread(kind: string, name: string, annotations: Json): Json {
  const object = statefulSet(name, 1, annotations);
  const { selector, template } = object["spec"] as Json;
  return { ...object, kind, spec: { selector, template } };
}
