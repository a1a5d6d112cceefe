// SPDX-License-Identifier: Apache-2.0
// What one CiliumNode says or has keeps no other one from its addresses, and none of them goes to another.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../kube/api/client.ts";
import { BLOCKS, NODES, type Resource } from "../../kube/api/resource.ts";
import { CILIUM_NODES } from "../../webhook/controllers/cilium/cilium-node.ts";
import { CILIUM, ciliumDefinitions } from "../cilium/definitions.ts";
import { eventually } from "../support/eventually.ts";
import { skipped } from "../support/skipped.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CiliumCluster } from "./cilium-cluster.ts";
import { CiliumNodes, KINDS } from "./cilium-nodes.ts";

const definitions = havePartsOrSkip(["etcd", "kube-apiserver"]) ? await ciliumDefinitions(CILIUM) : undefined;

const addressesOf = (from: number, to: number) =>
  Object.fromEntries(Array.from({ length: to - from + 1 }, (_, i) => [`10.10.0.${from + i}`, {}]));

const policyKind = (plural: string, kind: string): Resource => ({
  ...{ group: "admissionregistration.k8s.io", version: "v1", plural, kind, namespaced: false },
});
const LOCKED = {
  failurePolicy: "Fail",
  matchConstraints: {
    resourceRules: [
      { apiGroups: ["cilium.io"], apiVersions: ["*"], operations: ["UPDATE"], resources: ["ciliumnodes"] },
    ],
  },
  validations: [{ expression: "object.metadata.name != 'locked'" }],
};
const LOCKS = [
  [policyKind("validatingadmissionpolicies", "ValidatingAdmissionPolicy"), LOCKED],
  [
    policyKind("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    { policyName: "lock", validationActions: ["Deny"] },
  ],
] as const;

if (definitions === undefined) skipped("no API server, or no Go to take Cilium's definitions from");
else {
  describe("one CiliumNode and the others", () => {
    let world: CiliumCluster;
    let nodes: CiliumNodes;
    before(async () => {
      world = await CiliumCluster.open(definitions);
      nodes = new CiliumNodes(world, world.connection);
    });
    after(() => world?.close());
    afterEach(() => world.clear());

    it("that have single addresses of one block keep theirs, and get none of each other's", async () => {
      await world.addPool("all", ["10.10.0.0/24"]);
      for (const name of ["n1", "n2"]) await world.addNode(name, "a");
      await world.write("n1", { pool: addressesOf(1, 4) });
      await world.write("n2", { pool: addressesOf(5, 8) });
      for (const name of ["n1", "n2"]) {
        const agent = new KINDS.crd.Agent(world.connection, name);
        await agent.sync();
        while (agent.add() !== undefined); // all are used
        await agent.report();
        world.agents.set(name, agent);
      }
      world.operate("crd");
      const poolOf = async (name: string) => Object.keys((await world.object(name))?.spec.ipam?.pool ?? {});
      const both = async () => await Promise.all(["n1", "n2"].map(poolOf));
      // a step looks whether two use one address; which two say of one block is what this is about
      const haveMore = async () => (await both()).every(({ length }) => length > 4);
      await world.until("both have more", haveMore, { mayOverlap: true });
      const [one = [], two = []] = await both();
      assert.deepEqual(
        one.filter((address) => two.includes(address)),
        [],
      );
    });

    it("that asks for four million addresses has 256 CIDRs, is told why, and others have theirs", async () => {
      await world.addPool("all", ["10.0.0.0/16"]);
      await world.addNode("greedy", "a");
      const needed = { "ipv4-addrs": 4_000_000 };
      await world.write("greedy", { pools: { requested: [{ pool: "default", needed }] } });
      world.operate("multi-pool");
      const errorOf = async () =>
        (await world.object("greedy"))?.status?.ipam?.["operator-status"]?.error ?? "";
      await world.until("it is told", async () => (await errorOf()) !== "");
      assert.match(
        await errorOf(),
        /^berth: this node has 256 CIDRs, and gets no more; make a pool of larger ones/,
      );
      assert.equal((await world.cidrs("greedy")).length, 256);
      await nodes.join("n1", "a", KINDS["multi-pool"]);
      await world.grow("n1", 5);
    });

    it("that nobody may write keeps no other one from its addresses", async () => {
      await world.addPool("all", ["10.0.0.0/20"]);
      await world.addNode("locked", "a");
      await world.write("locked", {});
      for (const [kind, spec] of LOCKS)
        await new Client(world.cluster.connection, kind).create({ name: "lock" }, { spec });
      const isLocked = async () => {
        const body = { metadata: { labels: { probe: String(Math.random()) } } };
        const client = new Client(world.cluster.connection, CILIUM_NODES);
        return await client.patch({ name: "locked" }, { type: "merge", body }).then(
          () => false,
          () => true,
        );
      };
      await world.until("it is locked", isLocked);
      world.operate("crd");
      await nodes.join("n1", "a", KINDS.crd);
      await world.grow("n1", 12);
      for (const [kind] of LOCKS) {
        const client = new Client(world.cluster.connection, kind);
        const there = await client.get({ name: "lock" });
        if (there !== undefined) await client.remove({ name: "lock" }, there.metadata);
      }
      await world.until("it has its addresses", async () => {
        const { pool = {} } = (await world.object("locked"))?.spec.ipam ?? {};
        return Object.keys(pool).length > 0;
      });
    });

    it("keeps what it has while its Node is away for less than the grace, however often", async () => {
      await world.addPool("all", ["10.10.0.0/28"]); // one CIDR
      world.operate("cluster-pool");
      const recordOf = async () => (await world.cluster.store.get("block", "10.10.0.0/28"))?.record;
      for (let n = 0; n < 2; n++) {
        await world.addNode("n1", "a");
        await eventually("it has its CIDR", async () => {
          const { podCIDRs = [] } = (await world.object("n1"))?.spec.ipam ?? {};
          return podCIDRs.length === 1 ? true : undefined;
        });
        world.cluster.clock.skip(3_600_000);
        await world.cluster.delete(NODES, "n1");
        await world.cluster.delete(CILIUM_NODES, "n1");
        for (let looks = 0; looks < 5; looks++) {
          world.cluster.clock.skip(6_000);
          await pause(200);
          assert.deepEqual([(await recordOf())?.node, (await recordOf())?.releasedAt], ["n1", undefined]);
        }
      }
      await eventually("it is nobody's in the end", async () => {
        world.cluster.clock.skip(15_000);
        return (await recordOf()) === undefined ? true : undefined;
      });
    });

    for (const mode of ["crd", "cluster-pool", "multi-pool"] as const)
      it(`has its record again when somebody deletes that, in mode ${mode}`, async () => {
        await world.addPool("all", ["10.10.0.0/24"]);
        world.operate(mode);
        await nodes.join("n1", "a", KINDS[mode]);
        await world.grow("n1", 5);
        const [cidr = ""] = await world.cidrs("n1");
        const stored = await world.cluster.store.get("block", cidr);
        assert.ok(stored);
        await world.cluster.delete(BLOCKS, cidr.replace("/", "-"));
        await eventually("it is recorded again", async () => {
          const now = await world.cluster.store.get("block", cidr);
          return now !== undefined && now.uid !== stored.uid && now.record.node === "n1" ? true : undefined;
        });
      });
  });
}
