// SPDX-License-Identifier: Apache-2.0
// node-cidrs.ts [NODES]: Nodes that join at once, and how soon each has a CIDR: by Berth, and by kube-controller-manager's node IPAM, in
// turn, each on an API server of its own whose etcd waits for the disk. Needs `make control-plane controllers`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { inParallel } from "../../allocator/base/parallel.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { NODES, POOLS } from "../../kube/api/resource.ts";
import { startNodeCidrs } from "../../webhook/controllers/nodes/controller.ts";
import { partOf } from "../api/binaries.ts";
import { installDefinitions } from "../api/crds.ts";
import { Daemon } from "../api/daemon.ts";
import { type OwnControlPlane, startControlPlane } from "../api/harness.ts";
import { controllerDeps, openTestReplica } from "../api/replica-deps.ts";

const RANGE = "10.0.0.0/11"; // 8,192 of /24
/** Nodes that are created at the same time. */
const AT_ONCE = 32;
const LONGEST_MS = 480_000;

type Allocator = (plane: OwnControlPlane, connection: Connection) => Promise<() => Promise<void>>;

async function berth(_: OwnControlPlane, connection: Connection): Promise<() => Promise<void>> {
  await installDefinitions(connection);
  const nodeCIDRs = { use: "PodCIDR", blockSize: { ipv4: 24 } };
  await new Client(connection, POOLS).create(
    { name: "nodes" },
    { spec: { ranges: [{ cidr: RANGE }], nodeCIDRs } },
  );
  const replica = await openTestReplica(connection);
  const controller = startNodeCidrs(controllerDeps(replica, { nodeCIDRs: ["IPv4"] }));
  return async () => {
    await controller.close();
    await replica.close();
  };
}

/** As it is by default, 20 calls in a second, or with as many as it likes. */
function controllerManager(flags: readonly string[]): Allocator {
  return async (plane) => {
    const kubeconfig = join(plane.folder, "controllers.kubeconfig");
    writeFileSync(kubeconfig, plane.kubeConfig().exportConfig(), { mode: 0o600 });
    const command = [
      ...[partOf("kube-controller-manager"), `--kubeconfig=${kubeconfig}`, "--leader-elect=false"],
      ...["--bind-address=127.0.0.1", "--secure-port=0", "--controllers=node-ipam-controller"],
      ...["--allocate-node-cidrs=true", `--cluster-cidr=${RANGE}`, "--node-cidr-mask-size=24", ...flags],
    ];
    const daemon = new Daemon("kube-controller-manager", command, join(plane.folder, "kcm.log"));
    daemon.start();
    return () => daemon.stop();
  };
}

async function cidrs(connection: Connection): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { items } of new Client(connection, NODES).pages({}, 1_000))
    for (const item of items) {
      const { podCIDR = "" } = (item as unknown as { readonly spec: { readonly podCIDR?: string } }).spec;
      if (podCIDR !== "") found.push(podCIDR);
    }
  return found;
}

async function measure(name: string, count: number, allocator: Allocator): Promise<void> {
  const plane = await startControlPlane({ durable: true });
  const connection = plane.connect();
  const end = await allocator(plane, connection);
  try {
    await pause(5_000); // it has listed what there is: nothing
    const began = performance.now();
    const names = Array.from({ length: count }, (_, n) => ({ name: `node-${n}` }));
    await inParallel(
      names,
      AT_ONCE,
      async (place) => void (await new Client(connection, NODES).create(place, {})),
    );
    const created = performance.now() - began;
    let all = await cidrs(connection);
    while (all.length < count && performance.now() - began < LONGEST_MS) {
      await pause(250);
      all = await cidrs(connection);
    }
    const ms = performance.now() - began;
    const figures = {
      ...{ allocator: name, nodes: count, served: all.length, overlaps: all.length - new Set(all).size },
      ...{
        createdS: seconds(created),
        servedS: seconds(ms),
        perSecond: Math.round((all.length / ms) * 10_000) / 10,
      },
    };
    console.log(JSON.stringify(figures));
  } finally {
    await end();
    await plane.close();
  }
}

const seconds = (ms: number): number => Math.round(ms / 100) / 10;

const [given = "5000"] = process.argv.slice(2);
const many = ["--kube-api-qps=2000", "--kube-api-burst=4000"];
await measure("berth", Number(given), berth);
await measure("kube-controller-manager, 2,000 calls in a second", Number(given), controllerManager(many));
await measure("kube-controller-manager, as it is", Number(given), controllerManager([]));
