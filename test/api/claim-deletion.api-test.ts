// SPDX-License-Identifier: Apache-2.0
// Claims that are deleted with the API itself, as when no webhook is registered: what is in use stays in use.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { requestFor } from "../../allocator/demand/build-request.ts";
import { type BindTarget, bind } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { OUT_OF_SERVICE } from "../../allocator/manifest/node-fence.ts";
import { IN_USE } from "../../allocator/store/kubernetes/objects.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { CLAIMS, collectionPath, itemPath, NAMESPACES, NODES, PODS } from "../../kube/api/resource.ts";
import { startClaims } from "../../webhook/controllers/claims/controller.ts";
import { startGcTriggers } from "../../webhook/controllers/gc-triggers.ts";
import { entries } from "../support/allocation-requests.ts";
import { eventually } from "../support/eventually.ts";
import { FailingStore } from "../support/failing-store.ts";
import {
  addr,
  addrs,
  applicantOf,
  attachmentOf,
  granted,
  poolRecord,
  refusalOf,
} from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster, NAMESPACE } from "./controllers-cluster.ts";
import { makeNamespaces } from "./crds.ts";
import { change, forceDelete, makeNode, makePod } from "./replica-objects.ts";
import { requestCounts } from "./request-counts.ts";

const ANOTHER = "example.org/backup";
const NO_PROOF = async () => ({ fenced: false, holdExpired: false });
const FENCED = async () => ({ fenced: true, holdExpired: false });

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("a claim that is deleted past the webhook", () => {
    let cluster: ControllersCluster;
    before(async () => {
      cluster = await ControllersCluster.open();
      await cluster.makePool(poolRecord("db", ["10.20.0.0/16", "fd00:20::/64"]));
      await cluster.applySet("mysql", { replicas: 9, annotations: {} });
      await eventually("the set", () => cluster.replica.watches.workloads[0]?.reflector.get("shop/mysql"));
      // a claim that is bound to a node which is not there is given up after a while
      await makeNode(cluster.connection, "node-a");
    });
    after(() => cluster?.close());
    afterEach(() => cluster.endAll());

    const collectGarbage = () => {
      const enqueueForGc = cluster.collectGarbage();
      cluster.start(({ cache, watches, context }) =>
        startGcTriggers({ cache, watches, clock: context.clock, enqueueForGc }),
      );
      cluster.start(startClaims);
    };

    /** Of the identity that is ordinal `n` of the set, with one address or one of each family. */
    const allocation = (n: number, address: string) => {
      const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: n };
      const podIdentity = { kind: "named", claim: `mysql-${n}`, identity } as const;
      const { entries: [entry] = [] } = entries(address);
      const request = { pools: ["db"], ...(entry === undefined ? {} : { entries: Array(9).fill(entry) }) };
      return granted(requestFor(applicantOf({ podIdentity, request, now: Date.now() })));
    };
    const made = async (n: number, address: string): Promise<Stored<"claim">> =>
      granted(await reserve(cluster.context, allocation(n, address), "pod")).claim;
    const podOn = (node: string, name: string, uid = `uid-of-${name}`): BindTarget => ({
      ...{ name, uid, node, token: "" },
    });
    const bindIt = async (key: string, pod: BindTarget, facts = NO_PROOF): Promise<Stored<"claim">> => {
      await cluster.caughtUp();
      return granted(await bind(cluster.context, key, pod, facts));
    };
    const boundClaim = async (n: number, address: string, node = "node-a"): Promise<Stored<"claim">> => {
      const { key, record } = await made(n, address);
      return await bindIt(key, podOn(node, record.name));
    };
    const finalizersOf = async (name: string) => (await cluster.claimItem(name)).metadata.finalizers ?? [];
    const reservation = async (address: string) =>
      (await cluster.store.get("reservation", addr(address)))?.record;
    const gone = (key: string) =>
      eventually(`${key} is gone`, async () =>
        (await cluster.store.get("claim", key)) === undefined ? true : undefined,
      );
    const cooling = (address: string) =>
      eventually(`${address} cools`, async () => (await reservation(address))?.releasedAt);
    /** As the agent of its node says it. */
    const detach = async (key: string) => {
      await eventually("the report", async () => {
        const seen = await cluster.store.get("claim", key);
        assert.ok(seen);
        const { podName = "", podUID = "", node = "" } = seen.record.binding ?? {};
        const attachment = attachmentOf(podName, { node, podUID, detached: true });
        const report = await cluster.store.report(seen, { attachment });
        return report.kind === "replaced" ? true : undefined;
      });
    };

    describe("has a finalizer", () => {
      const patches = async () =>
        (await requestCounts(cluster.connection))({ resource: "ipclaims", verb: "PATCH" });

      it("for as long as it is bound to a node, in the writes that bind it and end that", async () => {
        const { key } = await made(0, "10.20.1.0");
        assert.deepEqual(await finalizersOf("mysql-0"), []);
        await bindIt(key, podOn("", "mysql-0"));
        assert.deepEqual(await finalizersOf("mysql-0"), []);
        const before = await patches();
        await bindIt(key, podOn("node-a", "mysql-0"));
        assert.deepEqual(await finalizersOf("mysql-0"), [IN_USE]);
        const bound = await bindIt(key, podOn("node-b", "mysql-0", "another"), FENCED);
        assert.deepEqual(await finalizersOf("mysql-0"), [IN_USE]);
        const { binding: _, ...rest } = bound.record;
        assert.equal((await cluster.store.replace("claim", bound, rest)).kind, "replaced");
        assert.deepEqual(await finalizersOf("mysql-0"), []);
        assert.equal((await patches()) - before, 3);
        assert.equal(
          await release(cluster.context, await bindIt(key, podOn("node-a", "mysql-0"))),
          "released",
        );
        assert.equal(await cluster.claim("mysql-0"), undefined);
      });

      it("beside those of others, which stay", async () => {
        const { key } = await made(0, "10.20.1.0");
        await cluster.patch(CLAIMS, "mysql-0", { metadata: { finalizers: [ANOTHER] } });
        const bound = await bindIt(key, podOn("node-a", "mysql-0"));
        assert.deepEqual(await finalizersOf("mysql-0"), [ANOTHER, IN_USE]);
        const { binding: _, ...rest } = bound.record;
        await cluster.store.replace("claim", bound, rest);
        assert.deepEqual(await finalizersOf("mysql-0"), [ANOTHER]);
        await cluster.patch(CLAIMS, "mysql-0", { metadata: { finalizers: null } });
        const seen = await cluster.claim("mysql-0");
        assert.ok(seen);
        assert.equal(await release(cluster.context, seen), "released");
      });
    });

    it("stays with its pod, is nobody else's, and goes when its sandbox has ended", async () => {
      const bound = await boundClaim(1, "10.20.1.1,fd00:20::1:1");
      collectGarbage();
      const { rc, stdout } = await cluster.plane.kubectl([
        "delete",
        "ipclaim",
        "mysql-1",
        "-n",
        NAMESPACE,
        "--wait=false",
      ]);
      assert.deepEqual([rc, stdout], [0, 'ipclaim.berth.dev "mysql-1" deleted from shop namespace\n']);
      await cluster.tells("mysql-1", ["Normal InUse"]);
      assert.equal(
        cluster.notices.all.at(-1)?.note,
        "the claim is deleted, and stays with 10.20.1.1 and fd00:20::1:1 for pod mysql-1 on node node-a until its sandbox has " +
          "ended; delete that pod, or fence its node if it is lost",
      );
      assert.equal((await cluster.claim("mysql-1"))?.record.deleting, true);
      await cluster.patch(CLAIMS, "mysql-1", { metadata: { labels: { seen: "yes" } } });
      await cluster.caughtUp();

      // the sandbox of the same pod may be made again
      const { revision } = await bindIt(bound.key, podOn("node-a", "mysql-1"));
      assert.equal(revision, (await cluster.claim("mysql-1"))?.revision);
      const waits =
        "CLAIM_RELEASING: claim shop/mysql-1 is being deleted; its addresses are given back when the sandbox of pod mysql-1 " +
        "on node node-a has ended; try again then";
      const successor = podOn("node-a", "mysql-1", "another");
      assert.equal(refusalOf(await bind(cluster.context, bound.key, successor, NO_PROOF)), waits);
      assert.equal(refusalOf(await bind(cluster.context, bound.key, podOn("node-b", "x"), FENCED)), waits);
      const again = allocation(1, "10.20.1.1,fd00:20::1:1");
      assert.equal(refusalOf(await reserve(cluster.context, again, "pod")), waits);
      const other = await reserve(cluster.context, allocation(2, "10.20.1.1"), "pod");
      assert.match(refusalOf(other), /^ADDRESS_TAKEN: /);
      await cluster.collectAt(600_000, 3);
      assert.equal((await reservation("10.20.1.1"))?.releasedAt, undefined);
      assert.deepEqual((await cluster.claim("mysql-1"))?.record.addresses, bound.record.addresses);

      await detach(bound.key);
      await gone(bound.key);
      for (const address of bound.record.addresses) await cooling(address);
      const missing = await bind(cluster.context, bound.key, podOn("node-a", "mysql-1"), NO_PROOF);
      assert.match(refusalOf(missing), /^CLAIM_MISSING: /);
      await cluster.caughtUp();
      const { record } = granted(await reserve(cluster.context, again, "pod")).claim;
      assert.deepEqual(record.addresses, bound.record.addresses);
      assert.notEqual(record.nonce, bound.record.nonce);
      await cluster.tells("mysql-1", ["Normal InUse"]);
      await cluster.sound();
    });

    it("goes when its node is fenced, before or after", async () => {
      const nodes = ["node-f", "node-g"] as const;
      for (const node of nodes) await makeNode(cluster.connection, node);
      const [before, later] = [
        await boundClaim(3, "10.20.1.3", "node-f"),
        await boundClaim(4, "10.20.1.4", "node-g"),
      ];
      collectGarbage();
      const taints = [{ key: OUT_OF_SERVICE, value: "lost", effect: "NoExecute" }];
      await change(cluster.connection, NODES, { name: "node-f" }, { spec: { taints } });
      await eventually("the taint", () => cluster.replica.watches.nodes.get("node-f")?.fenced || undefined);
      for (const { record } of [before, later]) await cluster.deleteClaim(record.name);
      await gone(before.key);
      await cooling("10.20.1.3");
      assert.equal((await cluster.claim("mysql-4"))?.record.deleting, true);
      await change(cluster.connection, NODES, { name: "node-g" }, { spec: { taints } });
      await gone(later.key);
      await cooling("10.20.1.4");
      await cluster.sound();
    });

    it("goes at once when no node has it, held or not, whoever made it, and its addresses cool", async () => {
      const heldClaim = await made(5, "10.20.1.5");
      await bindIt(heldClaim.key, podOn("", "mysql-5"));
      await made(6, "10.20.1.6");
      collectGarbage();
      await cluster.applyClaim("licence", { addresses: ["10.20.1.7"] });
      await cluster.condition(CLAIMS, "licence", "Ready=True Reserved");
      await cluster.caughtUp();
      for (const name of ["mysql-5", "mysql-6", "licence"]) {
        await cluster.deleteClaim(name);
        assert.equal(await cluster.claim(name), undefined);
      }
      for (const address of ["10.20.1.5", "10.20.1.6", "10.20.1.7"]) await cooling(address);
      assert.deepEqual(cluster.told("mysql-5"), []);
      await cluster.sound();
    });

    it("that a person made for good goes too, without waiting for anybody's leave but others' finalizers", async () => {
      collectGarbage();
      const retention = { whenDeleted: "Retain", whenScaled: "Retain" };
      await cluster.applyClaim("console", { addresses: ["10.20.1.8"] }, { retention });
      await cluster.condition(CLAIMS, "console", "Ready=True Reserved");
      await cluster.patch(CLAIMS, "console", { metadata: { finalizers: [ANOTHER] } });
      await bindIt("shop/console", podOn("node-a", "console"));
      await cluster.deleteClaim("console");
      await cluster.tells("console", ["Normal Reserved", "Normal InUse"]);
      await detach("shop/console");
      await cooling("10.20.1.8");
      const { record } = (await cluster.claim("console")) ?? {};
      assert.deepEqual([record?.deleting, record?.releasing, record?.binding], [true, true, undefined]);
      assert.deepEqual(await finalizersOf("console"), [ANOTHER]);
      await cluster.collectAt(0);
      await cluster.patch(CLAIMS, "console", { metadata: { finalizers: null } });
      await gone("shop/console");
    });

    it("leaves nothing behind when whoever lets it go dies in the middle", async () => {
      const died: string[] = [];
      for (const failure of ["before", "after"] as const) {
        for (let write = 1; write <= 3; write++) {
          const { key, record } = await boundClaim(7, "10.20.1.9,fd00:20::9");
          await cluster.deleteClaim(record.name);
          await detach(key);
          const seen = await cluster.claim(record.name);
          assert.ok(seen);
          const store = new FailingStore(cluster.store, write, failure);
          const attempt = release({ ...cluster.context, store }, seen);
          await assert.rejects(attempt);
          died.push(
            `${failure} ${write}: ${(await cluster.claim(record.name)) === undefined ? "gone" : "there"}`,
          );
          await cluster.collectAt(0, 4);
          assert.equal(await cluster.claim(record.name), undefined);
          for (const address of record.addresses) assert.equal(await reservation(address), undefined);
        }
      }
      assert.deepEqual(died, [
        ...["before 1: there", "before 2: gone", "before 3: gone"],
        ...["after 1: gone", "after 2: gone", "after 3: gone"],
      ]);
    });

    it("goes with its namespace once the pods have ended, and holds it back until then", async () => {
      await makeNamespaces(cluster.connection, ["doomed"]);
      const names = ["a", "b", "c"];
      const identity = (name: string) => ({ kind: "Pod", apiVersion: "v1", name });
      const keys = new Map<string, string>(); // name -> key of its claim
      for (const [n, name] of names.entries()) {
        const { metadata } = await makePod(
          cluster.connection,
          { namespace: "doomed", name },
          { node: "node-a" },
        );
        const podIdentity = { kind: "named", claim: name, identity: identity(name) } as const;
        const namespace = { name: "doomed", labels: {}, annotations: {} };
        const request = { entries: [addrs(`10.20.2.${n + 1}`)] };
        const input = applicantOf({ podIdentity, request, namespace, now: Date.now() });
        const { claim } = granted(await reserve(cluster.context, granted(requestFor(input)), "pod"));
        await bindIt(claim.key, podOn("node-a", name, metadata.uid));
        keys.set(name, claim.key);
      }
      await cluster.caughtUp();
      collectGarbage();
      const remove = (path: string) => cluster.connection.call({ method: "DELETE", path });
      await remove(itemPath(NAMESPACES, { name: "doomed" }));
      // as the namespace controller does, which is not here
      for (const resource of [CLAIMS, PODS]) await remove(collectionPath(resource, "doomed"));
      for (const [name, key] of keys) {
        await cluster.tells(name, ["Normal InUse"]);
        await forceDelete(cluster.connection, PODS, { namespace: "doomed", name });
        assert.equal((await cluster.store.get("claim", key))?.record.deleting, true);
      }
      for (const key of keys.values()) await detach(key);
      for (const key of keys.values()) await gone(key);
      for (const n of names.keys()) await cooling(`10.20.2.${n + 1}`);
      await cluster.sound();
    });

    it("is no obstacle to a claim that is made anew under its name", async () => {
      collectGarbage();
      const { key } = await boundClaim(8, "10.20.1.10");
      await cluster.deleteClaim("mysql-8");
      await cluster.caughtUp();
      const again = allocation(8, "10.20.1.10");
      assert.ok(isRefusal(await reserve(cluster.context, again, "pod")));
      await detach(key);
      const { claim } = await eventually("it is reserved anew", async () => {
        const got = await reserve(cluster.context, again, "pod");
        return isRefusal(got) ? undefined : got;
      });
      assert.equal(claim.record.deleting, undefined);
      await cluster.caughtUp();
      await cluster.sound();
    });
  });
}
