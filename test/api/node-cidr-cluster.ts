// SPDX-License-Identifier: Apache-2.0
// Nodes that get their CIDRs from Berth on a real API server, with the webhook's own account.
import assert from "node:assert/strict";
import { parseCidr } from "../../allocator/ip/address.ts";
import { fullInterval, intersection } from "../../allocator/ip/ip-range.ts";
import { Client } from "../../kube/api/client.ts";
import { type KubeItem, NODES, POOLS } from "../../kube/api/resource.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import type { ControllerDeps } from "../../webhook/controllers/controller.ts";
import { startNodeCidrs } from "../../webhook/controllers/nodes/controller.ts";
import { eventually } from "../support/eventually.ts";
import { connectAs, install, installAccounts, installPolicies, roleWith } from "./accounts.ts";
import { ControllersCluster } from "./controllers-cluster.ts";
import { BookedConnection } from "./rights-used.ts";

type Json = Readonly<Record<string, unknown>>;

/** The role that the chart has with `nodeCIDRs.families`. */
export const nodesRole = () => roleWith("nodeCIDRs.families");

export class NodeCidrCluster {
  readonly cluster: ControllersCluster;
  readonly account: BookedConnection;

  private constructor(cluster: ControllersCluster, account: BookedConnection) {
    this.cluster = cluster;
    this.account = account;
  }

  static async open(): Promise<NodeCidrCluster> {
    const cluster = await ControllersCluster.open(async (admin) => {
      await installAccounts(admin);
      await installPolicies(admin, ["nodes.berth.dev"]);
      await install(admin, nodesRole());
    });
    const account = await connectAs(cluster.plane, "berth-webhook");
    return new NodeCidrCluster(cluster, new BookedConnection(account));
  }

  async close(): Promise<void> {
    await this.cluster.close();
  }

  /** Nothing is left, for the next test. */
  async clear(): Promise<void> {
    const { cluster } = this;
    await cluster.endAll();
    for (const block of await cluster.all("block")) await cluster.store.remove("block", block);
    for (const [name] of [...cluster.replica.watches.nodes.all()]) await cluster.delete(NODES, name);
    for (const { record } of await cluster.all("pool")) {
      await cluster.patch(POOLS, record.name, { metadata: { finalizers: null } });
      await cluster.delete(POOLS, record.name);
    }
    await eventually("nothing is left", () => {
      const { cache, watches } = cluster.replica;
      const left = [...cache.blocks(), ...cache.poolRecords(), ...watches.nodes.all()];
      return left.length === 0 ? true : undefined;
    });
  }

  start(over: Partial<ControllerDeps> = {}): Controller {
    const { cluster, account } = this;
    return cluster.start(startNodeCidrs, {
      context: { ...cluster.context, clock: cluster.clock },
      ...{ connection: account, nodeCIDRs: ["IPv4"] },
      ...over,
    });
  }

  async applyPool(name: string, cidrs: readonly string[], spec: Json = {}): Promise<void> {
    const blockSize = cidrs[0]?.includes(":") ? { ipv6: 64 } : { ipv4: 24 };
    const ranges = cidrs.map((cidr) => ({ cidr }));
    const whole = { ranges, nodeCIDRs: { use: "PodCIDR", blockSize }, cooldown: "0s", ...spec };
    await this.cluster.apply(POOLS, { metadata: { name }, spec: whole });
    await eventually("the pool is seen", () => this.cluster.replica.cache.pool(name));
  }

  async addNode(name: string, labels: Json = {}, spec: Json = {}): Promise<void> {
    const nodes = new Client(this.cluster.connection, NODES);
    assert.ok(await nodes.create({ name }, { metadata: { labels }, spec }));
  }

  /** And waits until a watch has told of it. */
  async deleteNode(name: string): Promise<void> {
    await this.cluster.delete(NODES, name);
    await eventually("its end is seen", () =>
      this.cluster.replica.watches.nodes.get(name) === undefined ? true : undefined,
    );
  }

  async node(name: string): Promise<KubeItem & { readonly spec: { podCIDR?: string; podCIDRs?: string[] } }> {
    const nodes = new Client(this.cluster.connection, NODES);
    return ((await nodes.get({ name })) ?? assert.fail(name)) as never;
  }

  async cidrsOf(name: string): Promise<readonly string[]> {
    return (await this.node(name)).spec.podCIDRs ?? [];
  }

  async served(names: readonly string[], count = 1, skipMs = 0): Promise<readonly (readonly string[])[]> {
    return await eventually(`${names.join()} have CIDRs`, async () => {
      if (skipMs > 0) this.cluster.clock.skip(skipMs);
      const all = await Promise.all(names.map((name) => this.cidrsOf(name)));
      return all.every(({ length }) => length === count) ? all : undefined;
    });
  }

  async assertDisjoint(): Promise<void> {
    const nodes = [...this.cluster.replica.watches.nodes.all()].map(([name]) => name);
    const all = (await Promise.all(nodes.map((name) => this.cidrsOf(name))))
      .flat()
      .map((text) => parseCidr(text) ?? assert.fail(text));
    for (const [i, one] of all.entries())
      for (const other of all.slice(i + 1)) {
        const isShared =
          one.family === other.family && intersection(fullInterval(one), fullInterval(other)) !== undefined;
        assert.ok(!isShared, `${one.text} and ${other.text}`);
      }
  }
}
