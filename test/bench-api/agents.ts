// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ownedIn } from "../../allocator/cache/block-index.ts";
import { sizeOf } from "../../allocator/ip/ip-range.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import { PODS, POOLS } from "../../kube/api/resource.ts";
import { accountConfig, installAccounts } from "../api/accounts.ts";
import { AgentNode } from "../api/agent-node.ts";
import { BlockCluster, SHOP } from "../api/block-cluster.ts";
import { installDefinitions, makeNamespaces } from "../api/crds.ts";
import { startControlPlane } from "../api/harness.ts";
import { forceDelete, make, makePod } from "../api/replica-objects.ts";
import { API_SERVER_FLAGS, fill } from "../api/scale-load.ts";
import { buildDriver, byTag, drive } from "../bench/driver.ts";
import type { Figure } from "../bench/figure.ts";
import { residentOf } from "../bench/running-stack.ts";
import { Network, type Sandbox } from "../bench/sandboxes.ts";
import { eventually } from "../support/eventually.ts";
import { type AddsMeasured, type AgentMemory, reportAgents } from "./agents-report.ts";
import type { ApiSetup } from "./api-setup.ts";
import { DYNAMIC, fillNode, NODE } from "./filled-node.ts";

const FULL = { pairs: 300, atOnce: 110, nodes: 1_000, blocks: 5_000, claims: 20_000, settleMs: 10_000 };
const QUICK = { pairs: 20, atOnce: 20, nodes: 40, blocks: 200, claims: 400, settleMs: 1_000 };
const QUICKLY = { cooldown: "1s" };
const FIXED = { ranges: [{ cidr: "10.49.0.0/20" }], ...QUICKLY };
/** In the agent whose memory is looked at. */
const SERVED = 100;

/** What a node has beyond what its pods need: two blocks of 64. */
const AHEAD = 128;
/** A claim that is bound is heard of by then. */
const HEARD_MS = 2_000;

type Size = typeof FULL;

/** Real agents on a real API server: what an ADD takes, what a node does alone, and what an agent remembers. */
export async function measureAgents(setup: ApiSetup): Promise<Figure> {
  const size = setup.quick ? QUICK : FULL;
  const adds = await measureAdds(setup, size);
  const memory = await measureMemory(setup, size);
  return reportAgents({ ...size, ...adds, memory });
}

/** One node of a small cluster, and what a runtime asks of its agent. */
class Bench {
  readonly cluster: BlockCluster;
  readonly #driver: string;
  readonly #network: Network;

  constructor(cluster: BlockCluster, driver: string, network: Network) {
    this.cluster = cluster;
    this.#driver = driver;
    this.#network = network;
  }

  async pods(prefix: string, count: number, annotations = {}): Promise<readonly Sandbox[]> {
    const made: Sandbox[] = [];
    for (let n = 0; n < count; n++) {
      const name = `${prefix}-${n}`;
      const { metadata } = await makePod(
        this.cluster.api,
        { namespace: SHOP, name },
        { annotations, node: NODE },
      );
      made.push({ containerID: name, pod: { namespace: SHOP, name, uid: metadata.uid } });
    }
    return made;
  }

  call(tag: string, verb: "ADD" | "DEL", sandbox: Sandbox) {
    const socket = join(this.cluster.node(NODE).folder, "run/agent.sock");
    return this.#network.fixed(tag, verb, sandbox, socket);
  }

