// SPDX-License-Identifier: Apache-2.0
// Berth as the one who gives Cilium's nodes addresses, with Cilium's own definitions: in each of its modes, whoever dies, and when.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { CILIUM, ciliumDefinitions } from "../cilium/definitions.ts";
import { deathsAt, drawn } from "../support/runs.ts";
import { skipped } from "../support/skipped.ts";
import { install, installAccounts, roleWith } from "./accounts.ts";
import { rightsOf } from "./audit-log.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CiliumCluster, liesIn } from "./cilium-cluster.ts";
import { CiliumNodes, KINDS, type Kind, ZONES } from "./cilium-nodes.ts";
import { WEBHOOK_USER } from "./plane.ts";
import { BookedConnection } from "./rights-used.ts";

const definitions = havePartsOrSkip(["etcd", "kube-apiserver"]) ? await ciliumDefinitions(CILIUM) : undefined;
const ciliumRole = () => roleWith("cilium.ipam");

if (definitions === undefined) skipped("no API server, or no Go to take Cilium's definitions from");
else {
  describe("Cilium's nodes on a real API server", () => {
    let world: CiliumCluster;
    let account: BookedConnection;
    let nodes: CiliumNodes;
    before(async () => {
      world = await CiliumCluster.open(definitions);
      // with the rights that the chart gives the webhook, and no others
      const { connection, plane } = world.cluster;
      await installAccounts(connection);
      await install(connection, ciliumRole());
      account = new BookedConnection(plane.connect(WEBHOOK_USER.name));
      world.connection = account;
      nodes = new CiliumNodes(world, account);
    });
    after(() => world?.close());
    afterEach(() => world.clear());

    for (const name of ["crd", "cluster-pool-v2beta", "multi-pool"] as const) {
      const kind: Kind = KINDS[name];
      const { mode } = kind;
      describe(`mode ${name}`, () => {
        it("serves nodes of two zones from pools that are apart, more before it is used up, and less when it is not used", async () => {
          await nodes.addPools();
          world.operate(mode);
          await nodes.joinAll(kind);
          const first = new Map<string, readonly string[]>();
          for (const [name] of ZONES) first.set(name, await world.grow(name, 5));
          assert.ok(first.get("n3")?.every((address) => liesIn(address, "192.168.7.0/24")));
          const [one, three] = [(await world.cidrs("n1")).length, (await world.cidrs("n3")).length];
          const more = [...(await world.grow("n1", 40))];
          await world.grow("n3", 40);
          assert.ok((await world.cidrs("n1")).length >= one + 2);
          assert.ok((await world.cidrs("n3")).length >= three + 2);
          world.shrink("n1", more);
          await world.until("n1 has given back what it does not use", async () => {
            return (await world.cidrs("n1")).length <= 2;
          });
          await world.grow("n2", 40);
        });

        it("does the same when it dies before or after any of its writes", async (t) => {
          await nodes.addPools();
          await nodes.joinAll(kind);
          const deaths = deathsAt([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
          for (const { failure, at } of drawn(t, deaths, 4)) await nodes.dieAt(mode, at, failure);
          world.operate(mode);
          for (const [name] of ZONES) await world.grow(name, 20);
        });

        it("does the same when two are at it at once", async () => {
          await nodes.addPools();
          world.operate(mode);
          world.operate(mode);
          await nodes.joinAll(kind);
          for (let round = 0; round < 3; round++) {
            for (const [name] of ZONES) {
              const some = await world.grow(name, 30);
              world.shrink(name, some.slice(round));
            }
          }
          await world.until("all have given back what they do not use", async () => {
            const all = await Promise.all(ZONES.map(([name]) => world.cidrs(name)));
            return all.every((cidrs) => cidrs.length <= 4);
          });
        });

        it("gives what a node had to others when it is gone, and nothing else when only its object is", async () => {
          await nodes.addPools();
          world.operate(mode);
          await nodes.joinAll(kind);
          const had = await world.grow("n1", 60);
          await world.deleteNode("n1");
          await world.until("the node's CIDRs are back", async () => (await world.cidrs("n1")).length === 0);
          await nodes.join("n1", "a", kind);
          await world.grow("n1", 10);
          // its agent lives on, and says so
          const kept = await world.grow("n2", 30);
          const cidrs = await world.cidrs("n2");
          await world.deleteObject("n2");
          await world.until("the object is as it was", async () => {
            const { pool = {}, podCIDRs = [], pools } = (await world.object("n2"))?.spec.ipam ?? {};
            const listed = [
              ...(mode === "cluster-pool" ? podCIDRs : Object.keys(pool)),
              ...(pools?.allocated ?? []).flatMap((entry) => entry.cidrs),
            ];
            return kept.every((ip) =>
              listed.some((one) => one === ip || (one.includes("/") && liesIn(ip, one))),
            );
          });
          const now = await world.cidrs("n2");
          assert.ok(kept.every((ip) => now.some((cidr) => liesIn(ip, cidr))));
          assert.ok(cidrs.some((cidr) => now.includes(cidr)));
          assert.equal(had.length, 60);
        });
      });
    }

    it("was done with the rights of the chart, none of which was of no use", () => {
      assert.deepEqual(account.forbidden, []);
      const rights = rightsOf("berth-webhook", ciliumRole());
      assert.ok(rights.length > 5, rights.join());
      // the pages of a full pass, where the API server does not stream one
      const seldom = ["list ciliumnodes.cilium.io"];
      assert.deepEqual(
        rights.filter((right) => !account.used.has(right) && !seldom.includes(right)),
        [],
      );
    });
  });
}
