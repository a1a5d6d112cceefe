// SPDX-License-Identifier: Apache-2.0
// Pods on a network that is kept in an etcd outside of the cluster: the kubelet mounts the certificates, from the Secret that the
// chart names.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { run } from "../support/process.ts";
import { BERTHCTL } from "../support/stack-folder.ts";
import { AGENT_NAMESPACE, configureNode, installBerth } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { Lab } from "./lab.ts";
import { LanEtcd } from "./lan-etcd.ts";
import { deployment } from "./objects.ts";

const SECRET = "etcd-client";
/** Where the chart mounts it. */
const MOUNTED = "/etc/berth/etcd";
const OF_AGENTS = { namespace: AGENT_NAMESPACE };
/** Of the network whose nodes have all other addresses, and of neither's own range. */
const RANGE = {
  ...{ subnet: "10.244.0.0/16", rangeStart: "10.244.50.50", rangeEnd: "10.244.50.54", gateway: "10.244.0.1" },
  routes: [{ dst: "0.0.0.0/0" }],
};
const ALL = [50, 51, 52, 53, 54].map((last) => `10.244.50.${last}`);

let lab: Lab;
let etcd: LanEtcd;
before(async () => {
  lab = await Lab.open("etcd-secret");
  etcd = new LanEtcd(lab.cluster.control);
});
after(async () => await lab?.close());

/** Names in the etcd, as `berthctl get` lists them. */
async function named(kind: string): Promise<readonly string[]> {
  const args = [...etcd.flags, "get", kind, "-o", "json"];
  const { rc, stdout, stderr } = await run(BERTHCTL, args, { env: lab.environment });
  assert.equal(rc, 0, stderr);
  const { items }: { readonly items: readonly { readonly metadata: { readonly name: string } }[] } =
    JSON.parse(stdout);
  return items.map(({ metadata }) => metadata.name).toSorted();
}

/** The kubelet looks at a pod that changes at once, and at any other within a minute or two. */
async function renewSecret(): Promise<void> {
  await lab.apply([etcd.secret(SECRET)], OF_AGENTS);
  const agents = ["pods", "-l", "app.kubernetes.io/component=agent"];
  await lab.must(["annotate", ...agents, "--overwrite", `test.example/renewed=${Date.now()}`], OF_AGENTS);
}

async function serveFromEtcd(): Promise<void> {
  const ipam = { etcdConfig: etcd.config(MOUNTED), ...RANGE };
  for (const node of lab.cluster.nodes) await configureNode(node, "berth", ipam);
}

async function serveFromRanges(): Promise<void> {
  for (const node of lab.cluster.nodes) await configureNode(node, "berth");
}

async function returned(times: Times): Promise<void> {
  await lab.must(["delete", "deployments", "--all", "--cascade=foreground", "--timeout=60s"]);
  await lab.until("etcd has every address back", async () => (await named("reservations")).length === 0);
  times.step("returned");
}

describe("a network in etcd", () => {
  it(
    "E0581 pods of two nodes have addresses out of an etcd whose certificates are a Secret, before and after it is changed",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0581");
      await etcd.serve();
      await lab.apply([etcd.secret(SECRET)], OF_AGENTS);
      try {
        await installBerth(lab.cluster, ["--set", `agent.etcdSecret=${SECRET}`]);
        times.step("installed");
        await serveFromEtcd();
        await lab.apply([deployment("lan", { replicas: 5 })]);
        const pods = await lab.runs("app=lan", 5);
        assert.deepEqual(pods.flatMap(({ addresses }) => addresses).toSorted(), ALL);
        assert.deepEqual(await named("reservations"), ALL);
        assert.deepEqual(await named("hosts"), ["node-a", "node-b"]);
        await lab.pingAll(pods);
        times.step("pinged");
        await lab.apply([deployment("late", { replicas: 1 })]);
        await lab.until("the sixth is refused in words", async () =>
          (await lab.warnings()).includes('pool "pods"'),
        );
        await returned(times);

        await etcd.serve();
        await lab.apply([deployment("lan", { replicas: 2 })]);
        await lab.until("an event says that the certificates are not etcd's", async () =>
          /no address of pool "pods" can be proven free: etcd at https:.*certificate/.test(
            await lab.warnings(),
          ),
        );
        times.step("refused");
        await renewSecret();
        const again = await lab.runs("app=lan", 2);
        for (const { addresses } of again) assert.ok(ALL.includes(addresses[0] ?? ""), addresses.join());
        times.step("renewed");
        await returned(times);
      } finally {
        await serveFromRanges();
        await installBerth(lab.cluster);
        await lab.must(["delete", "secret", SECRET], OF_AGENTS);
        await etcd.stop();
      }
      times.step("as before");
      await lab.check();
      times.end();
    },
  );
});