  async drive(steps: Parameters<typeof drive>[1]) {
    return await drive(this.#driver, steps);
  }

  /** The agent gives from its memory, so what it is asked for must be there. */
  async untilBound(count: number): Promise<void> {
    await eventually("all claims are bound", async () => {
      const claims = await listed(this.cluster.store, "claim");
      return claims.filter(({ record }) => record.binding?.node === NODE).length === count || undefined;
    });
    await pause(HEARD_MS);
  }

  /** Addresses of the node's blocks. */
  async usable(): Promise<number> {
    const own = (await this.cluster.blocks()).filter(
      ({ record }) => record.node === NODE && record.granted === true,
    );
    const all = own.flatMap(({ record }) => ownedIn(record).intervals);
    return Number(all.reduce((sum, interval) => sum + sizeOf(interval), 0n));
  }
}

async function measureAdds(setup: ApiSetup, { pairs, atOnce }: Size): Promise<AddsMeasured> {
  // not one as tests share, which has one processor and keeps what accounts ask
  const cluster = await BlockCluster.open(1, await startControlPlane({ durable: true }));
  setup.defer(() => cluster.close());
  await make(cluster.api, POOLS, { name: "dynamic" }, { spec: { ...DYNAMIC, ...QUICKLY } });
  await make(cluster.api, POOLS, { name: "fixed" }, { spec: FIXED });
  const bench = new Bench(cluster, await buildDriver(), new Network(setup.room()));
  const times = await inPairs(setup, bench, pairs);
  setup.say(`${atOnce} at once after a reboot`);
  const crowd = await bench.pods("crowd", atOnce);
  await eventually(
    "the node has blocks for all",
    async () => (await bench.usable()) >= atOnce + AHEAD || undefined,
  );
  await cluster.reboot(cluster.node(NODE));
  const began = performance.now();
  await bench.drive([{ parallel: atOnce }, ...crowd.map((one) => bench.call("crowd", "ADD", one))]);
  const crowdMs = performance.now() - began;
  setup.say("without an API server");
  const free = (await bench.usable()) - atOnce;
  const alone = await bench.pods("alone", free);
  await cluster.plane.apiServer.stop("SIGKILL");
  const served = await bench.drive(alone.map((one) => bench.call("alone", "ADD", one)));
  return { ...times, crowdMs, free, alone: served.length };
}

/** Fixed and dynamic pods in turn, so that both meet the same machine. */
async function inPairs(setup: ApiSetup, bench: Bench, pairs: number) {
  setup.say(`${pairs} fixed pods and as many that ask for nothing`);
  const fixed = await bench.pods("fixed", pairs, { "berth.dev/pools": "fixed" });
  const dynamic = await bench.pods("dynamic", pairs);
  await bench.untilBound(pairs);
  const steps = fixed.flatMap((one, n) => {
    const other = dynamic[n] ?? one;
    const both = [bench.call("fixed", "ADD", one), bench.call("dynamic", "ADD", other)];
    return n % 2 === 0 ? both : both.toReversed();
  });
  const times = byTag(await bench.drive(steps));
  const all = [...fixed, ...dynamic];
  await bench.drive(all.map((one) => bench.call("DEL", "DEL", one)));
  for (const { pod } of all) await forceDelete(bench.cluster.api, PODS, pod);
  return { fixedMs: times.get("fixed") ?? [], dynamicMs: times.get("dynamic") ?? [] };
}

/** The same agent with the same pods: in a cluster of one node, and in a large one. */
async function measureMemory(setup: ApiSetup, size: Size): Promise<readonly AgentMemory[]> {
  const plane = await startControlPlane({ apiServerFlags: API_SERVER_FLAGS });
  setup.defer(() => plane.close());
  const api = plane.connect();
  await installDefinitions(api);
  await makeNamespaces(api, ["berth-system", SHOP]);
  await installAccounts(api);
  const node = await AgentNode.make(NODE, await accountConfig(plane, "berth-agent", NODE));
  setup.defer(() => node.remove());
  const sandboxes = await fillNode(api, SERVED, QUICKLY);
  const look = async (name: string): Promise<AgentMemory> => {
    await node.start();
    for (const one of sandboxes) await node.runtime.add(one);
    for (const one of sandboxes) await node.runtime.del(one);
    await pause(size.settleMs);
    const memory = residentOf(node.pid);
    await node.stop();
    return { name, ...memory };
  };
  setup.say("an agent of a small cluster");
  const small = await look("one node");
  const { nodes, blocks, claims } = size;
  setup.say(`${nodes} nodes, ${blocks} blocks, ${claims} claims`);
  await fill(api, plane.etcdUrl, { claims, pods: claims, nodes, blocks });
  return [small, await look(`${nodes} nodes, ${blocks} blocks, ${claims} claims and pods`)];
}
